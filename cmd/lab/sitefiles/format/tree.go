package format

import (
	"fmt"
	"path"
	"strings"
	"time"

	"fairway/cmd/lab/sitefiles/model"
)

// Writer writes the trees of a site's nodes.
type Writer struct {
	Release Release
	Start   time.Time // of the site
}

// Tree is a node's files by their path below its root.
type Tree map[string]string

func (t Tree) add(prefix string, files map[string]string) {
	for name, text := range files {
		t[prefix+name] = text
	}
}

// Fast are the files that are worth reading many times a second.
func (w Writer) Fast(n *model.Node) Tree {
	dir := w.Release.LNetDir()
	return Tree{
		dir + "stats":   LNetStats(n.LNet),
		dir + "nis":     NIs(n.NIs),
		dir + "buffers": Buffers(n.Buffers),
	}
}

// LNet are all files of LNet.
func (w Writer) LNet(n *model.Node) Tree {
	dir := w.Release.LNetDir()
	t := w.Fast(n)
	t[dir+"routes"] = Routes(n.Role == model.Router, n.Table.Routes)
	t[dir+"peers"] = Peers(n.Peers)
	return t
}

// All is the whole tree.
func (w Writer) All(n *model.Node, now time.Duration) Tree {
	t := w.LNet(n)
	w.Linux(n, now, t)
	at := Times{Now: w.Start.Add(now), Since: w.Start.Add(n.Since)}
	switch n.Role {
	case model.Client:
		w.client(n, at, t)
	case model.OSS:
		w.objects(n, at, t)
	case model.MDS:
		w.metadata(n, at, t)
	}
	return t
}

// instance is the address that the names of a mount's directories end in.
func instance(n *model.Node) string { return fmt.Sprintf("ffff9a%02x5db50000", n.Index%256) }

func (w Writer) client(n *model.Node, at Times, t Tree) {
	stats, param := w.Release.statsDir(), w.Release.paramDir()
	t[param+"version"] = fmt.Sprintf("%s.%d\n", w.Release, 1)
	t[stats+"llite/"+model.FSName+"-"+instance(n)+"/stats"] = w.Release.Llite(at, &n.Front.Ops)
	for _, im := range n.Front.Imports {
		kind := "osc"
		if im.Target.Meta() {
			kind = "mdc"
		}
		name := im.Target.Name + "-" + kind + "-" + instance(n)
		dir := path.Join(kind, name) + "/"
		t[stats+dir+"stats"] = w.Release.StatsFile(at, full(&im.Stats))
		wait := im.Stats.Get("req_waittime")
		t[stats+dir+"import"] = Import(name, im.Target.Name, im.Target.NID(), im.InFlight, wait.Sum/max(1, wait.N))
	}
	t["proc/self/mounts"] = fmt.Sprintf("%s:/%s /%s lustre rw,flock,lazystatfs 0 0\n",
		n.Front.Imports[len(n.Front.Imports)-1].Target.NID(), model.FSName, model.FSName)
}

func (w Writer) service(dir string, s *model.Service, at Times, t Tree) {
	t[w.Release.statsDir()+dir+"/stats"] = w.Release.StatsFile(at, full(&s.Stats))
	t[w.Release.paramDir()+dir+"/threads_started"] = fmt.Sprintf("%d\n", s.Threads)
}

func (w Writer) objects(n *model.Node, at Times, t Tree) {
	for _, o := range n.Server.Targets {
		dir := w.Release.serverDir() + "obdfilter/" + o.Name + "/"
		t[dir+"stats"] = w.Release.Target(at, &o.Stats)
		t[dir+"job_stats"] = w.Release.JobStats(at, w.Start, o.Jobs, ostOps)
		t[dir+"num_exports"] = fmt.Sprintf("%d\n", o.Exports())
	}
	w.service("ost/OSS/ost_io", &n.Server.Service, at, t)
}

func (w Writer) metadata(n *model.Node, at Times, t Tree) {
	for _, m := range n.Server.Targets {
		dir := w.Release.serverDir() + "mdt/" + m.Name + "/"
		t[dir+"md_stats"] = w.Release.Target(at, &m.Stats)
		t[dir+"job_stats"] = w.Release.JobStats(at, w.Start, m.Jobs, mdtOps)
		t[dir+"num_exports"] = fmt.Sprintf("%d\n", m.Exports())
	}
	w.service("mds/MDS/mdt", &n.Server.Service, at, t)
}

// Linux adds what the kernel shows of the node: its links, its processors and the threads of the network drivers.
func (w Writer) Linux(n *model.Node, now time.Duration, t Tree) {
	up := now - n.Since
	t["proc/net/dev"] = NetDev(n.NIs)
	t["proc/stat"] = CPUStat(n.CPU, up, w.Start.Add(n.Since))
	t["proc/pressure/cpu"] = Pressure(n.CPU.Stalls, float64(n.CPU.Stalls)/float64(max(up, 1)), false)
	t["proc/pressure/io"] = Pressure(0, 0, true)
	t["proc/pressure/memory"] = Pressure(0, 0, true)
	const timed = Release(14) // those releases run on kernels that time throttling
	if n.Role == model.Router {
		heat := &n.Health.Heat
		t.add("", Throttling(n.CPU.Cores, heat.Throttlings(now), heat.Throttled(now), w.Release >= timed))
	}
	for i, ni := range n.NIs {
		switch ni.Net {
		case model.ServerNet:
			t.add("sys/class/infiniband/mlx5_0/ports/1/",
				Infiniband(ni.InBytes, ni.OutBytes, ni.RateBits, n.Health.Lanes, n.Health.Damage.Packets))
		case model.ClientNet:
			t["proc/net/snmp"] = SNMP(ni.OutBytes/model.SegmentBytes, n.Health.Damage.Resent)
		}
		t.add("sys/class/net/"+ni.Link+"/", NetClass(ni.Net == model.ServerNet, n.Health.Lanes*ni.RateBits))
		thread := "socknal_sd%02d_00"
		if strings.HasPrefix(ni.Net, "o2ib") {
			thread = "kiblnd_sd_%02d_00"
		}
		for k := range n.CPU.Cores {
			pid := 2000 + 10*i + k
			threads := time.Duration(len(n.NIs) * n.CPU.Cores)
			t[fmt.Sprintf("proc/%d/comm", pid)] = fmt.Sprintf(thread+"\n", k)
			t[fmt.Sprintf("proc/%d/schedstat", pid)] = SchedStat(n.CPU.Ran/threads, n.CPU.Waited/threads,
				n.CPU.Slices/uint64(threads))
		}
	}
}
