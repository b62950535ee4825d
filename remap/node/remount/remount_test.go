package remount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"fairway/cmd/lab/conform/drivertest"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/remap/driver/agent"
	"fairway/remap/node"
)

var sources = map[topology.ForwarderID]string{"fwd1": "10.0.0.1:/export", "fwd2": "10.0.0.2:/export"}

// kernel is one node's table of mounts behind mount and umount.
type kernel struct {
	mu     sync.Mutex // guards everything that follows
	source string     // at /pfs; empty: nothing
	orders []string
	refuse string
}

func (k *kernel) run(ctx context.Context, argv ...string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	line := strings.Join(argv, " ")
	k.orders = append(k.orders, line)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case k.refuse != "" && strings.Contains(line, k.refuse):
		return nil, fmt.Errorf("%s: exit status 32", line)
	case argv[0] == "umount":
		k.source = ""
	default:
		k.source = argv[len(argv)-2]
	}
	return nil, nil
}

// Open makes it the root of a file system with proc.
func (k *kernel) Open(name string) (fs.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	text := "proc /proc proc rw 0 0\n"
	if k.source != "" {
		text += k.source + " /pfs nfs rw 0 0\n"
	}
	return fstest.MapFS{"proc/self/mounts": {Data: []byte(text)}}.Open(name)
}

func (k *kernel) mover() *Mover {
	return &Mover{Point: "/pfs", Type: "nfs", Options: "vers=4.2", Sources: sources, Run: k.run, Root: k}
}

// The new server refuses and the old one does not answer either: the order ends, and says what is mounted.
func TestMountingTheOldSourceAgainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{source: sources["fwd1"], refuse: "mount -t nfs -o vers=4.2 10.0.0.2"}
		m := k.mover()
		m.Run = func(ctx context.Context, argv ...string) ([]byte, error) {
			if argv[0] == "mount" && strings.Contains(strings.Join(argv, " "), "10.0.0.1") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return k.run(ctx, argv...)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		_, err := m.Move(ctx, wire.RemapOrder{Forwarder: "fwd2", Addr: "10.0.0.2"})
		if took := time.Since(begun); took != backWithin {
			t.Errorf("it took %s, want %s", took, backWithin)
		}
		if err == nil || !strings.Contains(err.Error(), "nothing is mounted at /pfs now: 10.0.0.1:/export") {
			t.Errorf("%v", err)
		}
	})
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		kernels, handlers := map[topology.NodeID]*kernel{}, map[topology.NodeID]map[string]stream.OrderHandler{}
		var moves []remap.Move
		for i := range 12 {
			n := topology.NodeID(fmt.Sprintf("cn%d", i))
			kernels[n] = &kernel{source: sources["fwd1"]}
			handlers[n] = node.Handlers(kernels[n].mover(), true)
			moves = append(moves, remap.Move{Node: n, From: "fwd1", To: "fwd2"})
		}
		agents := drivertest.NewAgents(handlers)
		addr := func(f topology.ForwarderID) (string, bool) { a, ok := sources[f]; return a, ok }
		return drivertest.Subject{
			Driver: agent.New(agents, addr, driver.Fan{Parallel: 8, Tries: 2, Backoff: time.Millisecond,
				Timeout: 5 * time.Second}),
			Moves: moves,
			At: func(*testing.T) topology.Mapping {
				at := topology.Mapping{}
				for n, k := range kernels {
					at[n], _ = node.ByAddress(sources, k.source)
				}
				return at
			},
			Changes: func() (n int) {
				for _, k := range kernels {
					n += len(k.orders)
				}
				return n
			},
			Break: agents.Break, Mend: agents.Mend, Hang: agents.Hang,
		}
	})
}

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		name   string
		at     string
		order  wire.RemapOrder
		refuse string
		orders string
		end    string
		err    string
	}{
		{"move", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2"}, "",
			"umount /pfs; mount -t nfs -o vers=4.2 10.0.0.2:/export /pfs", sources["fwd2"], ""},
		{"forced", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2", Force: true}, "",
			"umount -l /pfs; mount -t nfs -o vers=4.2 10.0.0.2:/export /pfs", sources["fwd2"], ""},
		{"nothing mounted", "", wire.RemapOrder{Forwarder: "fwd2"}, "",
			"mount -t nfs -o vers=4.2 10.0.0.2:/export /pfs", sources["fwd2"], ""},
		{"already there", sources["fwd2"], wire.RemapOrder{Forwarder: "fwd2"}, "", "", sources["fwd2"], ""},
		{"busy", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2"}, "umount", "umount /pfs", sources["fwd1"],
			"umount /pfs: exit status 32"},
		{"the new server fails", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2"}, "10.0.0.2",
			"umount /pfs; mount -t nfs -o vers=4.2 10.0.0.2:/export /pfs; mount -t nfs -o vers=4.2 10.0.0.1:/export " +
				"/pfs", sources["fwd1"], "10.0.0.2:/export /pfs: exit status 32"},
		{"unknown", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd9"}, "", "", sources["fwd1"],
			"[orders.forwarders]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &kernel{source: c.at, refuse: c.refuse}
			a, err := k.mover().Move(t.Context(), c.order)
			if got := strings.Join(k.orders, "; "); got != c.orders || k.source != c.end {
				t.Errorf("it says %q and ends at %s", got, k.source)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || err == nil &&
				a.Forwarder != c.order.Forwarder {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
	if _, err := (&kernel{}).mover().Route(t.Context()); !errors.Is(err, node.ErrNoRoute) {
		t.Errorf("nothing mounted: %v", err)
	}
	if _, err := (&kernel{source: "other:/x"}).mover().Route(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "other:/x") {
		t.Errorf("a strange mount: %v", err)
	}
}

// The server of a DVS mount is one of its options, and the kernel's table names the path alone.
func TestDVS(t *testing.T) {
	root := fstest.MapFS{"sys/kernel/debug/dvs/mounts/0/mount": {
		Data: []byte("local-mount /other\nactive_nodes c0-0c0s0n9\n")}}
	var orders []string
	m := &Mover{Point: "/pfs", Type: DVS, Path: "/lustre", Options: "ro", Root: root,
		Sources: map[topology.ForwarderID]string{"dvs1": "c0-0c0s0n1", "dvs2": "c0-0c0s0n2"},
		Run: func(_ context.Context, argv ...string) ([]byte, error) {
			orders = append(orders, strings.Join(argv, " "))
			delete(root, "sys/kernel/debug/dvs/mounts/1/mount")
			if argv[0] == "mount" {
				_, server, _ := strings.Cut(argv[4], "nodename=")
				root["sys/kernel/debug/dvs/mounts/1/mount"] = &fstest.MapFile{
					Data: []byte("local-mount /pfs\nactive_nodes " + server + "\ninactive_nodes\n")}
			}
			return nil, nil
		}}
	if _, err := m.Route(t.Context()); !errors.Is(err, node.ErrNoRoute) {
		t.Errorf("nothing mounted: %v", err)
	}
	for _, f := range []topology.ForwarderID{"dvs1", "dvs2"} {
		if a, err := m.Move(t.Context(), wire.RemapOrder{Forwarder: f}); err != nil || a.Forwarder != f {
			t.Errorf("%+v, %v", a, err)
		}
	}
	want := "mount -t dvs -o ro,path=/lustre,nodename=c0-0c0s0n1 /lustre /pfs; umount /pfs; " +
		"mount -t dvs -o ro,path=/lustre,nodename=c0-0c0s0n2 /lustre /pfs"
	if got := strings.Join(orders, "; "); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	root["sys/kernel/debug/dvs/mounts/1/mount"].Data = []byte("local-mount /pfs\nactive_nodes c0-0c0s0n1 c0-0c0s0n2\n")
	if _, err := m.Route(t.Context()); err == nil || !strings.Contains(err.Error(), "c0-0c0s0n1 c0-0c0s0n2") {
		t.Errorf("a mount over two servers: %v", err)
	}
}

// TestRealMount moves a real mount: a tmpfs, whose source may be any name.
func TestRealMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: mounting needs root")
	}
	dir := t.TempDir() + "/p f s" // the kernel escapes blanks
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m := &Mover{Point: dir, Type: "tmpfs", Options: "size=1m", Sources: sources, Root: os.DirFS("/")}
	t.Cleanup(func() {
		for unix.Unmount(dir, unix.MNT_DETACH) == nil {
		}
	})
	for _, f := range []topology.ForwarderID{"fwd1", "fwd2", "fwd2", "fwd1"} {
		a, err := m.Move(t.Context(), wire.RemapOrder{Forwarder: f, Addr: "-"})
		if err != nil && strings.Contains(err.Error(), "permission denied") {
			t.Skipf("skipped: this root may not mount: %v", err)
		}
		if err != nil || a.Forwarder != f {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	open, err := os.Create(dir + "/open")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := m.Move(t.Context(), wire.RemapOrder{Forwarder: "fwd2", Addr: "-"}); err == nil ||
		!strings.Contains(err.Error(), "busy") {
		t.Errorf("a busy mount was moved: %v", err)
	}
	if a, err := m.Move(t.Context(), wire.RemapOrder{Forwarder: "fwd2", Addr: "-", Force: true}); err != nil ||
		a.Forwarder != "fwd2" {
		t.Errorf("forced: %+v, %v", a, err)
	}
}
