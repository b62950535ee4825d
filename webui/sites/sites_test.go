package sites

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fairway/anomaly"
	"fairway/collector/topology"
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
		a.Overview.Findings = append(a.Overview.Findings, Finding{ID: "F-" + site + string(rune('1'+i)),
			Node: n, Kind: kind, State: anomaly.Confirmed})
	}
	return a
}

// with adds what a job moves at a target; the user and application are known of a job whose number is not empty.
func (a Answer) with(target topology.NodeID, job topology.JobID, read, write float64) Answer {
	a.Uses = append(a.Uses, Use{api.TargetUse{Target: target, Job: job, ReadBytesPerSec: read,
		WriteBytesPerSec: write}})
	return a.running(job, read+write)
}

func (a Answer) running(job topology.JobID, moved float64) Answer {
	if job != "" {
		a.Jobs = append(a.Jobs, Job{ID: job, User: "olga", App: "WRF", Now: &JobNow{&moved}})
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
	a.Uses = List[Use]{}
	return a
}

func dead(site string) Answer {
	return Answer{Site: site, Err: errors.New("refused"), Since: now.Add(-time.Hour)}
}

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
	card := Card{Stage: advise.Slow, Sentence: "fwd1 is 5x slow", Finding: "F-1"}
	for name, c := range map[string]struct {
		answer       Answer
		state, worst string
		age          float64
	}{
		"dead": {Answer{Err: fmt.Errorf("%w: refused", api.ErrUnreachable)}, NoAnswer, api.ErrUnreachable.Error() +
			": refused", -1},
		"refuses": {dead("a"), NotKnown, "refused", -1},
		"calm":    {Answer{Overview: Overview{At: now.Add(-3 * time.Second), CalmWord: "all well"}}, "all well", "", 2},
		"simulated": {Answer{Overview: Overview{At: now.Add(-3 * time.Second), CalmWord: "all well", Simulated: true}},
			"all well, simulated", "", 2},
		"says nothing": {Answer{Overview: Overview{At: now}}, "not known", "", 0}, // its clock is ahead
		"new":          {Answer{}, NoData, "no second of data yet", -1},
		"old": {Answer{Overview: Overview{At: now.Add(-time.Minute), StaleAfter: 10, Needs: List[Card]{card}}}, NoData,
			"its newest second is too old", 59},
		"one": {Answer{Overview: Overview{At: now, StaleAfter: 10, Needs: List[Card]{card}}},
			"1 needs you", "slow: fwd1 is 5x slow (F-1)", 0},
		"two": {Answer{Overview: Overview{At: now, Needs: List[Card]{{Stage: advise.Waits, Sentence: "P"}, card}}},
			"2 need you", "plan: P", 0},
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

// needing is a site's whose forwarders need somebody, the worst first.
func needing(site string, stages ...advise.Stage) Answer {
	a := Answer{Site: site, Addr: "https://" + site + ":7117/,https://other"}
	a.Overview.At, a.Overview.CalmWord = now.Add(-time.Second), "all well"
	a.Overview.Forwarders = make(List[struct{}], 8)
	for i, stage := range stages {
		a.Overview.Needs = append(a.Overview.Needs, Card{Stage: stage, Sentence: fmt.Sprint(site, i),
			Victims: List[Victim]{{Job: "7", Share: 0.5, Waiting: 2}}})
	}
	return a
}

// The sites together: which need a person, of which nothing is known, and what hurts most of all.
func TestOneViewOfAll(t *testing.T) {
	jobs, rate := 3, 2e9
	large := needing("big")
	large.Overview.Jobs, large.Overview.ComputeNodes = &jobs, 100
	large.Overview.Now = &api.LayerNow{ReadBytesPerSec: &rate}
	large.Overview.Findings = List[Finding]{{ID: "F-1"}, {ID: "F-2", State: anomaly.Returned}}
	const small = "8 forwarders, 0 compute nodes, 0 B/s read, 0 B/s written, 0 open findings"
	for name, c := range map[string]struct {
		answers                 []Answer
		sentence, second, needs string
	}{
		"no site answers": {[]Answer{dead("a"), dead("b")}, "Nothing is known of 2 machines", "", ""},
		"all are calm": {[]Answer{needing("a"), large}, "Nothing needs you on 2 machines",
			"16 forwarders, 100 compute nodes, 3 running jobs, 2 GB/s read, 0 B/s written, 1 open finding", ""},
		"one needs": {[]Answer{needing("a", advise.Slow), dead("b")}, "a needs you; nothing is known of b", small,
			"a0"},
		"the worst first, whoever has most": {[]Answer{needing("a", advise.Helped, advise.Waits),
			needing("b", advise.Slow, advise.Waits, advise.Waits, advise.Waits, advise.Waits, advise.Waits)},
			"a and b need you", "16 " + small[2:], "b0 a0 a1 b1 b2 b3 and 2"},
		"many of which nothing is known": {[]Answer{needing("a"), dead("b"), dead("c"), dead("d"), dead("e"),
			dead("f")},
			"Nothing needs you on 1 machine; nothing is known of b, c, d and 2 others", small, ""},
	} {
		v := Merge(c.answers, now)
		var needs []string
		for _, n := range v.Needs {
			needs = append(needs, n.Sentence)
			if n.URL != "https://"+n.Site+":7117" {
				t.Errorf("%s: %s has the pages %q", name, n.Site, n.URL)
			}
		}
		if v.NeedsLeft > 0 {
			needs = append(needs, fmt.Sprint("and ", v.NeedsLeft))
		}
		if got := strings.Join(needs, " "); v.Sentence != c.sentence || v.Second != c.second || got != c.needs {
			t.Errorf("%s: %q, %q, needs %s; want %q, %q, %s", name, v.Sentence, v.Second, got, c.sentence, c.second,
				c.needs)
		}
	}
	if r := Merge([]Answer{dead("a")}, now).Sites[0]; !r.Since.Equal(now.Add(-time.Hour)) || r.Findings != nil {
		t.Errorf("a dead one: %+v", r)
	}
}

// What another daemon writes is bounded as it is read, and one of another version is refused or read in part.
func TestHostileAnswers(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	var o Overview
	text := `{"at":"2026-01-02T03:04:05Z","calm_word":"` + long + `","findings":[{}` + strings.Repeat(`,{}`, 1<<20) +
		`],"needs":[{"sentence":"a\u001b[31m\u202eb\n\u2028c` + long + `","victims":[{"share":1e300}` +
		strings.Repeat(`,{}`, 1000) + `]}],"now":{"read_bytes_per_sec":1e308,"write_bytes_per_sec":-5}}`
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	c := &o.Needs[0]
	if len(o.Findings) != mostRows || utf8.RuneCountInString(string(o.CalmWord)) != mostLetters ||
		utf8.RuneCountInString(c.Sentence) != mostLetters || !strings.HasPrefix(c.Sentence, "a?[31m?b??cä") ||
		len(c.Victims) != mostVictims || c.Victims[0].Share != 1 {
		t.Errorf("%d findings, a sentence of %d bytes (%.20q), %d victims", len(o.Findings), len(c.Sentence),
			c.Sentence, len(c.Victims))
	}
	a := []Answer{{Site: "a", Overview: o}, {Site: "b", Overview: o}}
	a[0].Overview.Forwarders = make(List[struct{}], 1)
	if v := Merge(a, now); !strings.Contains(v.Second, "2 EB/s read, 0 B/s written") {
		t.Errorf("sum: %s", v.Second)
	}
	for _, bad := range []string{`{"findings":{}}`, `{"findings":"x"}`, `{"needs":[{"sentence":5}]}`, `{"at":7}`,
		`[]`} {
		if err := json.Unmarshal([]byte(bad), new(Overview)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	for text, want := range map[string]string{`{"targets":null}`: "nil", `{}`: "nil", `{"targets":[]}`: "0",
		`{"targets":[{"target":"x"}]}`: "1"} {
		var v struct{ Targets List[Use] }
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(len(v.Targets))
		if v.Targets == nil {
			got = "nil"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Of one's own target is named who else uses it, and which site does not answer.
func TestDescribe(t *testing.T) {
	own := answer("a", 0, 0, ost).with(ost, "5", 1e9, 0)
	for name, c := range map[string]struct {
		others []Answer
		want   string
	}{
		"a neighbour's job": {[]Answer{answer("b", 0, 0).with(ost, "812", 0, 9e9), dead("c")},
			"scratch-OST0005 is accused by a (F-a1); b uses it, too\n" +
				"b's job 812 (olga, WRF) writes 9 GB/s there, 90 % of what a and b report\nnothing is known of c"},
		"no site uses it, and one is silent": {[]Answer{answer("b", 1e9, 0).counting(), dead("c")},
			"scratch-OST0005 is accused by a (F-a1)\n" +
				"a's job 5 (olga, WRF) reads 1 GB/s there, 100 % of what a and b report\nnothing is known of c"},
		"none answers": {[]Answer{dead("b"), dead("c")}, "scratch-OST0005 is accused by a (F-a1)\n" +
			"a's job 5 (olga, WRF) reads 1 GB/s there, 100 % of what a reports\nnothing is known of b and c"},
	} {
		s := Describe(append([]Answer{own}, c.others...), ost)
		if got := strings.Join(append([]string{s.Text}, s.Lines...), "\n"); got != c.want || s.Target != ost {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
