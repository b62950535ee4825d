package dfra

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fairway/collector/topology"
)

// big is a job that meets every eligibility rule and wants 15 forwarders, with one by default.
func big() Case {
	run := Run{App: "roms", User: "wei", Project: "sea", Nodes: 480, End: 100, VolumeBytes: 58e9, IONodes: 480,
		Mode: topology.ModeNN, MetaQueue: 0.9, BW: 1e9, IOPS: 100}
	c := Case{
		Config:     Config{HighBW: 2e9, HighIOPS: 50_000, LowBW: 1e6, LowIOPS: 10, LowMeta: 1},
		Job:        Job{App: "roms", User: "wei", Project: "sea", Nodes: 480, DefaultForwarders: ids("fwd", 113, 1)},
		History:    []Run{run},
		Forwarders: Pool{Idle: ids("fwd", 200, 20)},
	}
	c.Config = c.Config.withDefaults()
	return c
}

func ids(prefix string, from, n int) []topology.ForwarderID {
	out := make([]topology.ForwarderID, n)
	for i := range out {
		out[i] = topology.ForwarderID(fmt.Sprintf("%s%03d", prefix, from+i))
	}
	return out
}

func neighbour(history *Run, live *Live) []Neighbour {
	return []Neighbour{{Job: "88260", Forwarders: ids("fwd", 113, 1), History: history, Live: live}}
}

func TestDecide(t *testing.T) {
	small := func(c *Case) { c.History[0].VolumeBytes = 1e9 }
	for _, tc := range []struct {
		name   string
		change func(*Case)
		action Action
		count  int
		failed string
		rules  string // the rules tried, in order; a failed one ends in "!"
	}{
		{"a job with volume and parallelism scales out", func(*Case) {}, Upgrade, 15, "",
			"history volume io-nodes metadata scale idle"},
		{"too few idle: all of them", func(c *Case) { c.Forwarders.Idle = ids("fwd", 200, 4) }, Upgrade, 4, "",
			"history volume io-nodes metadata scale idle"},
		{"nothing idle: default", func(c *Case) { c.Forwarders.Idle = nil }, Default, 1, "",
			"history volume io-nodes metadata scale idle!"},
		{"idle but anomalous is not idle", func(c *Case) { c.Forwarders.Anomalous = c.Forwarders.Idle }, Default, 1, "",
			"history volume io-nodes metadata scale idle!"},
		{"metadata known to a factor of two, and twice as much is light", func(c *Case) {
			c.History[0].MetaQueue, c.History[0].MetaWithin = 15.9, 2
		}, Upgrade, 15, "", "history volume io-nodes metadata scale idle"},
		{"metadata known to a factor of two, and twice as much is not light", func(c *Case) {
			c.History[0].MetaQueue, c.History[0].MetaWithin = 16, 2
		}, Default, 1, "metadata", "history volume io-nodes metadata! interference"},
		{"no history: no change", func(c *Case) { c.History = nil }, Default, 1, "history", "history!"},
		{"another node count is another history", func(c *Case) { c.History[0].Nodes = 479 }, Default, 1, "history",
			"history!"},
		{"volume exactly V_min is not over it", func(c *Case) { c.History[0].VolumeBytes = 20e9 }, Default, 1, "volume",
			"history volume! io-nodes metadata interference"},
		{"exactly N_min nodes are enough",
			func(c *Case) { c.History[0].IONodes = 32; c.Job.DefaultForwarders = ids("fwd", 1, 1) }, Default, 1, "",
			"history volume io-nodes metadata scale! interference"},
		{"one node over F wants a second forwarder", func(c *Case) { c.History[0].IONodes = 33 }, Upgrade, 2, "",
			"history volume io-nodes metadata scale idle"},
		{"too few I/O nodes", func(c *Case) { c.History[0].IONodes = 31 }, Default, 1, "io-nodes",
			"history volume io-nodes! metadata interference"},
		{"queue exactly W: not eligible, not heavy", func(c *Case) {
			c.History[0].MetaQueue = 32
			c.Neighbours = neighbour(&Run{Mode: topology.ModeNN}, nil)
		}, Default, 1, "metadata", "history volume io-nodes metadata! interference"},
		{"above W: heavy, so isolated from any neighbour", func(c *Case) {
			c.History[0].MetaQueue = 32.1
			c.Neighbours = neighbour(&Run{Mode: topology.ModeNN}, nil)
		}, Isolate, 1, "metadata", "history volume io-nodes metadata! interference! isolation"},
		{"an N-1 neighbour isolates", func(c *Case) {
			small(c)
			c.Neighbours = neighbour(&Run{Mode: topology.ModeN1},
				nil)
		},
			Isolate, 1, "volume", "history volume! io-nodes metadata interference! isolation"},
		{"a quiet N-1 neighbour does not", func(c *Case) {
			small(c)
			c.Neighbours = neighbour(&Run{Mode: topology.ModeN1, BW: 9e9}, &Live{BW: 1e6, IOPS: 10, MetaQueue: 1})
		}, Default, 1, "volume", "history volume! io-nodes metadata interference"},
		{"a quiet neighbour does not clear the job's own flags", func(c *Case) {
			small(c)
			c.History[0].Mode = topology.ModeN1
			c.Neighbours = neighbour(&Run{Mode: topology.ModeNN}, &Live{})
		}, Isolate, 1, "volume", "history volume! io-nodes metadata interference! isolation"},
		{"louder than its history", func(c *Case) {
			small(c)
			c.Neighbours = neighbour(&Run{Mode: topology.ModeNN, IOPS: 5}, &Live{IOPS: 80_000})
		}, Isolate, 1, "volume", "history volume! io-nodes metadata interference! isolation"},
		{"a neighbour nobody knows is ignored", func(c *Case) {
			small(c)
			c.History[0].Mode = topology.ModeN1
			c.Neighbours = neighbour(nil, nil)
		}, Default, 1, "volume", "history volume! io-nodes metadata interference"},
		{"a job elsewhere is not a neighbour", func(c *Case) {
			small(c)
			c.Neighbours = []Neighbour{{Job: "1", Forwarders: ids("fwd", 1, 1), History: &Run{Mode: topology.ModeN1}}}
		}, Default, 1, "volume", "history volume! io-nodes metadata interference"},
		{"isolation needs as many idle as the default", func(c *Case) {
			small(c)
			c.Job.DefaultForwarders = ids("fwd", 112, 2)
			c.Forwarders.Idle = ids("fwd", 200, 1)
			c.Neighbours = neighbour(&Run{Mode: topology.ModeN1}, nil)
		}, Default, 2, "volume", "history volume! io-nodes metadata interference! isolation!"},
		{"an anomalous default is replaced without history", func(c *Case) {
			c.History = nil
			c.Forwarders.Anomalous = ids("fwd", 113, 1)
		}, Default, 1, "history", "history! anomaly"},
		{"an anomalous default stays when nothing is idle", func(c *Case) {
			c.History, c.Forwarders.Idle = nil, nil
			c.Forwarders.Anomalous = ids("fwd", 113, 1)
		}, Default, 1, "history", "history! anomaly!"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := big()
			tc.change(&c)
			d := Decide(c)
			var rules []string
			for _, r := range d.Reasons {
				if !r.Passed {
					r.Rule += "!"
				}
				rules = append(rules, r.Rule)
			}
			failed := ""
			if d.FirstFailed != nil {
				failed = *d.FirstFailed
			}
			if d.Action != tc.action || d.Count != tc.count || failed != tc.failed ||
				strings.Join(rules, " ") != tc.rules {
				t.Errorf("got %s, %d forwarders, first failed %q, rules %q", d.Action, d.Count, failed,
					strings.Join(rules, " "))
			}
			for _, f := range d.Forwarders {
				if d.Remap && slices.Contains(c.Forwarders.Anomalous, f) {
					t.Errorf("%s is anomalous and was granted", f)
				}
			}
			if d.Remap == slices.Equal(d.Forwarders, c.Job.DefaultForwarders) {
				t.Errorf("remap is %v but the forwarders are %v", d.Remap, d.Forwarders)
			}
		})
	}
}

func TestReasonsCountOneAsOne(t *testing.T) {
	c := big()
	c.Config.NMin, c.Config.F = 1, 1
	c.History[0].IONodes, c.Forwarders.Idle = 1, ids("fwd", 200, 1)
	c.Neighbours = neighbour(&Run{Mode: topology.ModeN1}, nil)
	reasons := Decide(c).Reasons
	c.Job.DefaultForwarders, c.Job.Nodes, c.History[0].Nodes = []topology.ForwarderID{}, 1, 1
	reasons = append(reasons, Decide(c).Reasons...)
	var words []string
	for _, r := range reasons {
		words = append(words, r.Text)
	}
	all := strings.Join(words, "; ")
	for _, want := range []string{"1 compute node did I/O", "S = ceil(1 I/O node / F 1) = 1 forwarder (",
		"1 idle healthy forwarder ("} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %s", want, all)
		}
	}
}

// F and N_min are quotients of peaks, and a queue is a mean: a person reads two places of them.
func TestReasonsHaveNumbersThatAreRead(t *testing.T) {
	c := big()
	c.Config.F, c.Config.NMin = 2.5e9/1.1e9, 2.5e9/1.1e9
	c.History[0].MetaQueue, c.History[0].VolumeBytes = 1.0/3, 58.7e6
	c.Config.VMinBytes = 1e6
	var words []string
	for _, r := range Decide(c).Reasons {
		words = append(words, r.Text)
	}
	all := strings.Join(words, "; ")
	for _, want := range []string{"last run moved 58.7 MB (more than 1 MB needed)", "at least 2.27 needed", "/ F 2.27)",
		"0.33 metadata operations waited"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %s", want, all)
		}
	}
}

func TestPredictTakesTheLatestRun(t *testing.T) {
	j := Job{App: "a", User: "u", Project: "p", Nodes: 4}
	run := func(end, volume float64) Run {
		return Run{App: "a", User: "u", Project: "p", Nodes: 4, End: end, VolumeBytes: volume}
	}
	got, depth := Predict([]Run{run(3, 30), run(9, 90), run(5, 50), {App: "b", Nodes: 4, End: 99}}, j)
	if got.VolumeBytes != 90 || depth != 3 {
		t.Errorf("got a run of %g bytes from %d, want 90 from 3", got.VolumeBytes, depth)
	}
}

func TestReadCaseNamesTheField(t *testing.T) {
	for in, want := range map[string]string{
		``:                                      "empty",
		`{"job":{"nodes":0}}`:                   "job.nodes",
		`{"job":{"nodes":4},"jobs":1}`:          `"jobs"`,
		`{"job":{"nodes":"many"}}`:              "neither a count nor a list",
		`{"config":{"f":-1},"job":{"nodes":4}}`: "config.f",
		`{"job":{"nodes":4},"history":[{"nodes":4,"volume_bytes":-1}]}`:            "history[0].volume_bytes",
		`{"job":{"nodes":4},"history":[{"nodes":4,"mode":"X-Y"}]}`:                 "history[0].mode",
		`{"job":{"nodes":4},"forwarders":{"idle":["f1","f1"]}}`:                    "forwarders.idle[1]",
		`{"job":{"nodes":4},"neighbours":[{"job":"1","live":{"bw":-2}}]}`:          "neighbours[0].live",
		`{"job":{"nodes":4}} {"job":{"nodes":5}}`:                                  "something follows",
		`{"job":{"nodes":["c1","c2"],"default_forwarders":["f1","f2","f1"]}}`:      "job.default_forwarders[2]",
		`{"job":{"nodes":4},"neighbours":[{"job":"1","history":{"io_nodes":-3}}]}`: "neighbours[0].history.io_nodes",
	} {
		if _, err := ReadCase(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not name %s", in, err, want)
		}
	}
	c,
		err := ReadCase(strings.NewReader(
		`{"config":{"fwd_peak_bw":2.5e9,"cn_peak_bw":1.25e8},"job":{"nodes":["c1","c2"]}}`))
	if err != nil || c.Job.Nodes != 2 || c.Config.F != 20 || c.Config.NMin != 20 || c.Config.WMetadata != 32 {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestAnUnknownMetadataQueue: a run whose metadata queue nobody measured gets no more forwarders, unless the site takes
// such a queue for a short one; the reason says which.
func TestAnUnknownMetadataQueue(t *testing.T) {
	for word, want := range map[string]Action{"": Default, UnknownRefuse: Default, UnknownLight: Upgrade} {
		c := Case{Config: Config{F: 4, UnknownMetadata: word}, Job: Job{App: "a", Nodes: 16,
			DefaultForwarders: []topology.ForwarderID{"f1"}},
			History:    []Run{{App: "a", Nodes: 16, End: 1, VolumeBytes: 1e12, IONodes: 16, MetaUnknown: true}},
			Forwarders: Pool{Idle: []topology.ForwarderID{"f2", "f3", "f4", "f5"}}}
		d := Decide(c)
		if d.Action != want {
			t.Errorf("unknown_metadata = %q: %s, want %s: %+v", word, d.Action, want, d.Reasons)
		}
		named := false
		for _, r := range d.Reasons {
			named = named || strings.Contains(r.Text, "unknown_metadata takes them for few")
		}
		if named != (want == Upgrade) {
			t.Errorf("unknown_metadata = %q: the reasons are %+v", word, d.Reasons)
		}
	}
	if err := (Config{UnknownMetadata: "maybe"}).Validate(); err == nil || !strings.Contains(err.Error(), "maybe") {
		t.Errorf("a word that nobody knows: %v", err)
	}
}

func FuzzReadCase(f *testing.F) {
	f.Add(
		`{"job":{"app":"a","nodes":4,"default_forwarders":["f1"]},` +
			`"history":[{"app":"a","nodes":4,"end":1,"io_nodes":1e300}],"forwarders":{"idle":["f2"]}}`)
	f.Fuzz(func(t *testing.T, in string) {
		c, err := ReadCase(strings.NewReader(in))
		if err != nil {
			return
		}
		d := Decide(c)
		if d.Count != len(d.Forwarders) || d.Count > len(c.Forwarders.Idle)+len(c.Job.DefaultForwarders) {
			t.Errorf("%d forwarders counted, %d listed", d.Count, len(d.Forwarders))
		}
	})
}
