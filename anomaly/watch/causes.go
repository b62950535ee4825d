package watch

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/collector"
	"fairway/collector/topology"
)

// sign is something that a node reports of itself and that accuses nobody, for a busy node shows it, too. It names the
// cause of a finding that others' times made, where it rose when these did.
type sign struct {
	metric collector.Metric
	of     string  // what it is a sign of, as a cause names what was looked at
	least  float64 // what it must have risen by, and be above the peers'
	// words say what it was since the node became slow, and at its peers; seconds are how long that is.
	words func(own, peers, seconds float64) string
}

// signs are in the order in which a sentence has them.
var signs = [...]sign{
	// A twentieth of the time costs less than what is found.
	{collector.ThrottledRatio, "processors", 0.05, func(own, peers, _ float64) string {
		return fmt.Sprintf("its processors were throttled for %s of the time, its peers' for %s", anomaly.Percent(own),
			anomaly.Percent(peers))
	}},
	// Once in 20 s. Kernels before 5.5 keep no time, later ones count it when the throttling ends.
	{collector.ThrottleEvents, "processors", 0.05, func(own, peers, seconds float64) string {
		return fmt.Sprintf("its processors began to be throttled %s, its peers' %s", often(own*seconds),
			often(peers*seconds))
	}},
	// A tick is 1 to 256 times as long as a lane takes for a byte: a million of them are a thousandth of a second to
	// 0.3 s at 25 Gb/s a lane.
	{collector.LinkWaitTicks, "waits of InfiniBand ports", 1e6, func(own, peers, _ float64) string {
		more := "its peers' did not"
		if peers > 0 {
			more = anomaly.Times(own/peers) + " as often as its peers'"
		}
		return "its InfiniBand ports had to wait before they could send, " + more +
			": who receives from it, or the way there, is slow"
	}},
	// Loss of 0.2 % costs TCP more than it loses; below that a full link loses as much.
	{collector.ResentRatio, "TCP segments sent again", 0.002, func(own, peers, _ float64) string {
		return fmt.Sprintf("%s of the TCP segments that it sent were sent again, %s at its peers", anomaly.Percent(own),
			anomaly.Percent(peers))
	}},
	// Two a minute; a mount that idled does not count.
	{collector.Reconnects, "reconnects", 0.03, func(own, peers, seconds float64) string {
		return fmt.Sprintf("it had to connect to its servers anew %s, its peers' %s", often(own*seconds),
			often(peers*seconds))
	}},
	{collector.Recovering, "recovery", 0.05, func(own, peers, _ float64) string {
		return fmt.Sprintf("%s of its targets were in recovery, %s of its peers'", anomaly.Digits(own),
			anomaly.Digits(peers))
	}},
	// A link within its specification has one in hours.
	{collector.LinkErrors, "link errors", 1, func(own, peers, _ float64) string {
		return fmt.Sprintf("its InfiniBand ports counted %s errors a second, its peers' %s", anomaly.Digits(own),
			anomaly.Digits(peers))
	}},
}

// Rules of causes.
const (
	// roseBy is how many times what it was before a sign must be when the node became slow.
	roseBy = 3
	// apart is how many times its peers' median a sign must be: what all have explains no one's slowness.
	apart = 2
	// around is how near to that moment it must have risen, seconds; a detector's estimate of it is as good.
	around = 10
	// earlier is the time before that it is compared with, seconds.
	earlier = 30
	// signSteps of TrendStep seconds are kept: two minutes.
	signSteps = 24
	// fewestSigns are the seconds of which a mean must be.
	fewestSigns = 5
	// caseLasts is for how long a node may be beyond doubt until its cause is forgotten, seconds.
	caseLasts = 60
)

// causes keeps the signs of the newest two minutes, and the findings that they explain.
type causes struct {
	nodes map[topology.NodeID]*signsOf
	cases map[topology.NodeID]*explained
	means map[compared][]float64 // sorted, of this second
}

// compared is what slow nodes are compared by: a sign's means since a block, over the nodes of a role.
type compared struct {
	role topology.Role
	sign int
	from int64
}

// signsOf are a node's signs, in the order of signs.
type signsOf struct {
	*past
	role topology.Role
}

// explained is a node in doubt: which of its signs rose when it became slow. Its fields are saved.
type explained struct {
	Signs uint32 // a bit each; states of before have another field
	Seen  int64  // second of the newest doubt
}

func newCauses() causes {
	return causes{nodes: map[topology.NodeID]*signsOf{}, cases: map[topology.NodeID]*explained{},
		means: map[compared][]float64{}}
}

// take notes a node's second.
func (c *causes) take(f *collector.Frame, now int64) {
	var values [len(signs)]float64
	known := false
	for i, s := range signs {
		values[i] = valueOr(f, s.metric, math.NaN())
		known = known || !math.IsNaN(values[i])
	}
	if !known {
		return
	}
	if c.nodes[f.Node] == nil {
		c.nodes[f.Node] = &signsOf{newPast(signSteps * TrendStep), f.Role}
	}
	c.nodes[f.Node].add(now, values[:]...)
}

// mean is that of a sign over the steps from..to, of those that are kept; NaN where it is not known.
func (n *signsOf) mean(sign int, from, to int64) float64 {
	sum, seconds := n.sum(sign, from, to)
	if seconds < fewestSigns {
		return math.NaN()
	}
	return sum / seconds
}

// notKnown begins a cause that says what was looked at in vain.
const notKnown = "cause not known: "

// explain adds to the sentences of slow nodes what explains them.
func (c *causes) explain(now time.Time, verdicts []anomaly.Verdict) {
	t := now.Unix()
	clear(c.means)
	for i := range verdicts {
		v := &verdicts[i]
		n := c.nodes[v.Node]
		slow := v.Kind == anomaly.FailSlow || v.Kind == anomaly.TargetSlow
		if !slow || v.Level < anomaly.Doubt || v.Fact() || v.Since.IsZero() {
			continue
		}
		if n == nil {
			v.Cause = notKnown + "its node reports neither processors nor links"
			continue
		}
		of := anomaly.Entry(c.cases, v.Node)
		of.Seen = t
		for s := range signs {
			if rose, known := n.rose(s, v.Since.Unix()); known {
				of.Signs &^= 1 << s
				if rose {
					of.Signs |= 1 << s
				}
			}
		}
		c.say(t, v, n, of)
	}
	maps.DeleteFunc(c.cases, func(_ topology.NodeID, of *explained) bool { return t-of.Seen > caseLasts })
}

// rose says whether a sign rose within some seconds of a moment; that is known for two minutes.
func (n *signsOf) rose(sign int, at int64) (rose, known bool) {
	begin, end := at-around, at+around
	before := n.mean(sign, (begin-earlier)/TrendStep, begin/TrendStep-1)
	then := n.mean(sign, begin/TrendStep, end/TrendStep)
	return then-before >= signs[sign].least && then >= roseBy*before, !math.IsNaN(before) && !math.IsNaN(then)
}

// say adds the signs that are still there and that the peers have not.
func (c *causes) say(now int64, v *anomaly.Verdict, n *signsOf, of *explained) {
	from, when := (v.Since.Unix()+TrendStep-1)/TrendStep, "since it became slow"
	if oldest := n.Newest - signSteps + 1; from < oldest {
		from, when = oldest, "in the last two minutes"
	}
	seconds := float64(now - from*TrendStep)
	var found []string
	throttled := false
	for i, s := range signs {
		own := n.mean(i, from, n.Newest)
		if of.Signs>>i&1 == 0 || !(own >= s.least) || s.metric == collector.ThrottleEvents && throttled {
			continue
		}
		peers := c.peers(own, compared{n.role, i, from})
		if !(own-peers >= s.least && own >= apart*peers) {
			continue
		}
		throttled = throttled || s.metric == collector.ThrottledRatio
		found = append(found, s.words(own, peers, seconds))
		v.Add(s.metric.String(), own)
		v.Add(s.metric.String()+"_peers", peers)
	}
	if len(found) > 0 {
		v.Cause = when + " " + strings.Join(found, ", and ")
		v.Sentence += "; " + v.Cause
		return
	}
	var looked []string
	for i, s := range signs {
		if !math.IsNaN(n.mean(i, from, n.Newest)) && !slices.Contains(looked, s.of) {
			looked = append(looked, s.of)
		}
	}
	v.Cause = notKnown + "too little is known of its processors and links since then"
	if len(looked) > 0 {
		v.Cause = notKnown + strings.Join(looked, ", ") + " are as before or as its peers'"
	}
}

// peers is the median of a sign over the other nodes of a role than the one that has own; NaN where none reports it.
func (c *causes) peers(own float64, by compared) float64 {
	all, known := c.means[by]
	if !known {
		for _, n := range c.nodes {
			if m := n.mean(by.sign, by.from, n.Newest); n.role == by.role && !math.IsNaN(m) {
				all = append(all, m)
			}
		}
		slices.Sort(all)
		c.means[by] = all
	}
	_, high, n := compare.Others(all, own)
	if n < 1 {
		return math.NaN()
	}
	return high
}

// often writes how many times something happened.
func often(times float64) string {
	switch n := math.Round(times); n {
	case 0:
		return "never"
	case 1:
		return "once"
	default:
		return fmt.Sprintf("%.0f times", n)
	}
}
