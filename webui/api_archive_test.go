package webui_test

import (
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/remap/journal"
	"fairway/tsdb/history/iolog"
	"fairway/webui/api"
)

func TestRootCause(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(3)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 32 })
	v := get[api.JobCause](s, "/api/v1/jobs/9/rootcause")
	if len(v.Logs) != 1 || v.Logs[0].Read != nil || v.Logs[0].Log != "-9223372036854775808" {
		t.Fatalf("%+v", v)
	}
	w := v.Logs[0].Write
	if w.IOTime != 12 || w.CriticalFiles != 2 || w.Critical[0].Name != "/scratch/out" ||
		!strings.HasPrefix(w.Critical[1].Name, "file 0") || w.Factors.ProcsPerOST != 64 {
		t.Errorf("%+v", w)
	}
	if text := strings.Join(w.Verdict, "\n"); !strings.Contains(text,
		"snx-OST0014 was saturated for 5 s of the I/O time (42 %)") ||
		!strings.Contains(text, "job 12 (vpic) moved 31 GB there") {
		t.Errorf("%s", text)
	}
	if res, _ := s.Ask("GET", "/api/v1/jobs/10/rootcause", simsite.ViewerSecret,
		nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("a job without a log: %d", res.StatusCode)
	}
	if v := get[api.JobCause](s, "/api/v1/jobs/10/rootcause?empty"); v.Job != "10" || v.Logs == nil || len(v.Logs) > 0 {
		t.Errorf("a job without a log, asked so that none is well: %+v", v)
	}
	// A forwarder that was excluded while the job ran is named, for as long as the job did I/O.
	post(s, "/api/v1/dispatch", simsite.HookSecret, dispatch.Request{Job: "9", User: "wei", App: "ROMS",
		Nodes: s.Machine.Topo.Default.Clients("fwd003")})
	s.Server.Records(func(w journal.Wanted) iter.Seq2[*journal.Record, error] {
		records := []journal.Record{
			{Kind: journal.StepExclude, At: s.LogStart.Add(5 * time.Second),
				Exclusion: &remap.Exclusion{Forwarder: "fwd003"}},
			{Kind: journal.StepExclude, At: s.LogStart.Add(6 * time.Second),
				Exclusion: &remap.Exclusion{Forwarder: "fwd003"}},
			{Kind: journal.StepExclude, At: s.LogStart, Exclusion: &remap.Exclusion{Forwarder: "fwd004"}},
			{Kind: journal.StepReturn, At: s.LogStart.Add(11 * time.Second),
				Exclusion: &remap.Exclusion{Forwarder: "fwd003"}},
		}
		return func(yield func(*journal.Record, error) bool) {
			for _, r := range slices.Backward(records) {
				if string(r.Exclusion.Forwarder) == w.Subject && !yield(&r, nil) {
					return
				}
			}
		}
	})
	v = get[api.JobCause](s, "/api/v1/jobs/9/rootcause")
	text := strings.Join(v.Logs[0].Write.Verdict, "\n")
	if !strings.Contains(text, "fwd003 was excluded from allocation for 6 s of the I/O time") ||
		strings.Contains(text, "fwd004") {
		t.Errorf("forwarders %v: %s", v.Forwarders, text)
	}
}

func TestArchiveQuestions(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	if all := get[[]iolog.Analysis](s, "/api/v1/archive"); len(all) != len(iolog.Analyses) || all[0].SQL == "" {
		t.Errorf("%d analyses", len(all))
	}
	f := func(path, secret string, status int, want string) {
		t.Helper()
		res, b := s.Ask("GET", path, secret, nil)
		if res.StatusCode != status || !strings.Contains(string(b), want) {
			t.Errorf("GET %s: %d %s", path, res.StatusCode, b)
		}
	}
	f("/api/v1/archive/top-apps?op=read", simsite.ViewerSecret, 200,
		`["top-apps","map[op:read]",10000,9223372036854775807]`)
	f("/api/v1/archive/top-apps?op=sideways", simsite.ViewerSecret, 400, "op")
	f("/api/v1/archive/nothing", simsite.ViewerSecret, 404, "lists them")
	f("/api/v1/archive/sql?q=SELECT+1&limit=5", simsite.OperatorSecret, 200, `["SELECT 1","map[]",5,`)
	f("/api/v1/archive/sql?q=SELECT+1&limit=0", simsite.OperatorSecret, 400, "limit")
	f("/api/v1/archive/sql?q=DROP+VIEW+job", simsite.OperatorSecret, 400, "only SELECT")
	f("/api/v1/archive/sql?q=SLOW", simsite.OperatorSecret, 400, "ended after 30s; ask for fewer")
	f("/api/v1/archive/sql?q=SELECT+1", simsite.ViewerSecret, 403, "operator")
	s = simsite.New(t, simsite.Options{NoArchive: true})
	f("/api/v1/archive/top-apps", simsite.ViewerSecret, 503, api.ErrUnreachable.Error())
}
