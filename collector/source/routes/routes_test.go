package routes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/sourcetest"
	"fairway/collector"
	"fairway/collector/topology"
)

const lnetRoutes = `Routing disabled
net      hops prio   state router
o2ib1    4294967295    0      up 10.0.0.1@tcp
o2ib1    4294967295    0      up 10.0.0.2@tcp
o2ib1    4294967295    0    down 10.0.0.3@tcp
o2ib1    4294967295   10      up 10.0.0.4@tcp
o2ib9    4294967295    0      up 10.0.0.4@tcp
`

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

var gateways = map[topology.ForwarderID]string{"r1": "10.0.0.1@tcp", "r2": "10.0.0.2@tcp", "r3": "10.0.0.3@tcp",
	"r4": "10.0.0.4@tcp"}

// read takes one second.
func read(t *testing.T, s *Source, second int) []collector.Route {
	t.Helper()
	r := collector.Reading{Now: time.Unix(1795000000+int64(second), 0)}
	if err := s.Read(t.Context(), &r); err != nil && !errors.Is(err, collector.ErrNoData) {
		t.Fatal(err)
	}
	if !r.RoutesComplete {
		t.Error("it does not say that these are all")
	}
	if s.under != nil {
		synctest.Wait() // for the count under way
	}
	return r.Routes
}

// TestLNet: the routers that are up and best are the node's; its shares are even until its messages were counted, and
// then as these went.
func TestLNet(t *testing.T) { synctest.Test(t, testLNet) }

func testLNet(t *testing.T) {
	tree := fstest.MapFS{"sys/kernel/debug/lnet/routes": file(lnetRoutes)}
	sent := map[string]int{"10.0.0.1@tcp": 1000, "10.0.0.2@tcp": 5000}
	calls := 0
	s := New(Options{Kind: LNet, Node: "cn1", Root: tree, Forwarders: gateways, Net: "o2ib1",
		Run: func(context.Context, ...string) ([]byte, error) {
			calls++
			out := []byte("peer:\n")
			for nid, n := range sent {
				out = fmt.Appendf(out, "    - primary nid: %s\n      peer ni:\n        - nid: %s\n          "+
					"statistics:\n              send_count: %d\n              recv_count: 7\n", nid, nid, n)
			}
			return out, nil
		}})
	even := []collector.Route{{Client: "cn1", Forwarder: "r1", Share: 0.5, Assumed: true},
		{Client: "cn1", Forwarder: "r2", Share: 0.5, Assumed: true}}
	if got := read(t, s, 0); !slices.Equal(got, even) {
		t.Errorf("before anything was counted: %+v", got)
	}
	for second := 1; second <= 11; second++ {
		sent["10.0.0.1@tcp"] += 30
		sent["10.0.0.2@tcp"] += 10
		got := read(t, s, second)
		if second < 11 && !slices.Equal(got, even) {
			t.Errorf("after %d s: %+v", second, got)
		}
		if second == 11 && (len(got) != 2 || math.Abs(got[0].Share-0.75) > 1e-9 || got[0].Assumed) {
			t.Errorf("measured: %+v", got)
		}
	}
	if calls != 2 {
		t.Errorf("lnetctl was run %d times in 11 s, want 2", calls)
	}
	for second := 12; second <= 12+keepFor+2*countEvery; second += countEvery { // the node is quiet
		got := read(t, s, second)
		if want := second > 10+keepFor; got[0].Assumed != want {
			t.Errorf("after %d s of silence: %+v", second-10, got)
		}
	}
	tree["sys/kernel/debug/lnet/routes"] = file(strings.Replace(lnetRoutes, "  up 10.0.0.1", "down 10.0.0.1", 1))
	if got := read(t, s, 700); len(got) != 1 || got[0].Forwarder != "r2" || got[0].Share != 0 {
		t.Errorf("with one router left: %+v", got)
	}
}

// TestNFS: a node with mounts of two gateways uses both, as their bytes went; one that is named by a host name is known
// by its address.
func TestNFS(t *testing.T) { synctest.Test(t, testNFS) }

func testNFS(t *testing.T) {
	stats := func(a, b int) *fstest.MapFile {
		one := "device %s mounted on %s with fstype nfs4 statvers=1.1\n\tbytes:\t1 2 3 4 %d 600 7 8\n"
		return file("device sysfs mounted on /sys with fstype sysfs\n" + fmt.Sprintf(one, "gw1:/pfs", "/pfs1", a) +
			fmt.Sprintf(one, "gw2:/pfs", "/pfs2", b) + fmt.Sprintf(one, "gw2:/pfs", "/home/ann", b))
	}
	tree := fstest.MapFS{"proc/self/mounts": file("sysfs /sys sysfs rw 0 0\n" +
		"gw1:/pfs /pfs1 nfs4 rw,vers=4.1,clientaddr=10.9.0.1,addr=10.9.0.11 0 0\n" +
		"10.9.0.12:/pfs /pfs2 nfs rw,vers=3 0 0\n10.9.0.12:/pfs /home/ann nfs rw,vers=3 0 0\n" +
		"other:/home /home nfs rw,addr=10.9.0.99 0 0\n"),
		"proc/self/mountstats": stats(1000, 1000)}
	s := New(Options{Kind: NFS, Node: "cn1", Root: tree,
		Forwarders: map[topology.ForwarderID]string{"gw1": "10.9.0.11", "gw2": "10.9.0.12"}})
	if got := read(t, s, 0); len(got) != 2 || got[0].Share != 0.5 || !got[0].Assumed {
		t.Errorf("at first: %+v", got)
	}
	tree["proc/self/mountstats"] = stats(1900, 1100)
	read(t, s, 10)
	if got := read(t, s, 11); len(got) != 2 || math.Abs(got[0].Share-0.9) > 1e-9 || got[0].Assumed {
		t.Errorf("measured: %+v", got)
	}
	delete(tree, "proc/self/mounts")
	if got := read(t, s, 20); len(got) != 0 {
		t.Errorf("without a mount: %+v", got)
	}
}

// TestNamesOfNFSServers: a server is the same however its address is written, or by the name it was mounted with.
func TestNamesOfNFSServers(t *testing.T) {
	for name, mount := range map[string]string{
		"2001:DB8::0011":   "[2001:db8::11]:/pfs /pfs nfs4 rw,addr=2001:db8::11 0 0\n",
		"[2001:db8::11]":   "[2001:db8::11]:/pfs /pfs nfs4 rw,vers=4.2 0 0\n",
		"::ffff:10.9.0.11": "gw1:/pfs /pfs nfs4 rw,addr=10.9.0.11 0 0\n",
		"gw1":              "gw1:/pfs /pfs nfs4 rw,addr=10.9.0.11 0 0\n",
	} {
		s := New(Options{Kind: NFS, Node: "cn1", Root: fstest.MapFS{"proc/self/mounts": file(mount)},
			Forwarders: map[topology.ForwarderID]string{"f1": name}})
		if got := read(t, s, 0); len(got) != 1 || got[0].Forwarder != "f1" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestDVS: the active servers of a mount are the node's.
func TestDVS(t *testing.T) {
	tree := fstest.MapFS{"proc/fs/dvs/mounts/0/mount": file("local-mount /pfs\nactive_nodes c0-0c0s0n2 c0-0c0s1n2\n" +
		"inactive_nodes c0-0c0s2n2\nloadbalance_node c0-0c0s0n2\n")}
	s := New(Options{Kind: DVS, Node: "cn1", Root: tree, Forwarders: map[topology.ForwarderID]string{
		"d1": "c0-0c0s0n2", "d2": "c0-0c0s1n2", "d3": "c0-0c0s2n2"}})
	want := []collector.Route{{Client: "cn1", Forwarder: "d1", Share: 0.5, Assumed: true},
		{Client: "cn1", Forwarder: "d2", Share: 0.5, Assumed: true}}
	if got := read(t, s, 0); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestConformance: what each kind looks at keeps the rules of every source.
func TestConformance(t *testing.T) {
	const dvsMount = "local-mount /pfs\nactive_nodes c0-0c0s0n2\n"
	for kind, tree := range map[string]fstest.MapFS{
		LNet: {"sys/kernel/debug/lnet/routes": file(lnetRoutes)},
		NFS: {"proc/self/mounts": file("gw1:/pfs /pfs1 nfs4 rw,addr=10.0.0.1@tcp 0 0\n" +
			"gw2:/pfs /pfs2 nfs4 rw,addr=10.0.0.2@tcp 0 0\n")},
		DVS: {"proc/fs/dvs/mounts/0/mount": file(dvsMount)},
	} {
		t.Run(kind, func(t *testing.T) {
			names := maps.Clone(gateways)
			names["r5"] = "c0-0c0s0n2"
			sourcetest.Run(t, sourcetest.Suite{
				New: func(root fs.FS) collector.Source {
					return New(Options{Kind: kind, Node: "cn1", Root: root, Forwarders: names})
				},
				First: tree, Second: tree, NoCounters: true,
				// Lists of mounts of any kind: what is not of NFS or DVS is passed over.
				Tolerated: []string{"proc/self/mounts", "proc/fs/dvs/mounts/0/mount"},
			})
		})
	}
}

// peersShown is what lnetctl prints of a node with one router, as 2.18 does it.
func peersShown(sent int) string {
	return fmt.Sprintf("peer:\n-     primary nid: 10.0.0.1@tcp\n      peer ni:\n      -     nid: 10.0.0.1@tcp\n"+
		"            statistics:\n                  send_count: %d\n", sent)
}

// TestToolThatFails: an lnetctl that fails, or prints what is not a count, leaves the routes with even shares that are
// marked, and says so in the status until a count has ended well. Without the tool nothing has failed.
func TestToolThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		err  error
		want string
	}{
		"fails":   {err: errors.New("lnetctl: timed out"), want: "lnetctl: timed out"},
		"lies":    {out: peersShown(-3), want: "is not a count"},
		"says no": {out: "show:\n    - peer:\n          errno: -1\n", want: "no section"},
		"others":  {out: strings.ReplaceAll(peersShown(3), "10.0.0.", "10.9.9."), want: "none of the 2 routers"},
		"missing": {err: &exec.Error{Name: "lnetctl", Err: exec.ErrNotFound}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out, failed := c.out, c.err
				s := New(Options{Kind: LNet, Node: "cn1", Forwarders: gateways, Net: "o2ib1",
					Root: fstest.MapFS{"sys/kernel/debug/lnet/routes": file(lnetRoutes)},
					Run:  func(context.Context, ...string) ([]byte, error) { return []byte(out), failed }})
				second := func() (collector.Reading, error) {
					r := collector.Reading{Now: time.Now()}
					err := s.Read(t.Context(), &r)
					time.Sleep(countEvery * time.Second)
					synctest.Wait()
					return r, err
				}
				if _, err := second(); err != nil {
					t.Errorf("before anything was counted: %v", err)
				}
				r, err := second()
				if len(r.Routes) != 2 || !r.Routes[0].Assumed || r.Routes[0].Share != 0.5 || !r.RoutesComplete {
					t.Errorf("routes %+v", r.Routes)
				}
				if got := fmt.Sprint(err); (err != nil) != (c.want != "") || !strings.Contains(got, c.want) &&
					err != nil {
					t.Errorf("the status is %q, want %q", got, c.want)
				}
				out, failed = peersShown(3), nil
				_, _ = second()
				if _, err := second(); err != nil {
					t.Errorf("after a count that ended well: %v", err)
				}
			})
		})
	}
}

// TestTableThatChanges: LNet's routes are read again when a line was taken meanwhile, and a table that never stands
// still is named.
func TestTableThatChanges(t *testing.T) {
	changes := 0
	kernel := sourcetest.Kernel{FS: fstest.MapFS{"sys/kernel/debug/lnet/routes": file(lnetRoutes)},
		Changes: func(string) bool { changes--; return changes >= 0 }}
	s := New(Options{Kind: LNet, Node: "cn1", Root: kernel, Forwarders: gateways, Net: "o2ib1"})
	for _, c := range []struct{ changes, routes int }{{0, 2}, {1, 2}, {2, 2}, {1000, 0}, {0, 2}} {
		changes = c.changes
		var r collector.Reading
		err := s.Read(t.Context(), &r)
		if len(r.Routes) != c.routes || (err != nil) != (c.routes == 0) {
			t.Errorf("after %d changes: %+v, %v", c.changes, r.Routes, err)
		}
		if err != nil && !strings.Contains(err.Error(), "changed each time") {
			t.Errorf("the status is %v", err)
		}
	}
}

func FuzzRoutes(f *testing.F) {
	f.Add(lnetRoutes, "send_count: 4\nrecv_count: 5\n")
	f.Add("gw:/p /p nfs rw,addr=10.0.0.1@tcp 0 0\n", "device gw:/p mounted on /p with fstype nfs\nbytes: 1 2 3 4 5 6")
	f.Fuzz(func(t *testing.T, a, b string) {
		tree := fstest.MapFS{"sys/kernel/debug/lnet/routes": file(a), "proc/self/mounts": file(a),
			"proc/self/mountstats": file(b), "proc/fs/dvs/mounts/1/mount": file(a)}
		for _, kind := range Kinds() {
			s := New(Options{Kind: kind, Node: "cn1", Root: tree, Forwarders: gateways,
				Run: func(context.Context, ...string) ([]byte, error) { return []byte(b), nil }})
			for second := range 2 {
				r := collector.Reading{Now: time.Unix(int64(10*second), 0)}
				_ = s.Read(t.Context(), &r)
				sum := 0.0
				for _, one := range r.Routes {
					sum += one.Share
				}
				if sum > 1+1e-9 {
					t.Errorf("shares of %g together: %+v", sum, r.Routes)
				}
			}
		}
	})
}
