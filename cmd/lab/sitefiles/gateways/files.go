package gateways

import (
	"fmt"
	"strings"
	"time"

	"fairway/cmd/lab/sitefiles/format"
	"fairway/cmd/lab/sitefiles/model"
)

// Layer is how the compute nodes reach their gateways.
type Layer string

// The layers.
const (
	NFS  Layer = "nfs"
	DVS  Layer = "dvs" // with counts in the format "flat"
	LWFS Layer = "lwfs"
	// OldDVS is one of before 2019: files below /proc, no bytes and no times.
	OldDVS Layer = "dvs-old"
	GPFS   Layer = "gpfs"
)

// Layers lists them.
func Layers() []Layer { return []Layer{NFS, DVS, LWFS, OldDVS, GPFS} }

// isDVS says whether the compute nodes are DVS clients.
func (l Layer) isDVS() bool { return l == DVS || l == OldDVS }

// kind is what the agents' settings call it.
func (l Layer) kind() string { return strings.TrimSuffix(string(l), "-old") }

const (
	mountPoint = "/pfs"
	export     = "/lustre"
	traceFile  = "var/log/lwfs/trace"
	volume     = "etc/lwfs/lwfs.vol"
	release    = format.Release(15)
	cores      = 4 // of a node
)

// nodename is what DVS calls a gateway.
func nodename(g *Gateway) string { return "c0-0c0s0n" + g.Addr[strings.LastIndexByte(g.Addr, '.')+1:] }

// volumeOf is the LWFS volume file that leads to a gateway.
func volumeOf(g *Gateway) string { return "lwfs_" + g.Name + ".vol" }

// linux writes what every node has.
func linux(t format.Tree, up time.Duration, start time.Time) {
	t["proc/net/dev"] = format.NetDev(nil)
	t["proc/stat"] = format.CPUStat(model.CPU{Cores: cores}, up, start)
	t["proc/pressure/io"] = format.Pressure(0, 0, true)
}

// clientFiles are a compute node's.
func clientFiles(l Layer, c *Client, now time.Duration, start time.Time) format.Tree {
	t := format.Tree{}
	linux(t, now, start)
	switch l {
	case NFS, GPFS:
		t["proc/1/mounts"], t["proc/1/mountstats"] = "proc /proc proc rw 0 0\n",
			"device proc mounted on /proc with fstype proc\n"
		server := c.address
		if server == "" && c.on != nil {
			server = c.on.Addr
		}
		if server != "" {
			t["proc/1/mounts"] += fmt.Sprintf("%s:%s %s nfs rw,relatime,vers=3,proto=tcp,addr=%[1]s 0 0\n", server,
				export, mountPoint)
			t["proc/1/mountstats"] += mountStats(c, server, now)
		}
	case DVS, OldDVS:
		t["proc/1/mounts"] = "proc /proc proc rw 0 0\n"
		if c.on != nil {
			t["proc/1/mounts"] += fmt.Sprintf("%s %s dvs rw,relatime,nodename=%s 0 0\n", export, mountPoint,
				nodename(c.on))
			dvsClient(t, l, c, now)
		}
	}
	return t
}

// gatewayFiles are a gateway's, but for LWFS's trace. A protocol node's own are the addresses that it has; floating are
// those among them.
func gatewayFiles(l Layer, g *Gateway, floating []string, now time.Duration, start time.Time) format.Tree {
	t := format.Tree{}
	linux(t, now, start)
	read, written := g.calls[Read].bytes, g.calls[Write].bytes
	for name, text := range format.Infiniband(read, written, 8*linkRate, g.Health.Lanes, 0) {
		t["sys/class/infiniband/mlx5_0/ports/1/"+name] = text
	}
	heat := &g.Health.Heat
	for name, text := range format.Throttling(cores, heat.Throttlings(now), heat.Throttled(now), l != OldDVS) {
		t[name] = text
	}
	t["proc/net/snmp"] = format.SNMP(read/model.SegmentBytes, g.Health.Damage.Resent)
	if l == GPFS {
		t["proc/net/fib_trie"] = format.FibTrie(append([]string{g.Addr}, floating...))
		return t
	}
	at := format.Times{Now: start.Add(now), Since: start}
	const lustre, instance = "sys/kernel/debug/lustre/", "-ffff9a005db50000"
	t["sys/fs/lustre/version"] = release.String() + ".1\n"
	t[lustre+"llite/fw01"+instance+"/stats"] = release.Llite(at, &g.llite)
	for i := range g.osc {
		var lines []format.Line
		for _, s := range g.osc[i].List {
			lines = append(lines, format.Line{Stat: *s})
		}
		t[lustre+fmt.Sprintf("osc/fw01-OST%04x-osc%s/stats", i, instance)] = release.StatsFile(at, lines)
	}
	switch l {
	case NFS:
		t["proc/net/rpc/nfsd"] = nfsd(g)
	case DVS, OldDVS:
		dvsServer(t, l, g)
	}
	return t
}

// mountStats is an NFS mount's part of mountstats.
func mountStats(c *Client, server string, now time.Duration) string {
	var b strings.Builder
	r, w := &c.mount[Read], &c.mount[Write]
	fmt.Fprintf(&b, "device %s:%s mounted on %s with fstype nfs statvers=1.1\n", server, export, mountPoint)
	b.WriteString(
		"\topts:\trw,vers=3,rsize=524288,wsize=524288,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys," +
			"mountaddr=" + server + ",mountvers=3,local_lock=none\n")
	fmt.Fprintf(&b, "\t"+"age:\t%d\n\tcaps:\tcaps=0x3fc7,wtmult=512,dtsize=65536,bsize=0,namlen=255\n",
		int((now - c.mounted).Seconds()))
	b.WriteString("\tsec:\tflavor=1,pseudoflavor=1\n\tevents:\t0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
	fmt.Fprintf(&b, "\tbytes:\t%d %d 0 0 %d %d %d %d\n", r.bytes, w.bytes, r.bytes, w.bytes, r.bytes/4096,
		w.bytes/4096)
	n := r.n + w.n + c.mount[Meta].n
	sent := n + uint64(len(c.under)) // who gets no answer has sent more than it received
	fmt.Fprintf(&b, "\tRPC iostats version: 1.1  p/v: 100003/3 (nfs)\n\txprt:\ttcp 832 1 1 0 0 %d %d 0 %d 0 4 0 0\n",
		sent, n, sent)
	b.WriteString("\tper-op statistics\n")
	for i, name := range []string{"READ", "WRITE", "GETATTR"} {
		o := &c.mount[i]
		fmt.Fprintf(&b, "\t%12s: %d %d 0 %d %d 0 %d %d 0\n", name, o.n, o.n, 120*o.n, 120*o.n+o.bytes,
			o.took.Milliseconds(), o.took.Milliseconds())
	}
	return b.String() + "\n"
}

// nfsd is a kernel NFS server's net/rpc/nfsd. The counts of bytes are 32 bits wide, as on older kernels.
func nfsd(g *Gateway) string {
	r, w, m := &g.calls[Read], &g.calls[Write], &g.calls[Meta]
	n := r.n + w.n + m.n
	proc := make([]uint64, 22)
	proc[1], proc[6], proc[7] = m.n, r.n, w.n
	return fmt.Sprintf("rc 0 0 %d\nfh 0 0 0 0 0\nio %d %d\nth %d 0 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 "+
		"0.000 0.000\nra 32 0 0 0 0 0 0 0 0 0 0 0\nnet %d 0 %d 8\nrpc %d 0 0 0 0\nproc3 22 %s\nproc4 2 0 0\n"+
		"proc4ops 72 %s\n", n, uint32(r.bytes), uint32(w.bytes), threads, n, n, n, row(proc), row(make([]uint64, 72)))
}

func row(n []uint64) string { return strings.Trim(fmt.Sprint(n), "[]") }

// trace are the lines that an LWFS server has written since the last time: one sample a thousand calls.
func trace(g *Gateway, at time.Time) string {
	const every = 1000
	n := g.calls[Read].n + g.calls[Write].n + g.calls[Meta].n
	if n/every == g.traced/every && g.traced > 0 {
		return ""
	}
	g.traced = n
	head := fmt.Sprintf("%s [%s]  [Trace]: ", g.Addr, at.In(time.FixedZone("CST", 8*60*60)).Format(time.DateTime))
	tail := at.UTC().Format(" 2006-01-02T15:04:05.000Z\n")
	var b strings.Builder
	for _, k := range []struct {
		name    string
		buckets *[8]uint64
	}{{"Meta exe", &g.exec[Meta]}, {"Meta wait", &g.wait[Meta]}, {"Read exe", &g.exec[Read]},
		{"Read wait", &g.wait[Read]}, {"Write exe", &g.exec[Write]}, {"Write wait", &g.wait[Write]}} {
		b.WriteString(head + k.name + ": " + row(k.buckets[:]) + tail)
	}
	fmt.Fprintf(&b, "%squeue length: %d%s", head, len(g.waiting), tail)
	return b.String()
}
