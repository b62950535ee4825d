package remount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
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
	mounts map[string]mounted
	below  mounted // what is beneath /pfs
	next   int
	orders []string
	refuse string
	grants string       // options that a server adds to those asked for
	files  fstest.MapFS // processes
}

const options = "rw,relatime,vers=4.2,nconnect=4,hard,addr="

func at(t *testing.T, source string) *kernel {
	k := &kernel{mounts: map[string]mounted{}, files: fstest.MapFS{}}
	if source != "" {
		server, _ := split(source)
		k.mounts["/pfs"] = mounted{ID: 7, Device: "0:7", Source: source, Type: "nfs4", Options: options + server}
	}
	k.next = 8
	return k
}

func (k *kernel) order(line string) error {
	k.orders = append(k.orders, line)
	if slices.ContainsFunc(strings.Fields(k.refuse), func(word string) bool { return strings.Contains(line, word) }) {
		return fmt.Errorf("%s: %w", line, unix.EBUSY)
	}
	return nil
}

func (k *kernel) run(ctx context.Context, argv ...string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := k.order(strings.Join(argv, " ")); err != nil {
		return nil, err
	}
	n := len(argv)
	server, _ := split(argv[n-2])
	server = strings.ReplaceAll(server, "gw1.site", "10.0.0.1")
	words := strings.TrimSuffix(argv[n-3], ",retry=0")
	k.mounts[argv[n-1]] = mounted{ID: k.next, Device: fmt.Sprintf("0:%d", k.next), Source: argv[n-2], Type: "nfs4",
		Options: words + k.grants + ",addr=" + server}
	k.next++
	return nil, nil
}

func (k *kernel) Hold(string) error { return nil }

func (k *kernel) Beneath(_, from, point string) (func(bool) error, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.order("beneath " + point); err != nil {
		return nil, err
	}
	k.below = k.mounts[from]
	return func(stays bool) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.below = mounted{}
		return k.order(fmt.Sprintf("end %t", stays))
	}, nil
}

func (k *kernel) Read(string) error { return nil }

// volume has the kernel keep a file system that is mounted nowhere any more.
func (k *kernel) volume(device string) {
	k.files["proc/fs/nfsfs/volumes"] = &fstest.MapFile{Data: []byte("NV SERVER   PORT DEV FSID FSC\n" +
		"v4 0a000001  801 " + device + "         0:0  no\n")}
}

func (k *kernel) Unmount(point string, lazy bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if point == "/pfs" {
		if err := k.order(fmt.Sprintf("unmount %s %t", point, lazy)); err != nil {
			return err
		}
	}
	delete(k.mounts, point)
	delete(k.mounts, point+"/new")
	if point == "/pfs" && k.below.Source != "" {
		k.mounts[point] = k.below
	}
	return nil
}

func (k *kernel) Take(from, to string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.order("take " + to); err != nil {
		return err
	}
	k.mounts[to] = k.mounts[from]
	delete(k.mounts, from)
	return nil
}

// Open makes it the root of a file system with proc.
func (k *kernel) Open(name string) (fs.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	text := "1 0 0:1 / /proc rw - proc proc rw\n"
	for point, m := range k.mounts {
		own, rest, _ := strings.Cut(m.Options, ",")
		text += fmt.Sprintf("%d 1 %s / %s %s - %s %s %s\n", m.ID, m.Device, point, own, m.Type, m.Source, rest)
	}
	k.files["proc/self/mountinfo"] = &fstest.MapFile{Data: []byte(text)}
	return k.files.Open(name)
}

func (k *kernel) mover(t *testing.T) *Mover {
	dir := t.TempDir()
	return &Mover{Point: "/pfs", Type: "nfs", Options: "vers=4.2", Sources: sources, Run: k.run, Root: k, Kernel: k,
		Beside: dir + "/beside", Journal: dir + "/last.json"}
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		kernels, handlers := map[topology.NodeID]*kernel{}, map[topology.NodeID]map[string]stream.OrderHandler{}
		var moves []remap.Move
		for i := range 12 {
			n := topology.NodeID(fmt.Sprintf("cn%d", i))
			kernels[n] = at(t, sources["fwd1"])
			handlers[n] = node.Handlers(kernels[n].mover(t), true)
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
					at[n], _ = node.ByAddress(sources, k.mounts["/pfs"].Source)
				}
				return at
			},
			Changes: func() (n int) {
				for _, k := range kernels {
					n += strings.Count(strings.Join(k.orders, "; "), "/pfs")
				}
				return n
			},
			Break: agents.Break, Mend: agents.Mend, Hang: agents.Hang,
		}
	})
}

// What is at the place after a move or a refusal, in which order it came there, and what the error begins with.
func TestMoves(t *testing.T) {
	const mount = "mount -n -t nfs4 -o rw,relatime,vers=4.2,nconnect=4,hard,retry=0 10.0.0.2:/export BESIDE"
	for _, c := range []struct {
		name   string
		at     string
		order  wire.RemapOrder
		refuse string
		grants string
		orders string
		end    string
		err    string
	}{
		{"move", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2"}, "", "",
			mount + "; beneath /pfs; unmount /pfs false; end true", sources["fwd2"], ""},
		{"forced", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2", Force: true}, "", "",
			mount + "; beneath /pfs; unmount /pfs true; end true", sources["fwd2"], ""},
		{"one after the other", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2"}, "beneath", "",
			mount + "; beneath /pfs; unmount /pfs false; take /pfs", sources["fwd2"], ""},
		{"nothing mounted", "", wire.RemapOrder{Forwarder: "fwd2"}, "", "",
			"mount -n -t nfs -o vers=4.2,retry=0 10.0.0.2:/export BESIDE; take /pfs", sources["fwd2"], ""},
		{"already there", sources["fwd2"], wire.RemapOrder{Forwarder: "fwd2"}, "", "", "", sources["fwd2"], ""},
		{"busy", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2"}, "unmount", "",
			mount + "; beneath /pfs; unmount /pfs false; end false",
			sources["fwd1"], "/pfs is busy (open files: 1 of fio (4711)); 10.0.0.1:/export is mounted at /pfs"},
		{"the new server fails", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2"}, "10.0.0.2", "", mount,
			sources["fwd1"], mount},
		{"other options", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2"}, "", ",sync", mount, sources["fwd1"],
			"10.0.0.2:/export cannot be mounted as 10.0.0.1:/export is: sync is new"},
		{"the last step fails", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd2"}, "beneath take", "",
			mount + "; beneath /pfs; unmount /pfs false; take /pfs; " +
				"mount -t nfs4 -o rw,relatime,vers=4.2,nconnect=4,hard,retry=0 10.0.0.1:/export /pfs",
			sources["fwd1"], "move the new mount to /pfs: take /pfs"},
		{"unknown", sources["fwd1"], wire.RemapOrder{Forwarder: "fwd9"}, "", "", "", sources["fwd1"],
			"no source for fwd9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := at(t, c.at)
			k.refuse, k.grants = c.refuse, c.grants
			k.open("4711", "fio", 7)
			k.volume("0:7")
			m := k.mover(t)
			a, err := move(t, m, c.order)
			got := strings.ReplaceAll(strings.Join(slices.Compact(k.orders), "; "), m.Beside+"/new", "BESIDE")
			if got != c.orders || k.mounts["/pfs"].Source != c.end || len(k.mounts) > 1 {
				t.Errorf("it says %q and ends with %v", got, k.mounts)
			}
			text := ""
			if err != nil {
				text = strings.ReplaceAll(err.Error(), m.Beside+"/new", "BESIDE")
			}
			if (c.err == "") != (err == nil) || !strings.HasPrefix(text, c.err) || err == nil &&
				a.Forwarder != c.order.Forwarder {
				t.Errorf("%+v, %v", a, err)
			}
			if left := err == nil && c.at != "" && c.orders != ""; left != (a.Left != "") {
				t.Errorf("left: %q", a.Left) // the fake process keeps its file
			}
		})
	}
	if _, err := at(t, "").mover(t).Route(t.Context()); !errors.Is(err, node.ErrNoRoute) {
		t.Errorf("nothing mounted: %v", err)
	}
	if _, err := at(t, "other:/x").mover(t).Route(t.Context()); err == nil || !strings.Contains(err.Error(),
		"other:/x") {
		t.Errorf("a strange mount: %v", err)
	}
}

// move moves in a bubble of time: a busy mount is tried for a while.
func move(t *testing.T, m *Mover, o wire.RemapOrder) (a wire.RouteAnswer, err error) {
	synctest.Test(t, func(t *testing.T) { a, err = m.Move(t.Context(), o) })
	return a, err
}

// open has a process hold a file of a mount.
func (k *kernel) open(pid, name string, mount int) {
	k.files["proc/"+pid+"/comm"] = &fstest.MapFile{Data: []byte(name + "\n")}
	k.files["proc/"+pid+"/maps"] = &fstest.MapFile{Data: []byte(
		"7f00-7f01 r-xp 00000000 fe:00 12 /usr/bin/fio\n")}
	k.files["proc/"+pid+"/fdinfo/3"] = &fstest.MapFile{Data: fmt.Appendf(nil, "pos:\t0\nmnt_id:\t%d\n", mount)}
}

// A file system that nobody has open and that is still there has requests under way; one that is gone has none,
// whatever could not be looked at.
func TestWhatIsLeft(t *testing.T) {
	k := at(t, sources["fwd2"])
	was := &mounted{ID: 7, Device: "0:38", Source: sources["fwd1"], Type: "nfs4"}
	k.mounts["/pfs"] = mounted{ID: 9, Device: "0:39", Source: sources["fwd2"], Type: "nfs4", Options: options}
	for _, c := range []struct{ volume, want string }{
		{"0:38", "requests under way to 10.0.0.1:/export"},
		{"0:39", ""},
	} {
		k.volume(c.volume)
		synctest.Test(t, func(t *testing.T) {
			if got := k.mover(t).left(was); got != c.want {
				t.Errorf("%q: %q, want %q", c.volume, got, c.want)
			}
		})
	}
}

// What is moved and taken back has the options and the source that were read, byte for byte, though the server in
// between granted others; a try changes nothing and says who has files open.
func TestBackIsWhatWasRead(t *testing.T) {
	k := at(t, "gw1.site:/export")
	was := k.mounts["/pfs"]
	was.Options = "ro,noatime,vers=3,rsize=1048576,nconnect=4,acregmin=5,addr=10.0.0.1,mountport=4711"
	k.mounts["/pfs"] = was
	m := k.mover(t)
	m.Sources = map[topology.ForwarderID]string{"fwd1": "10.0.0.1", "fwd2": "10.0.0.2"}
	k.open("4711", "fio", was.ID)
	says, err := m.Try(t.Context(), wire.RemapOrder{Forwarder: "fwd2"})
	if err != nil || says != "open files: 1 of fio (4711): while they are open the move is refused" ||
		k.mounts["/pfs"] != was || len(k.mounts) != 1 {
		t.Errorf("%q, %v, %v", says, err, k.mounts)
	}
	for _, f := range []topology.ForwarderID{"fwd2", "fwd1"} {
		if a, err := m.Move(t.Context(), wire.RemapOrder{Forwarder: f}); err != nil || a.Forwarder != f {
			t.Fatalf("%s: %+v, %v", f, a, err)
		}
		if got := k.mounts["/pfs"]; difference(&was, &got) != "" {
			t.Errorf("%s: %s", f, difference(&was, &got))
		}
	}
	if got := k.mounts["/pfs"].Source; got != was.Source {
		t.Errorf("it is back at %s", got)
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

// A root that is not this node's own has its mounts changed by its commands alone.
func TestForeignRoot(t *testing.T) {
	root := fstest.MapFS{"proc/self/mounts": {Data: []byte(sources["fwd1"] + " /pfs nfs rw 0 0\n")}}
	var orders []string
	m := &Mover{Point: "/pfs", Type: "nfs", Options: "vers=4.2", Sources: sources, Root: root, Foreign: true,
		Run: func(_ context.Context, argv ...string) ([]byte, error) {
			orders = append(orders, strings.Join(argv, " "))
			root["proc/self/mounts"].Data = nil
			if argv[0] == "mount" {
				root["proc/self/mounts"].Data = []byte(argv[len(argv)-2] + " /pfs nfs rw 0 0\n")
			}
			return nil, nil
		}}
	a, err := m.Move(t.Context(), wire.RemapOrder{Forwarder: "fwd2"})
	want := "umount /pfs; mount -t nfs -o vers=4.2 10.0.0.2:/export /pfs"
	if got := strings.Join(orders, "; "); err != nil || a.Forwarder != "fwd2" || got != want {
		t.Errorf("%+v, %v, %q", a, err, got)
	}
}

// TestRealMount moves a real mount: a tmpfs, whose source may be any name. A program that looks all the time never sees
// the place without one, and no mount of a move stays behind.
func TestRealMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: mounting needs root")
	}
	for _, c := range []struct {
		name  string
		above uintptr // how what is mounted on the mount above propagates
	}{{"private", unix.MS_PRIVATE}, {"shared", unix.MS_SHARED}} {
		t.Run(c.name, func(t *testing.T) {
			above := t.TempDir()
			for _, err := range []error{unix.Mount("above", above, "tmpfs", 0, ""), propagate(above, c.above)} {
				if err != nil {
					t.Skipf("skipped: this root may not mount: %v", err)
				}
			}
			t.Cleanup(func() {
				if err := unix.Unmount(above, unix.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
			moveReally(t, above+"/p f s") // the kernel escapes blanks
			all, err := table(os.DirFS("/"))
			if err != nil {
				t.Fatal(err)
			}
			all = slices.DeleteFunc(all, func(m mounted) bool { return !strings.HasPrefix(m.point, above) })
			if len(all) != 2 || all[0].shared != (c.above == unix.MS_SHARED) || all[1].shared != all[0].shared {
				t.Errorf("mounts: %+v", all)
			}
		})
	}
}

func moveReally(t *testing.T, dir string) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var bare unix.Stat_t
	if err := unix.Stat(dir, &bare); err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	m := &Mover{Point: dir, Type: "tmpfs", Options: "size=1024k", Sources: sources, Root: os.DirFS("/"),
		Beside: own + "/beside", Journal: own + "/last.json"}
	expect := func(f topology.ForwarderID, force bool) wire.RouteAnswer {
		t.Helper()
		a, err := m.Move(t.Context(), wire.RemapOrder{Forwarder: f, Addr: "-", Force: force})
		if err != nil || a.Forwarder != f {
			t.Fatalf("%+v, %v", a, err)
		}
		return a
	}
	expect("fwd1", false)
	end, ended := make(chan struct{}), make(chan int)
	go func() {
		without := 0
		for {
			select {
			case <-end:
				ended <- without
				return
			default:
			}
			var at unix.Stat_t
			if err := unix.Stat(dir, &at); err != nil || at.Dev == bare.Dev {
				without++
			}
		}
	}()
	for range 2 {
		expect("fwd2", false)
		expect("fwd1", true)
		expect("fwd1", false)
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
	for range 2 { // a repeated order says again what stays behind
		if a := expect("fwd2", true); !strings.Contains(a.Left, "open files: 1 of remount.test") {
			t.Errorf("forced: %+v", a)
		}
	}
	close(end)
	if n := <-ended; n > 0 {
		t.Errorf("%d looks found nothing mounted", n)
	}
	open.Close()
	if a, err := m.Route(t.Context()); err != nil || a.Left != "" {
		t.Errorf("%+v, %v", a, err)
	}
}
