package survey

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/scraped"
)

// site is six servers with two targets each, scraped every 15 s: as many reads on all, of 5 ms, with noise.
type site struct {
	servers int
	hours   float64
	slow    func(server, target int, hour float64) float64 // times as long
	load    func(server int) float64                       // times as much
	timed   bool
}

const (
	begin = int64(1_764_360_000)
	every = 15 * time.Second
)

func (s site) survey(t *testing.T) Answer {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 11))
	out := New(500 * 24 * time.Hour)
	for at := begin; at < begin+int64(s.hours*3600); at += 15 {
		busy := math.Exp(0.5 * math.Sin(float64(at)/900)) // all of them together
		for server := range s.servers {
			node := fmt.Sprint("oss", server)
			of := scraped.Interval{Subject: scraped.Subject{Kind: scraped.Server, Name: node, Node: node,
				Group: "Lustre's object servers"}, By: node, End: time.Unix(at+int64(server), 0).UTC(), Every: every}
			sum, ops := 0.0, 0.0
			for target := range 2 {
				n := 3000 * busy * s.load(server)
				took := n * 5e-3 * busy * math.Exp(0.3*rng.NormFloat64())
				took *= s.slow(server, target, float64(at-begin)/3600)
				sum, ops = sum+took, ops+n
				i := of
				i.Subject = scraped.Subject{Kind: scraped.Target, Name: fmt.Sprintf("fs1-OST%04x", 2*server+target),
					Node: node, Group: "OSTs of fs1"}
				i.Samples = []collector.Sample{{Metric: collector.ReadBytes, Value: n * 1e6 / 15}}
				if s.timed {
					i.Means = []scraped.Mean{{Metric: collector.ReadExec, Ops: n, Seconds: took}}
				}
				if err := out.Take(i); err != nil {
					t.Fatal(err)
				}
			}
			of.Samples = []collector.Sample{{Metric: collector.ReadBytes, Value: ops * 1e6 / 15}}
			if s.timed {
				of.Means = []scraped.Mean{{Metric: collector.ReadExec, Ops: ops, Seconds: sum}}
			}
			if err := out.Take(of); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out.Finish(scraped.Summary{Exporters: []string{"lustre_exporter"}})
}

func alike(int) float64 { return 1 }

// last is slow, of six.
func last(server, _ int, _ float64) float64 { return float64(1 + 4*(server/5)) }

func TestWhoDiffersIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		site site
		want []string // begins of sentences
	}{
		"nobody": {site{6, 6, func(int, int, float64) float64 { return 1 }, alike, true}, nil},
		"a server, once, with its targets": {site{6, 6, func(s, _ int, hour float64) float64 {
			if s == 2 && hour > 2 {
				return 3
			}
			return 1
		}, alike, true}, []string{"oss2 with all of fs1-OST0004, fs1-OST0005 takes "}},
		"a target without its server": {site{6, 6, func(s, target int, _ float64) float64 {
			if s == 4 && target == 1 {
				return 3
			}
			return 1
		}, alike, true}, []string{"fs1-OST0009 on oss4 takes "}},
		"who is busy is not slow": {site{6, 6, func(int, int, float64) float64 { return 1 },
			func(s int) float64 { return float64(1 + 9*(s/5)) }, true}, nil},
		"all are slow": {site{6, 6, func(_, _ int, hour float64) float64 { return 1 + 4*math.Floor(hour/3) }, alike,
			true}, nil},
		"too short a time": {site{6, 0.9, last, alike, true}, nil},
		"no times":         {site{6, 6, last, alike, false}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := test.site.survey(t)
			if len(a.Findings) != len(test.want) {
				t.Fatalf("found %+v", a.Findings)
			}
			for i, want := range test.want {
				f := a.Findings[i]
				if !strings.HasPrefix(f.Sentence, want) || !(f.Ratios["reads"] > 2 && f.Ratios["reads"] < 4) ||
					!f.Until.IsZero() {
					t.Errorf("found %+v, want %q", f, want)
				}
			}
		})
	}
}

func TestGroups(t *testing.T) {
	one := func(int, int, float64) float64 { return 1 }
	a := site{6, 6, one, func(s int) float64 { return float64(1 + 3*(s/5)) }, true}.survey(t)
	if len(a.Groups) != 2 || a.EverySeconds != 15 {
		t.Fatalf("%+v", a)
	}
	g := a.Groups[0]
	if g.Name != "Lustre's object servers" || len(g.Members) != 6 || !slices.Equal(g.Compared, []string{"reads"}) {
		t.Errorf("%+v", g)
	}
	if want := 4 / (9.0 / 6); math.Abs(*g.Imbalance-want) > 1e-6 {
		t.Errorf("imbalance %g, want %g", *g.Imbalance, want)
	}
	m := g.Members[5]
	if *m.Peak <= *m.Mean || *m.Occupancy <= 0.1 || *m.Occupancy >= 0.5 || m.Intervals != 6*240 ||
		m.Load != collector.ReadBytes || m.Node != "" || !(m.Took[collector.ReadExec] > 4e-3) {
		t.Errorf("%+v", m)
	}

	for name, test := range map[string]struct {
		site      site
		why, also string
	}{
		"few": {site{3, 6, one, alike, true}, "no peers to compare with: a server needs 3 others",
			"who is slow among"},
		"short": {site{6, 0.9, one, alike, true}, "too short a time: 216 intervals, and it takes 240 (1h0m0s)", ""},
		"untimed": {site{6, 6, one, alike, false}, "nothing here times what they do",
			"how long requests take at Lustre's"},
	} {
		a := test.site.survey(t)
		if why := a.Groups[0].Why; !strings.HasPrefix(why, test.why) || len(a.Findings) > 0 {
			t.Errorf("%s: %s", name, why)
		}
		if !slices.ContainsFunc(a.Missing, func(m Missing) bool { return strings.HasPrefix(m.Question, test.also) }) {
			t.Errorf("%s: %v", name, a.Missing)
		}
	}
}

// TestManyClientsAreOneView: what each client saw of a server counts by its operations, each client once.
func TestManyClientsAreOneView(t *testing.T) {
	s := New(500 * 24 * time.Hour)
	for i, by := range []string{"cn1", "cn2", "cn2"} {
		of := scraped.Subject{Kind: scraped.SeenNFS, Name: "gw1", Node: "gw1", Group: "g"}
		err := s.Take(scraped.Interval{Subject: of, By: by, End: time.Unix(1000, int64(i)), Every: every,
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 10}},
			Means:   []scraped.Mean{{Metric: collector.ClientRead, Ops: 10 * float64(1+i), Seconds: 1}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	m := s.Finish(scraped.Summary{}).Groups[0].Members[0]
	if *m.Mean != 20 || math.Abs(m.Took[collector.ClientRead]-2.0/30) > 1e-9 || m.Intervals != 1 {
		t.Errorf("%+v", m)
	}
}
