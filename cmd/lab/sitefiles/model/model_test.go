package model

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"
)

func newTestSite(t *testing.T, cfg Config) *Site {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// watched is what routers did in a while.
type watched struct {
	bytes   float64 // a second
	transit float64 // s, mean
}

// watch lets the site live for d and reads its routers.
func watch(s *Site, d time.Duration) map[string]watched {
	type point struct {
		truth Truth
		bytes uint64
	}
	before := map[string]point{}
	for _, r := range s.Of(Router) {
		before[r.Name] = point{r.Truth, r.LNet.RoutedBytes}
	}
	s.Run(s.Now() + d)
	out := map[string]watched{}
	for _, r := range s.Of(Router) {
		b := before[r.Name]
		out[r.Name] = watched{float64(r.LNet.RoutedBytes-b.bytes) / d.Seconds(),
			(r.Truth.Inside - b.truth.Inside).Seconds() / float64(max(1, r.Truth.Left-b.truth.Left))}
	}
	return out
}

// TestSlowRouter: transit time shows a slow router at any load, bytes only under load, and a slow OST moves no
// router's transit time.
func TestSlowRouter(t *testing.T) {
	for _, load := range []float64{0.25, 0.6, 1} {
		for left, atLeast := range map[float64]float64{0.1: 6, 0.5: 1.6, 0.75: 1.2} {
			if load == 1 {
				atLeast = 1 + (atLeast-1)/2 // all wait for credits then
			}
			cfg := Small(7)
			cfg.Load = load
			s := newTestSite(t, cfg)
			watch(s, 5*time.Second)
			if err := s.Break(Fault{Kind: FaultLink, Node: "rtr2", Value: left}); err != nil {
				t.Fatal(err)
			}
			watch(s, 5*time.Second)
			w := watch(s, 20*time.Second)
			others := (w["rtr1"].transit + w["rtr3"].transit + w["rtr4"].transit) / 3
			if got := w["rtr2"].transit / others; got < atLeast {
				t.Errorf("load %v, %v of its speed: transit x%.2f, want at least x%v", load, left, got, atLeast)
			}
			if share := w["rtr2"].bytes / w["rtr1"].bytes; load == 1 && share > left+0.15 {
				t.Errorf("at full load a router at %v of its speed moved %.2f of another's bytes", left, share)
			}
		}
	}
	s := newTestSite(t, Small(7))
	before := watch(s, 10*time.Second)
	if err := s.Break(Fault{Kind: FaultDisk, Node: "oss1", Value: 0.1}); err != nil {
		t.Fatal(err)
	}
	after := watch(s, 20*time.Second)
	for r := range after {
		if x := after[r].transit / before[r].transit; x > 1.2 {
			t.Errorf("a slow OST made %s's transit x%.2f", r, x)
		}
	}
}

// TestOneSeedOneCourse: the same seed gives the same counters; another seed gives others.
func TestOneSeedOneCourse(t *testing.T) {
	state := func(seed uint64) (out []uint64) {
		s := newTestSite(t, Small(seed))
		s.Run(3 * time.Second)
		for _, n := range s.Nodes {
			out = append(out, n.LNet.RoutedBytes, n.LNet.SentBytes, uint64(n.Truth.Inside))
		}
		return out
	}
	if !slices.Equal(state(3), state(3)) {
		t.Error("two courses of one seed differ")
	}
	if slices.Equal(state(3), state(4)) {
		t.Error("two seeds have one course")
	}
}

// TestNothingIsLost: what clients asked for crossed the routers, and credits and buffers come back.
func TestNothingIsLost(t *testing.T) {
	cfg := Small(5)
	cfg.Jobs = []Job{{ID: "1", Clients: []int{0, 1, 2, 3}, End: 5 * time.Second, Mix: Mixes()[0]}}
	s := newTestSite(t, cfg)
	before := map[string]uint64{}
	for _, r := range s.Of(Router) {
		before[r.Name] = r.LNet.RoutedBytes
	}
	s.Run(20 * time.Second)
	var asked, crossed float64
	for _, c := range s.Of(Client) {
		for _, name := range []string{"read_bytes", "write_bytes"} {
			st := c.Front.Ops.Get(name)
			asked += float64(st.Sum)
		}
	}
	for _, r := range s.Of(Router) {
		crossed += float64(r.LNet.RoutedBytes - before[r.Name])
		if r.LNet.Alloc != 0 {
			t.Errorf("%s holds %d messages of an idle site", r.Name, r.LNet.Alloc)
		}
		for _, size := range r.Buffers {
			for _, p := range size {
				if p.Credits != p.Count {
					t.Errorf("%s: %d of %d buffers of %d pages are free", r.Name, p.Credits, p.Count, p.Pages)
				}
			}
		}
	}
	if asked == 0 || math.Abs(crossed/asked-1) > 0.01 {
		t.Errorf("%.0f bytes were asked for, %.0f crossed", asked, crossed)
	}
	for _, n := range s.Nodes {
		for _, p := range n.Peers {
			if p.Tx.Now != p.Tx.Max || p.Rtr.Now != p.Rtr.Max || p.Queued != 0 {
				t.Errorf("%s to %s: %+v %+v, %d bytes queued", n.Name, p.NID, p.Tx, p.Rtr, p.Queued)
			}
		}
	}
}

// TestServersChooseTheRouterOfData: a client's route alone moves its requests only, a server's rule moves the data.
func TestServersChooseTheRouterOfData(t *testing.T) {
	s := newTestSite(t, Small(2))
	c := s.Node("cn1")
	for _, r := range []string{"rtr2", "rtr3", "rtr4"} {
		if err := c.DelRoute(ServerNet, s.Node(r).NIs[0].NID); err != nil {
			t.Fatal(err)
		}
	}
	share := func(router string) float64 {
		before := map[string]uint64{}
		for _, r := range s.Of(Router) {
			before[r.Name] = r.Truth.From[c.NID()]
		}
		s.Run(s.Now() + 10*time.Second)
		var all uint64
		for _, r := range s.Of(Router) {
			all += r.Truth.From[c.NID()] - before[r.Name]
		}
		return float64(s.Node(router).Truth.From[c.NID()]-before[router]) / float64(all)
	}
	s.Run(time.Second)
	if got := share("rtr1"); got > 0.4 {
		t.Errorf("the client's route alone put %.2f of its bytes on rtr1", got)
	}
	for _, o := range append(s.Of(OSS), s.Of(MDS)...) {
		if err := o.AddRule(Rule{Dst: c.NID(), Rte: o.Primary(s.Node("rtr1"))}, -1); err != nil {
			t.Fatal(err)
		}
	}
	s.Run(s.Now() + time.Second)
	if got := share("rtr1"); got < 0.99 {
		t.Errorf("with the servers' rules %.2f of its bytes are on rtr1", got)
	}
}

// TestTablesKeepLNetsRules: one list of preferred routers a destination, indexes that move up, priorities, and what
// comes by a router without a route is dropped where that is set.
func TestTablesKeepLNetsRules(t *testing.T) {
	s := newTestSite(t, Small(2))
	o, c1, c2 := s.Node("oss1"), s.Node("cn1"), s.Node("cn2")
	both := Rule{Dst: "10.0.0.[1-2]@tcp", Rte: o.Primary(s.Node("rtr1"))}
	one := Rule{Dst: c1.NID(), Rte: o.Primary(s.Node("rtr2"))}
	for _, r := range []Rule{both, one} {
		if err := o.AddRule(r, -1); err != nil {
			t.Fatal(err)
		}
	}
	if got := o.choose(c1); got != s.Node("rtr2") {
		t.Errorf("the rule that was added last is not the one in force: %s", got.Name)
	}
	if err := o.DelRule(0); err != nil { // clears both destinations
		t.Fatal(err)
	}
	if len(o.Table.Rules) != 1 || o.Table.Rules[0] != one || len(o.Table.preferred) != 0 {
		t.Errorf("%+v, preferred %v", o.Table.Rules, o.Table.preferred)
	}
	if err := o.AddRule(one, -1); !errors.Is(err, Errno(Exists)) {
		t.Error(err)
	}
	gw := s.Node("rtr3").NIs[1].NID
	if err := o.AddRoute(ClientNet, gw, -1, 0); !errors.Is(err, Errno(Exists)) {
		t.Error(err)
	}
	if err := errors.Join(o.DelRoute(ClientNet, gw), o.AddRoute(ClientNet, gw, -1, 10)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if o.choose(c2) == s.Node("rtr3") {
			t.Fatal("a route of a lower priority is used")
		}
	}
	c1.Table.DropAsym = true
	if err := c1.DelRoute(ServerNet, s.Node("rtr3").NIs[0].NID); err != nil {
		t.Fatal(err)
	}
	dropped := c1.LNet.Dropped
	s.Run(5 * time.Second)
	if c1.LNet.Dropped == dropped {
		t.Error("nothing of what came by rtr3 was dropped")
	}
}

// TestFaultsEndWithoutATrace: every fault can be ended, and the site is then as fast as before.
func TestFaultsEndWithoutATrace(t *testing.T) {
	total := func(w map[string]watched) (sum float64) {
		for _, r := range w {
			sum += r.bytes
		}
		return sum
	}
	for kind, node := range map[string]string{FaultLink: "rtr1", FaultLinkIn: "rtr1", FaultLoss: "rtr1",
		FaultCPU:     "rtr1",
		FaultBuffers: "rtr1", FaultHung: "rtr1", FaultDisk: "oss1"} {
		s := newTestSite(t, Small(9))
		before := total(watch(s, 15*time.Second))
		value := 0.1
		if kind == FaultBuffers {
			value = 2
		}
		if err := s.Break(Fault{Kind: kind, Node: node, Value: value}); err != nil {
			t.Fatal(err)
		}
		sick := watch(s, 5*time.Second)
		if kind == FaultHung && sick["rtr1"].bytes > 20e6 {
			t.Errorf("a hung router moved %.0f bytes a second", sick["rtr1"].bytes)
		}
		if err := s.Mend(node); err != nil {
			t.Fatal(err)
		}
		watch(s, 10*time.Second)
		if after := total(watch(s, 15*time.Second)); math.Abs(after/before-1) > 0.15 {
			t.Errorf("%s: %.0f MB/s before, %.0f after", kind, before/1e6, after/1e6)
		}
	}
	s := newTestSite(t, Small(1))
	for _, f := range []Fault{{Kind: "fire", Node: "rtr1", Value: 1}, {Kind: FaultLink, Node: "rtr9", Value: 1},
		{Kind: FaultLink, Node: "rtr1"}, {Kind: FaultDisk, Node: "rtr1", Value: 0.5},
		{Kind: FaultBuffers, Node: "cn1", Value: 1}} {
		if err := s.Break(f); err == nil {
			t.Errorf("%+v was taken", f)
		}
	}
}
