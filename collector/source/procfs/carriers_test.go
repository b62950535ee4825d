package procfs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/collector"
)

// twoSeconds are the samples of the second reading of a node whose files change.
func twoSeconds(t *testing.T, proc func(second int) fstest.MapFS, sys fstest.MapFS) []collector.Sample {
	t.Helper()
	var r collector.Reading
	synctest.Test(t, func(t *testing.T) {
		files := fstest.MapFS{}
		s := New(Options{Root: "/proc", Files: files, Sys: sys,
			SkipLinks: []string{"lo", "bond*"}})
		defer s.Close()
		for second := range 2 {
			for name, f := range proc(second) {
				files[name] = f
			}
			r = collector.Reading{Now: time.Now()}
			if err := s.Read(t.Context(), &r); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
	})
	return r.Samples
}

// TestCarriersCountOnce: bytes count where a card or a disk moved them, and not again where what is built on it passes
// them on; what has no card or disk counts as it is.
func TestCarriersCountOnce(t *testing.T) {
	for name, c := range map[string]struct {
		links, disks []string
		sys          []string
		link, disk   float64
	}{
		"bridge": {links: []string{"eth0", "br0", "lo"}, sys: []string{cardOf("eth0"), "class/net/br0/type"},
			link: 100},
		"team": {links: []string{"eth0", "eth1", "team0"}, sys: []string{cardOf("eth0"), cardOf("eth1"),
			"class/net/team0/type"}, link: 200},
		"containers": {links: []string{"eth0", "cali9", "cni0", "vxlan.calico", "cilium_host", "ovs-system", "wg0",
			"tun0", "macvlan0"}, sys: []string{cardOf("eth0")}, link: 100},
		"a virtual function": {links: []string{"eth0", "vf0"},
			sys: []string{cardOf("eth0"), "class/net/vf0/device/physfn/vendor"}, link: 200},
		"a function of a switch": {links: []string{"eth0", "eth0_0"}, sys: []string{cardOf("eth0"), cardOf("eth0_0"),
			"class/net/eth0/phys_port_name=p0", "class/net/eth0_0/phys_port_name=c1pf0vf3"}, link: 100},
		"no card at all": {links: []string{"eth0", "vlan5"},
			sys: []string{"class/net/eth0/type", "class/net/vlan5/lower_eth0/type"}, link: 100},
		"nothing of sys":     {links: []string{"eth0"}, link: 100},
		"names with a colon": {links: []string{"eth0", "eth0:1", "tun10:2"}, sys: []string{cardOf("eth0")}, link: 100},
		"parts of disks of all kinds": {disks: []string{"dasda", "dasda1", "nbd0", "nbd0p1", "rbd1", "rbd1p2", "pmem0",
			"pmem0p1", "cciss/c0d0", "cciss/c0d0p1"}, disk: 500},
		"ways that a maker's driver joins": {disks: []string{"sda", "sdb", "sda1", "emcpowera", "emcpowera1", "VxDMP1",
			"VxVM17", "sddlmaa", "vpatha", "tdmpa"}, disk: 200},
		"a disk that a program serves": {disks: []string{"nvme0n1", "ublkb0"}, disk: 100},
		"a virtual machine's card and its function of the host's": {links: []string{"eth0", "enP1s1"},
			sys: []string{cardOf("eth0"), "class/net/eth0/lower_enP1s1/type", cardOf("enP1s1")}, link: 100},
		"a card that counts RDMA apart": {links: []string{"eth0"}, sys: []string{cardOf("eth0"),
			"class/infiniband/efa_0/ports/1/hw_counters/rx_bytes=@",
			"class/infiniband/efa_0/ports/1/hw_counters/tx_bytes=@"}, link: 200},
		"a card that counts all": {links: []string{"eth0", "hsn0", "hsn1"}, sys: []string{cardOf("eth0"),
			cardOf("hsn0"), cardOf("hsn1"), "class/cxi/cxi0/device/telemetry/hni_sts_rx_ok_octets=@@1750000000.25",
			"class/cxi/cxi0/device/telemetry/hni_sts_tx_ok_octets=@@1750000000.25"}, link: 300},
		"xen's parts":                   {disks: []string{"xvda1", "xvda2"}, disk: 200},
		"a disk's parts":                {disks: []string{"xvda", "xvda1", "nvme0n1", "nvme0n1p1"}, disk: 200},
		"ways to a disk, counted at it": {disks: []string{"nvme0n1", "nvme0c0n1", "nvme0c1n1"}, disk: 100},
		"ways to a disk, counted there": {disks: []string{"nvme1n1 ", "nvme1c0n1", "nvme1c1n1"}, disk: 200},
		"made of others": {disks: []string{"sda", "sdb", "mpatha", "dm-1"},
			sys: []string{"block/mpatha/slaves/sda/size", "block/mpatha/slaves/sdb/size"}, disk: 200},
	} {
		sys := fstest.MapFS{}
		for _, f := range c.sys {
			name, text, _ := strings.Cut(f+"=1", "=")
			text, _, _ = strings.Cut(text, "=")
			sys[name] = file(text + "\n")
		}
		counters := maps.Clone(sys)
		got := twoSeconds(t, func(second int) fstest.MapFS {
			for name, f := range counters {
				sys[name] = file(strings.Replace(string(f.Data), "@", fmt.Sprint(1000+100*second), 1))
			}
			dev, disks := "Inter-| R | T\n face |b |b\n", ""
			for _, l := range c.links {
				dev += fmt.Sprintf("%s: %d%s\n", l, 1000+100*second, strings.Repeat(" 0", 15))
			}
			for i, d := range c.disks {
				sectors := 1000 + 100*second
				if strings.HasSuffix(d, " ") { // it counts nothing itself
					d, sectors = d[:len(d)-1], 0
				}
				disks += fmt.Sprintf(" 8 %d %s 0 0 %d 0 0 0 0 0 0 0 0\n", i, d, sectors)
			}
			return fstest.MapFS{"net/dev": file(dev), "diskstats": file(disks)}
		}, sys)
		link, _ := collector.SampleOf(got, collector.LinkRxBytes)
		disk, _ := collector.SampleOf(got, collector.DiskReadBytes)
		if link != c.link || disk != 512*c.disk {
			t.Errorf("%s: %g bytes by links, want %g; %g by disks, want %g", name, link, c.link, disk, 512*c.disk)
		}
	}
}

func cardOf(name string) string { return "class/net/" + name + "/device/vendor" }

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// TestFieldOfNodes reads the trees of other projects' bug reports, where they lie beside the tree.
func TestFieldOfNodes(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "shared", "field")
	if _, err := os.Stat(root); errors.Is(err, os.ErrNotExist) {
		t.Skip("the trees are not here")
	}
	for name, want := range map[string]map[collector.Metric]float64{
		"link-stacked-counted-twice/link_br0":    {collector.LinkRxBytes: 1e8},
		"link-stacked-counted-twice/link_team0":  {collector.LinkRxBytes: 1e8},
		"link-stacked-counted-twice/link_cni":    {collector.LinkRxBytes: 1e8},
		"link-stacked-counted-twice/link_ovs_wg": {collector.LinkRxBytes: 1e8},
		"disk-xen-xvda1-alone":                   {collector.DiskReadBytes: 1.02e8, collector.DiskBusyRatio: .5},
		"nfs-same-mount-counted-n-times": {collector.ReadBytes: 1e8, collector.WriteBytes: 5e7,
			collector.ReadOps: 100},
		"nfsd-one-unknown-line-loses-all": {collector.ReadBytes: 1e8, collector.WriteBytes: 5e7},
	} {
		sys := fstest.MapFS{}
		devices, _ := filepath.Glob(filepath.Join(root, name, "a", "sys", "class", "net", "*", "device"))
		for _, d := range devices {
			sys[cardOf(filepath.Base(filepath.Dir(d)))] = file("1\n")
		}
		got := twoSeconds(t, func(second int) fstest.MapFS {
			files, dir := fstest.MapFS{}, filepath.Join(root, name, string("ab"[second]), "proc")
			for _, f := range []string{"net/dev", "diskstats", "self/mountstats", "net/rpc/nfsd"} {
				if text, err := os.ReadFile(filepath.Join(dir, f)); err == nil {
					files[f] = &fstest.MapFile{Data: text}
				}
			}
			return files
		}, sys)
		for m, v := range want {
			if is, _ := collector.SampleOf(got, m); is < .99*v || is > 1.01*v {
				t.Errorf("%s: %v is %g, want %g", name, m, is, v)
			}
		}
	}
}
