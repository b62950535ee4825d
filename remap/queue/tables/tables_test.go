package tables

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/queue"
	"fairway/tsdb/window"
)

// site has forwarders f0 and f1 and eight nodes, four by default on each; c3 was moved to f1.
func site(jobs ...remap.Job) *remap.Situation {
	m := &topology.Machine{Name: "test", Default: topology.Mapping{}}
	routes := map[topology.NodeID]window.Route{}
	for i := range 2 {
		m.Nodes = append(m.Nodes, topology.Node{ID: topology.NodeID(fmt.Sprint("f", i)), Role: topology.Forwarder})
	}
	for i := range 8 {
		n := topology.NodeID(fmt.Sprint("c", i))
		m.Nodes = append(m.Nodes, topology.Node{ID: n, Role: topology.Compute})
		m.Default[n] = topology.ForwarderID(fmt.Sprint("f", i/4))
	}
	routes["c3"] = window.Route{Forwarder: "f1", At: time.Now()}
	return remap.BuildSituation(remap.SituationParts{At: time.Now(), Machine: m, Routes: routes, Jobs: jobs})
}

func job(id string, start int, nodes ...topology.NodeID) remap.Job {
	return remap.Job{ID: topology.JobID(id), User: "wei", Nodes: nodes, Start: time.Unix(int64(start), 0)}
}

func text(t queue.Table) string {
	var out []string
	for _, j := range t.Jobs {
		out = append(out, fmt.Sprintf("%s/%g%v", j.Job, *j.Size, j.Nodes))
	}
	return strings.Join(out, " ")
}

func TestTables(t *testing.T) {
	c := Defaults()
	c.Policy, c.Lease = "group-user-size-fair", time.Minute
	got := Of(site(job("2", 20, "c4", "c0"), job("1", 10, "c0", "c1", "c2", "c5"), job("3", 30, "c3"),
		job("4", 40, "elsewhere")), &c, nil)
	for f, want := range map[topology.ForwarderID]string{
		"f0": "1/4[c0 c1 c2]",
		"f1": "1/4[c5] 2/2[c4] 3/1[c3]", // c0 belongs to the older job; c3 is where it is seen
	} {
		if text(got[f]) != want {
			t.Errorf("%s: %s, want %s", f, text(got[f]), want)
		}
	}
	table := got["f1"]
	if table.LeaseSeconds != 60 || table.Policy != c.Policy {
		t.Errorf("%+v", table)
	}
	b, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queue.ReadTable(strings.NewReader(string(b))); err != nil {
		t.Errorf("a queue refuses %s: %v", b, err)
	}
	c.Forwarders = []string{"f[1-9]"}
	if got := Of(site(), &c, nil); len(got) != 1 || len(got["f1"].Jobs) != 0 {
		t.Errorf("%+v", got)
	}
}

// Priorities go into the table only where the policy divides by them; who has none has the default.
func TestPriorities(t *testing.T) {
	ranked := func(id string, qos string, priority float64, n topology.NodeID) remap.Job {
		j := job(id, 1, n)
		j.QOS, j.Priority = qos, priority
		return j
	}
	s := site(ranked("1", "high", 5000, "c0"), ranked("2", "", 0, "c1"), ranked("3", "other", 7, "c2"))
	for _, c := range []struct {
		policy string
		qos    map[string]float64
		want   string
	}{
		{"size-fair", nil, "[- - -]"},
		{"priority-fair", nil, "[5000 2 7]"},
		{"user-then-priority-fair", map[string]float64{"high": 8}, "[8 2 2]"},
	} {
		set := Defaults()
		set.Policy, set.Default, set.QOS = c.policy, 2, c.qos
		if err := set.Validate(); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, j := range Of(s, &set, nil)["f0"].Jobs {
			if j.Priority == nil {
				got = append(got, "-")
			} else {
				got = append(got, fmt.Sprint(*j.Priority))
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s by %v: %v, want %s", c.policy, c.qos, got, c.want)
		}
	}
}

func TestSettings(t *testing.T) {
	if s := Defaults(); s.Validate() != nil {
		t.Error(s.Validate())
	}
	for field, change := range map[string]func(*Settings){
		"policy":     func(s *Settings) { s.Policy = "node-fair" },
		"qos.high":   func(s *Settings) { s.QOS = map[string]float64{"high": -1} },
		"lambda":     func(s *Settings) { s.Lambda = 10 * time.Millisecond },
		"forwarders": func(s *Settings) { s.Forwarders = []string{"[x"} },
	} {
		s := Defaults()
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// An object server gets all running jobs, without their nodes; a site that names servers has no queues unless it names
// those, too.
func TestTablesOfServers(t *testing.T) {
	c := Defaults()
	c.Policy, c.Servers = "size-fair", []string{"oss1", "oss2"}
	here := site(job("2", 20, "c4"), job("1", 10, "c0", "c1"))
	if got := text(OfServers(here, &c, nil)); got != "1/2[] 2/1[]" {
		t.Error(got)
	}
	if got := Of(here, &c, nil); len(got) != 0 {
		t.Errorf("queues: %v", got)
	}
	var got []string
	s := New(Config{Settings: c, Situation: func() *remap.Situation { return here },
		Order: func(_ context.Context, n topology.NodeID, o wire.Order) (wire.OrderResult, error) {
			got = append(got, fmt.Sprint(n, " ", o.Kind))
			return wire.OrderResult{OK: true}, nil
		}})
	s.cfg.Servers = s.cfg.Servers[:1] // orders go out together
	s.look(t.Context(), time.Now())
	if fmt.Sprint(got) != "[oss1 share]" {
		t.Errorf("orders %v", got)
	}
	c.Servers = []string{"oss1", "oss1"}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "servers") {
		t.Error(err)
	}
}

// A queue hears of a change within a second, of none three times in a lease, and soon again after an order
// that failed; one without an agent does not keep the others waiting.
func TestSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		jobs, broken := []remap.Job{}, true
		begun := time.Now()
		c := Config{Settings: Defaults(), Situation: func() *remap.Situation {
			mu.Lock()
			defer mu.Unlock()
			return site(slices.Clone(jobs)...)
		}}
		c.Policy, c.Lease = "size-fair", time.Minute
		c.Order = func(ctx context.Context, n topology.NodeID, o wire.Order) (wire.OrderResult, error) {
			mu.Lock()
			defer mu.Unlock()
			if o.Kind != wire.OrderShare {
				return wire.OrderResult{Err: "an agent of an older version"}, nil
			}
			var table queue.Table
			if err := json.Unmarshal(o.Body, &table); err != nil || o.Kind != wire.OrderShare || o.Deadline.IsZero() {
				t.Errorf("order %+v: %v", o, err)
			}
			if n == "f1" {
				return wire.OrderResult{}, errors.New("no agent connected")
			}
			got = append(got, fmt.Sprintf("%.0f:%s", time.Since(begun).Seconds(), text(table)))
			return wire.OrderResult{OK: !broken, Err: "the queue does not run"}, nil
		}
		s := New(c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() { s.Run(ctx); close(done) }()
		at := func(seconds float64, do func()) {
			time.Sleep(time.Until(begun.Add(time.Duration(seconds * float64(time.Second)))))
			mu.Lock()
			defer mu.Unlock()
			do()
		}
		at(10.5, func() { broken = false })
		at(30.5, func() { jobs = append(jobs, job("1", 1, "c0")) })
		at(55.5, func() { jobs = nil })
		at(60, func() {})
		cancel()
		<-done
		want := []string{"0:", "5:", "10:", "15:", "31:1/1[c0]", "51:1/1[c0]", "56:"}
		if !slices.Equal(got, want) {
			t.Errorf("f0 got %q, want %q", got, want)
		}
		var out strings.Builder
		s.WriteMetrics(&out)
		if !strings.Contains(out.String(), `"taken"} 4`) {
			t.Error(out.String())
		}
	})
}

// By windows a queue gives the jobs in theirs what the pattern gives them, to 1 part in 100; who is outside of its
// window keeps a small part, and who has none counts like the others.
func TestTablesByWindows(t *testing.T) {
	c := Defaults()
	c.Policy = ByWindows
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s := site(job("1", 10, "c0"), job("2", 20, "c1"), job("3", 30, "c2"))
	for name, want := range map[string]struct {
		rates  map[topology.JobID]float64
		shares [3]float64
	}{
		"two are open": {map[topology.JobID]float64{"1": 3e8, "2": 1e8, "3": 0},
			[3]float64{.748, .249, .0025}},
		"one has no window":     {map[topology.JobID]float64{"1": 3e8, "2": 1e8}, [3]float64{.5, 1. / 6, 1. / 3}},
		"none is open":          {map[topology.JobID]float64{"1": 0, "2": 0}, [3]float64{.0098, .0098, .9804}},
		"windows are not given": {nil, [3]float64{1. / 3, 1. / 3, 1. / 3}},
	} {
		table := Of(s, &c, want.rates)["f0"]
		got, err := table.Shares()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, x := range want.shares {
			if id := string(rune('1' + i)); math.Abs(got[id]-x) > .01*x {
				t.Errorf("%s: job %s has %.4f, want %.4f", name, id, got[id], x)
			}
		}
		if table.Policy != "priority-fair" {
			t.Errorf("%s: the queue gets %q", name, table.Policy)
		}
	}
}
