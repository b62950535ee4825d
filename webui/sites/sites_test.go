package sites

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// answer is a site's, with a finding of each of the targets and what it moves in all, read and written.
func answer(site string, read, write float64, accused ...topology.NodeID) Answer {
	a := Answer{Site: site}
	a.Overview.At, a.Overview.Now = now.Add(-3*time.Second),
		&api.LayerNow{ReadBytesPerSec: &read, WriteBytesPerSec: &write}
	for i, n := range accused {
		kind := anomaly.TargetSlow
		if n == anomaly.Everywhere {
			kind = anomaly.BrownoutAll
		}
		a.Overview.Findings = append(a.Overview.Findings, anomaly.Finding{ID: "F-" + site + string(rune('1'+i)),
			Node: n, Kind: kind, State: anomaly.Confirmed})
	}
	return a
}

// with adds what a job moves at a target; the user and application are known of a job whose number is not empty.
func (a Answer) with(target topology.NodeID, job topology.JobID, read, write float64) Answer {
	a.Uses = append(a.Uses, api.TargetUse{Target: target, Job: job, ReadBytesPerSec: read, WriteBytesPerSec: write})
	return a.running(job, read+write)
}

func (a Answer) running(job topology.JobID, moved float64) Answer {
	if job != "" {
		a.Jobs = append(a.Jobs, api.JobRow{Job: remap.Job{ID: job, User: "olga", App: "WRF"},
			Now: &api.JobNow{MovedBytesPerSec: &moved}})
	}
	return a
}

func (a Answer) byServers() Answer {
	for i := range a.Uses {
		a.Uses[i].By = api.StorageByServers
	}
	return a
}

func (a Answer) counting() Answer {
	a.Uses = []api.TargetUse{}
	return a
}

func dead(site string) Answer { return Answer{Site: site, Err: errors.New("refused")} }

const ost topology.NodeID = "scratch-OST0005"

func TestSharedTargets(t *testing.T) {
	suspect := answer("a", 0, 0, ost).counting()
	suspect.Overview.Findings[0].State = anomaly.Suspect
	closed := answer("a", 0, 0, ost)
	closed.Overview.Findings[0].State = anomaly.Returned
	forwarder := answer("a", 0, 0, "fwd001")
	forwarder.Overview.Findings[0].Kind = anomaly.FailSlow
	forbidden := answer("b", 1e9, 0)
	forbidden.UsesErr = errors.New("not allowed")
	for name, c := range map[string]struct {
		answers   []Answer
		want      string // lines of all targets
		neighbour string
	}{
		"nobody accuses": {[]Answer{answer("a", 1, 1), answer("b", 1, 1)}, "", ""},
		"two accuse, the job of one does most": {[]Answer{answer("a", 0, 0, ost).with(ost, "77", 0, 1e9),
			answer("b", 0, 0, ost).with(ost, "77", 0, 8.1e9)},
			"scratch-OST0005 is accused by a (F-a1) and b (F-b1)\n" +
				"b's job 77 (olga, WRF) writes 8.1 GB/s there, 89 % of what a and b report", "b 77"},
		"one accuses, the other's job does most": {[]Answer{suspect, answer("b", 0, 0).with(ost, "5", 2e9, 1.5e9),
			answer("c", 0, 0).with(ost, "6", 1e9, 0)},
			"scratch-OST0005 is accused by a (F-a1, suspect); b and c use it, too\n" +
				"b's job 5 (olga, WRF) moves 3.5 GB/s there, 78 % of what a, b and c report", "b 5"},
		"its own job does most": {[]Answer{answer("a", 0, 0, ost).with(ost, "5", 2e9, 0),
			answer("b", 0, 0).with(ost, "6", 1e9, 0)},
			"scratch-OST0005 is accused by a (F-a1); b uses it, too\n" +
				"a's job 5 (olga, WRF) reads 2 GB/s there, 67 % of what a and b report", ""},
		"no job does most, a site does": {[]Answer{answer("a", 0, 0, ost).counting(),
			answer("b", 0, 0).with(ost, "5", 1e9, 0).with(ost, "6", 1e9, 0)},
			"scratch-OST0005 is accused by a (F-a1); b uses it, too\n" +
				"b reads 2 GB/s there, 100 % of what a and b report; no single job does most of it", ""},
		"whose the bytes are is not reported": {[]Answer{answer("a", 0, 0, ost).counting(),
			answer("b", 0, 0).with(ost, "", 0, 1e9)},
			"scratch-OST0005 is accused by a (F-a1); b uses it, too\n" +
				"b writes 1 GB/s there, 100 % of what a and b report; by which job is not reported", ""},
		"half each": {[]Answer{answer("a", 0, 0, ost).with(ost, "5", 1e9, 0),
			answer("b", 0, 0, ost).with(ost, "6", 1e9, 0)},
			"scratch-OST0005 is accused by a (F-a1) and b (F-b1)\n" +
				"no site does most of the I/O there, 2 GB/s in all, as far as a and b report", ""},
		"nothing moves": {[]Answer{answer("a", 0, 0, ost).counting(), answer("b", 0, 0, ost).counting()},
			"scratch-OST0005 is accused by a (F-a1) and b (F-b1)\n" +
				"nothing moves there now, as far as a and b report", ""},
		"the other counts and does not use it": {[]Answer{answer("a", 0, 0, ost).with(ost, "5", 1e9, 0),
			answer("b", 1e9, 0).counting()}, "", ""},
		"the other does not count": {[]Answer{answer("a", 0, 0, ost).with(ost, "5", 1e9, 0),
			answer("b", 3e9, 0).running("9", 2e9), forbidden, answer("c", 0, 0)},
			"scratch-OST0005 is accused by a (F-a1)\n" +
				"a's job 5 (olga, WRF) reads 1 GB/s there, 100 % of what a reports\n" +
				"b does not report what it moves there; in all it reads 3 GB/s, most of it job 9 (olga, WRF)\n" +
				"b does not report what it moves there (not allowed); in all it reads 1 GB/s\n" +
				"c does not report what it moves there, nor any traffic", ""},
		"one does not answer": {[]Answer{answer("a", 0, 0, ost).counting(), answer("b", 0, 0, ost).counting(),
			dead("c")}, "scratch-OST0005 is accused by a (F-a1) and b (F-b1)\n" +
			"nothing moves there now, as far as a and b report\nnothing is known of c", ""},
		"a server cannot know jobs of one number apart": {[]Answer{answer("a", 0, 0, ost).with(ost, "5", 1e9, 0).
			byServers(), answer("b", 0, 0, ost).counting().running("5", 1)},
			"scratch-OST0005 is accused by a (F-a1) and b (F-b1)\n" +
				"a reads 1 GB/s there, 100 % of what a and b report; by which job is not reported", ""},
		"the back end has no name": {[]Answer{answer("a", 0, 0, anomaly.Everywhere),
			answer("b", 0, 0, anomaly.Everywhere), answer("c", 0, 1e9)},
			"the back end is accused by a (F-a1) and b (F-b1); whether it is one and the same is not reported\n" +
				"c does not report what it moves there; in all it writes 1 GB/s", ""},
		"closed ones and forwarders": {[]Answer{closed, forwarder, answer("b", 1, 1)}, "", ""},
		"target of most sites first": {[]Answer{answer("a", 0, 0, "OST1", "OST2").counting(),
			answer("b", 0, 0, "OST2").with("OST1", "5", 1, 0)},
			"OST2 is accused by a (F-a2) and b (F-b1)\nnothing moves there now, as far as a and b report\n" +
				"OST1 is accused by a (F-a1); b uses it, too\n" +
				"b's job 5 (olga, WRF) reads 1 B/s there, 100 % of what a and b report", "b 5"},
	} {
		v := Merge(c.answers, now)
		var got []string
		neighbour := ""
		for _, s := range v.Shared {
			got = append(append(got, s.Text), s.Lines...)
			if s.Neighbour != nil {
				neighbour = s.Neighbour.Site + " " + string(s.Neighbour.Job)
			}
		}
		if text := strings.Join(got, "\n"); text != c.want || neighbour != c.neighbour {
			t.Errorf("%s: neighbour %q, want %q; got\n%s\nwant\n%s", name, neighbour, c.neighbour, text, c.want)
		}
	}
}

func TestRows(t *testing.T) {
	card := advise.Card{Stage: advise.Slow, Sentence: "fwd1 is 5x slow", Finding: "F-1"}
	for name, c := range map[string]struct {
		answer       Answer
		state, worst string
		age          float64
	}{
		"dead": {Answer{Err: fmt.Errorf("%w: refused", api.ErrUnreachable)}, NoAnswer, api.ErrUnreachable.Error() +
			": refused", -1},
		"refuses": {dead("a"), NotKnown, "refused", -1},
		"calm": {Answer{Overview: api.Overview{At: now.Add(-3 * time.Second), Todo: api.Todo{CalmWord: "all well"}}},
			"all well", "", 2},
		"says nothing": {Answer{Overview: api.Overview{At: now}}, "not known", "", 0}, // its clock is ahead
		"new":          {Answer{}, NoData, "no second of data yet", -1},
		"old": {Answer{Overview: api.Overview{At: now.Add(-time.Minute), StaleAfter: 10,
			Todo: api.Todo{Needs: []advise.Card{card}}}}, NoData, "its newest second is too old", 59},
		"one": {Answer{Overview: api.Overview{At: now, StaleAfter: 10, Todo: api.Todo{Needs: []advise.Card{card}}}},
			"1 needs you", "slow: fwd1 is 5x slow (F-1)", 0},
		"two": {Answer{Overview: api.Overview{At: now, Todo: api.Todo{Needs: []advise.Card{
			{Stage: advise.Waits, Sentence: strings.Repeat("ä", 1000)}, card}}}},
			"2 need you", "plan: " + strings.Repeat("ä", mostLetters-1) + "…", 0},
	} {
		r := Merge([]Answer{c.answer}, now).Sites[0]
		worst, age := r.Why, -1.0
		if r.Worst != nil {
			worst = r.Worst.Text()
		}
		if r.AgeSeconds != nil {
			age = *r.AgeSeconds
		}
		if r.State != c.state || worst != c.worst || age != c.age {
			t.Errorf("%s: %q %q %v, want %q %q %v", name, r.State, worst, age, c.state, c.worst, c.age)
		}
	}
}

// However many targets a site accuses, some are asked about and the rest is counted.
func TestTargetsAreBounded(t *testing.T) {
	var many []topology.NodeID
	for i := range mostTargets + 3 {
		many = append(many, topology.NodeID("OST"+string(rune('A'+i))))
	}
	answers := []Answer{answer("a", 0, 0, many...), answer("b", 0, 0, many...)}
	if v := Merge(answers, now); len(v.Shared) != mostTargets || v.Left != 3 || len(Accused(answers)) != mostTargets {
		t.Errorf("%d shown, %d left, %d asked", len(v.Shared), v.Left, len(Accused(answers)))
	}
}
