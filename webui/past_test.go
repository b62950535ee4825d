package webui_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// A past second has the jobs that ran in it: on each forwarder the largest, and on its page each client's.
func TestThePastHasItsOwnTopJobs(t *testing.T) {
	s := simsite.New(t, simsite.Options{Steady: true})
	s.Run(120)
	eventually(t, "clients are shown", func() bool {
		return get[api.Overview](s,
			"/api/v1/overview").Forwarders[1].Clients == 4
	})
	now := time.Now().Truncate(time.Second)
	at := func(ago time.Duration) string { return "?at=" + now.Add(-ago).UTC().Format(time.RFC3339) }
	if o := get[api.Overview](s, "/api/v1/overview"+at(time.Minute)); o.Jobs != nil ||
		o.Forwarders[1].TopJob != "" || !strings.Contains(strings.Join(o.NotKept, " "), "no batch system") {
		t.Errorf("no batch system: %v %q, %q", o.Jobs, o.Forwarders[1].TopJob, o.NotKept)
	}
	nodes := s.Machine.Topo.Default.Clients("fwd001")
	for _, r := range []history.Run{
		{Job: "41", Nodes: 2, NodeList: nodes[:2], Start: now.Add(-100 * time.Second)},
		{Job: "42", Nodes: 2, NodeList: nodes[2:], Start: now.Add(-100 * time.Second)},
		{Job: "43", Nodes: 4, NodeList: nodes, Start: now.Add(-30 * time.Second)}, // the history may know an end late
	} {
		r.User, r.App = "wei", "ROMS"
		if err := s.History.Begin(r); err != nil {
			t.Fatal(err)
		}
		if r.Job == "43" {
			continue
		}
		r.End = now.Add(-40 * time.Second)
		// 42's profile is still to be made
		for _, end := range []func(history.Run) error{s.History.Stop, s.History.End}[:map[topology.JobID]int{"41": 2,
			"42": 1}[r.Job]] {
			if err := end(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for ago, want := range map[time.Duration]struct {
		top     topology.JobID
		share   bool
		jobs    int
		clients [2]topology.JobID
	}{110 * time.Second: {"", false, 0, [2]topology.JobID{}},
		time.Minute: {"42", true, 2, [2]topology.JobID{"41", "42"}}, 35 * time.Second: {},
		20 * time.Second: {"43", true, 1, [2]topology.JobID{"43", "43"}}} {
		o := get[api.Overview](s, "/api/v1/overview"+at(ago))
		r := o.Forwarders[1]
		if r.TopJob != want.top || (r.TopJobShare != nil) != want.share || o.Jobs == nil || *o.Jobs != want.jobs {
			t.Errorf("%s ago: top job %q %v, jobs %v; want %+v", ago, r.TopJob, r.TopJobShare, o.Jobs, want)
		}
		d := get[api.ForwarderDetail](s, "/api/v1/forwarders/fwd001"+at(ago))
		if got := [2]topology.JobID{d.ClientNodes[0].Job, d.ClientNodes[3].Job}; got != want.clients {
			t.Errorf("%s ago: the clients' jobs are %v, want %v", ago, got, want.clients)
		}
	}
	if r := get[api.Overview](s, "/api/v1/overview"+at(time.Minute)).Forwarders[1]; *r.TopJobShare >= 1 ||
		*r.TopJobShare < 0.5 {
		t.Errorf("the larger one's share of what both moved is %v", *r.TopJobShare)
	}
}

func TestThePastHasItsOwnFindingsClientsAndCells(t *testing.T) {
	s := simsite.New(t, simsite.Options{Steady: true}) // else fwd001 is idle in one of ten seconds
	s.Run(120)
	eventually(t, "clients are shown", func() bool {
		return get[api.Overview](s,
			"/api/v1/overview").Forwarders[1].Clients == 4
	})
	since := s.AccuseInThePast()
	at := func(path string, when time.Time) string {
		return path + "?at=" + when.UTC().Format(time.RFC3339)
	}
	for _, c := range []struct {
		after   time.Duration
		finding anomaly.State
		state   remap.ForwarderState
	}{{-10 * time.Second, "", remap.ForwarderOK}, {time.Second, anomaly.Suspect, remap.ForwarderSuspect},
		{20 * time.Second, anomaly.Confirmed, remap.ForwarderSlow}} {
		o := get[api.Overview](s, at("/api/v1/overview", since.Add(c.after)))
		got := anomaly.State("")
		if len(o.Findings) > 0 {
			got = o.Findings[0].State
		}
		if got != c.finding || o.Forwarders[1].State != c.state || o.Forwarders[1].Value(collector.ReadBytes) == nil ||
			o.Forwarders[1].Clients != 4 || len(o.NotKept) == 0 || !o.At.Equal(since.Add(c.after)) {
			t.Errorf("%s after: finding %q, %+v, not kept %q", c.after, got, o.Forwarders[1], o.NotKept)
		}
	}
	if o := get[api.Overview](s, at("/api/v1/overview",
		since.Add(-time.Hour))); o.Forwarders[1].State != remap.ForwarderStale ||
		o.Forwarders[1].Value(collector.ReadBytes) != nil {
		t.Errorf("an hour before the first second: %+v", o.Forwarders[1])
	}
	d := get[api.ForwarderDetail](s, at("/api/v1/forwarders/fwd001", since))
	if len(d.ClientNodes) != 4 || d.ClientNodes[0].ReadBytesPerSec == nil || d.ClientNodes[0].LatencySeconds == nil ||
		len(d.Series["read_bytes"]) < 70 {
		t.Errorf("the forwarder then: %+v, %d points", d.ClientNodes, len(d.Series["read_bytes"]))
	}
	marks := get[[]remap.Mark](s, fmt.Sprintf("/api/v1/marks?from=%d&to=%d", since.Add(-time.Minute).UnixMilli(),
		since.Add(time.Minute).UnixMilli()))
	if len(marks) != 2 || marks[0].ID != "F-0001" || !marks[0].At.Equal(since) ||
		!strings.HasPrefix(marks[1].Text, "confirmed") {
		t.Errorf("marks %+v", marks)
	}
	res, b := s.Ask("GET", at("/api/v1/grid", since)+"&metric=bw", simsite.ViewerSecret, nil)
	if res.StatusCode != 200 || len(b) != 28+32 || int64(binary.LittleEndian.Uint64(b[8:])) != since.UnixMilli() {
		t.Fatalf("grid: %d, %d bytes", res.StatusCode, len(b))
	}
	idle, busy := 0, 0
	for _, c := range b[28:] {
		if c == 10 {
			idle++
		} else if c < 10 {
			busy++
		}
	}
	if idle == 0 || busy == 0 || idle+busy != 32 {
		t.Errorf("cells %v", b[28:])
	}
	for path, want := range map[string]string{
		"/api/v1/grid?metric=bw": "at is missing", "/api/v1/grid?metric=x&at=-1m": "mdops",
		"/api/v1/grid?metric=bw&at=2999-01-01T00:00:00Z": "not past",
		"/api/v1/overview?at=2999-01-01T00:00:00Z":       "not past", "/api/v1/marks?from=now&to=-1h": "not before",
		"/api/v1/marks?limit=0": "limit",
	} {
		if res, b := s.Ask("GET", path, simsite.ViewerSecret, nil); res.StatusCode != 400 ||
			!strings.Contains(string(b), want) {
			t.Errorf("%s: %d %s, want %q", path, res.StatusCode, b, want)
		}
	}
}
