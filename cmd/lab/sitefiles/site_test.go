package sitefiles

import (
	"context"
	"io/fs"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/sitefiles/format"
	"fairway/cmd/lab/sitefiles/model"
	"fairway/collector"
	"fairway/collector/source/lnet"
	"fairway/collector/source/lustre"
)

func newSite(t *testing.T, o Options) *Site {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Model.Seed == 0 {
		o.Model = model.Small(11)
	}
	s, err := New(o, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSourcesReadEveryRelease: what the sources make of a node's files is what the node did, in every release.
func TestSourcesReadEveryRelease(t *testing.T) {
	for _, release := range format.Releases {
		s := newSite(t, Options{Release: release})
		nodes := map[string]struct {
			want []collector.Metric
		}{
			"rtr1": {[]collector.Metric{collector.LinkRxBytes, collector.LinkTxBytes}},
			"cn1":  {[]collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaOps}},
			"oss1": {[]collector.Metric{collector.ReadBytes, collector.ReadExec, collector.ReadWait,
				collector.Threads}},
			"mds1": {[]collector.Metric{collector.MetaOps, collector.MetaWait}},
		}
		for name, c := range nodes {
			s.model.Run(s.model.Now())
			n := s.model.Node(name)
			current := &swapped{}
			lnetSource, lustreSource := lnet.New(current), lustre.New(current)
			var r collector.Reading
			routed := uint64(0)
			for i := range 3 {
				at := s.model.Now() + time.Second
				routed = n.LNet.RoutedBytes
				s.model.Run(at)
				current.set(s.writer.All(n, at))
				r = collector.Reading{Now: time.Unix(int64(i), 0)}
				if err := lnetSource.Read(t.Context(), &r); err != nil {
					t.Fatalf("%s of %s: %v", name, release, err)
				}
				if n.Role == model.Router {
					continue
				}
				if err := lustreSource.Read(t.Context(), &r); err != nil {
					t.Fatalf("%s of %s: %v", name, release, err)
				}
			}
			f := collector.Frame{Samples: r.Samples}
			for _, m := range c.want {
				if v, ok := f.Value(m); !ok || v <= 0 {
					t.Errorf("%s of %s: %v = %v, known %v", name, release, m, v, ok)
				}
			}
			if v, _ := f.Value(collector.LinkRxBytes); n.Role == model.Router &&
				math.Abs(v-float64(n.LNet.RoutedBytes-routed)) > 1e5 {
				t.Errorf("%s: %v bytes received, %d were routed", release, v, n.LNet.RoutedBytes-routed)
			}
		}
	}
}

// swapped is a tree whose files change.
type swapped struct {
	mu    sync.Mutex // guards what follows
	files map[string]string
	globs map[string][]string // until a file comes
}

func (s *swapped) Open(name string) (fs.File, error) {
	b, err := s.ReadFile(name)
	if err == nil {
		return fstest.MapFS{name: {Data: b}}.Open(name)
	}
	if name != "." && !s.hasDir(name+"/") {
		return nil, err
	}
	return s.whole().Open(name)
}

func (s *swapped) hasDir(prefix string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.files {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// ReadFile reads what has been opened, read and closed otherwise: a soak reads files some thousand times a second.
func (s *swapped) ReadFile(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// Glob remembers what matched.
func (s *swapped) Glob(pattern string) ([]string, error) {
	s.mu.Lock()
	names, known := s.globs[pattern]
	s.mu.Unlock()
	if known {
		return slices.Clone(names), nil // fs.Sub shortens what it gets
	}
	names, err := fs.Glob(s.whole(), pattern)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.globs[pattern] = names
	return slices.Clone(names), err
}

// whole is the tree as it is now.
func (s *swapped) whole() fstest.MapFS {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := fstest.MapFS{}
	for name, text := range s.files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// set replaces the files that are given.
func (s *swapped) set(files map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]string{}
	}
	had := len(s.files)
	maps.Copy(s.files, files)
	if len(s.files) > had {
		s.globs = map[string][]string{}
	}
}

// TestOneSeedOneTree: two sites of one seed write the same bytes.
func TestOneSeedOneTree(t *testing.T) {
	trees := func() map[string]string {
		s := newSite(t, Options{})
		out := map[string]string{}
		for i := range 4 {
			at := time.Duration(i) * 700 * time.Millisecond
			s.model.Run(at)
			for _, n := range s.model.Nodes {
				for name, text := range s.writer.All(n, at) {
					out[n.Name+"/"+name] += text
				}
			}
		}
		return out
	}
	if !maps.Equal(trees(), trees()) {
		t.Error("two courses of one seed wrote different files")
	}
}

// TestLnetctlKeepsTheKernelsRules runs the commands that change and show tables, and those that must fail.
func TestLnetctlKeepsTheKernelsRules(t *testing.T) {
	s := newSite(t, Options{Release: 15})
	do := func(node, line string) Answer { t.Helper(); return s.Lnetctl(node, strings.Fields(line)) }
	gw := s.model.Node("rtr2").NIs[1].NID
	for _, c := range []struct {
		line, out, err string
	}{
		{"route show --net tcp --verbose", "gateway: " + gw + "\n      hop: -1\n      priority: 0\n", ""},
		{"route add --net tcp --gateway " + gw, "", "errno: -17"},
		{"route del --net tcp --gateway " + gw, "", ""},
		{"route del --net tcp --gateway " + gw, "", "errno: -2"},
		{"route add --net tcp --gateway " + gw + " --priority 10", "", ""},
		{"route show -v", "gateway: " + gw + "\n      hop: -1\n      priority: 10\n", ""},
		{"route add --net tcp --gateway 10.9.9.9@o2ib", "", "errno: -113"},
		{"udsp add --dst 10.0.0.[1-3]@tcp --rte " + gw, "", ""},
		{"udsp add --dst 10.0.0.[1-3]@tcp --rte " + gw, "", "errno: -17"},
		{"udsp show", "- idx: 0\n      src: NA\n      dst: 10.0.0.[1-3]@tcp\n      rte: " + gw, ""},
		{"udsp del --idx 0", "", ""},
		{"udsp del --idx 0", "", "errno: -2"},
		{"udsp del", "", "errno: -2"},
		{"global show", "drop_asym_route: 0", ""},
		{"stats show", "route_length:", ""},
		{"net show -v 2", "nid: 10.1.0.1@o2ib", ""},
		{"peer show --nid " + gw + " -v 2", "received_stats:", ""},
		{"route add --net", "", "needs an argument"},
		{"route frobnicate", "", "not a command"},
	} {
		a := do("oss1", c.line)
		if !strings.Contains(a.Out, c.out) || !strings.Contains(a.Err, c.err) || (c.err == "") != (a.Code == 0) {
			t.Errorf("%s: %+v, want %q, error %q", c.line, a, c.out, c.err)
		}
	}
	s12 := newSite(t, Options{Release: 12})
	if a := s12.Lnetctl("oss1", []string{"udsp", "show"}); a.Code == 0 {
		t.Error("2.12 has no rules of the user")
	}
}

// TestTricks: an lnetctl that ignores or lies reports success, and no message goes another way.
func TestTricks(t *testing.T) {
	s := newSite(t, Options{})
	gw := s.model.Node("rtr2").NIs[1].NID
	del := []string{"route", "del", "--net", "tcp", "--gateway", gw}
	show := []string{"route", "show"}
	for _, c := range []struct {
		mode   string
		ok     bool
		showsI bool // the route is still shown
	}{{TrickBusy, false, true}, {TrickIgnore, true, true}, {TrickLie, true, false}} {
		if err := s.Trick(Trick{Node: "oss1", Mode: c.mode, Command: "route del"}); err != nil {
			t.Fatal(err)
		}
		a := s.Lnetctl("oss1", del)
		shown := s.Lnetctl("oss1", show).Out
		if (a.Code == 0) != c.ok || strings.Contains(shown, gw) != c.showsI {
			t.Errorf("%s: %+v, then\n%s", c.mode, a, shown)
		}
		if got := len(s.model.Node("oss1").Table.Routes); got != 4 {
			t.Errorf("%s: %d routes are in force", c.mode, got)
		}
		if err := s.Trick(Trick{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Trick(Trick{Mode: TrickHang}); err != nil || !s.Lnetctl("oss1", show).Hang {
		t.Error("it answers", err)
	}
	if s.Trick(Trick{Mode: "dance"}) == nil || s.Trick(Trick{Mode: TrickBusy, Node: "oss9"}) == nil {
		t.Error("a trick that does not exist was taken")
	}
}

// TestSocketAndFiles: orders reach the model through the socket, and files on disk follow it.
func TestSocketAndFiles(t *testing.T) {
	dir, err := os.MkdirTemp("", "site") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s := newSite(t, Options{Dir: dir, Clients: 2})
	if err := s.Step(time.Second, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(Agents{URL: "unix:///x", TokenFile: "/t", Tool: []string{"true"},
		Orders: true}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range s.shown() {
		names = append(names, n.Name)
		if _, err := os.Stat(ConfigIn(s.opt.Dir, n.Name)); err != nil {
			t.Error(err)
		}
	}
	if want := "cn1 cn2 rtr1 rtr2 rtr3 rtr4 oss1 oss2 mds1"; strings.Join(names, " ") != want {
		t.Errorf("files of %v, want %s", names, want)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- ServeAt(ctx, s.opt.Dir, s) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	for { // its file is there before anybody listens
		if c, err := net.Dial("unix", Socket(dir)); err == nil {
			c.Close()
			break
		}
		time.Sleep(time.Millisecond)
	}
	a, err := Tool(ctx, dir, "cn1", []string{"lnetctl", "route", "show"})
	if err != nil || !strings.Contains(a.Out, "10.0.255.1@tcp") {
		t.Error(a, err)
	}
	if err := Ask(ctx, dir, "Fault", model.Fault{Kind: "fire", Node: "rtr1", Value: 1}, &struct{}{}); err == nil ||
		!strings.Contains(err.Error(), "want one of") {
		t.Error(err)
	}
	if err := Ask(ctx, dir, "Fault", model.Fault{Kind: model.FaultHung, Node: "rtr1"}, &struct{}{}); err != nil {
		t.Error(err)
	}
	var truth Truth
	if err := Ask(ctx, dir, "Truth", struct{}{}, &truth); err != nil || len(truth.Routers) != 4 {
		t.Errorf("%+v, %v", truth, err)
	}
}

// A site that could not keep up goes on from where it was: it does not make up for the time.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPace(50 * time.Millisecond)
		for _, c := range []struct{ sleep, want time.Duration }{{30 * time.Millisecond, 30 * time.Millisecond},
			{5 * time.Second, 80 * time.Millisecond}, {50 * time.Millisecond, 130 * time.Millisecond}} {
			time.Sleep(c.sleep)
			if now := p.Now(); now != c.want {
				t.Errorf("after %s it is %s, want %s", c.sleep, now, c.want)
			}
		}
	})
}
