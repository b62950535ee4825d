package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector/appendlog"
	"fairway/collector/topology"
)

var epoch = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// run makes the i-th run of an application that moved so many bytes.
func run(i int, app string, volume float64) Run {
	start := epoch.Add(time.Duration(i) * time.Hour)
	return Run{Job: topology.JobID(fmt.Sprint(1000 + i)), User: "wei", App: app, Nodes: 64, Start: start,
		End:     start.Add(30 * time.Minute),
		Profile: &Profile{WriteBytes: volume, IONodes: 64, Mode: topology.ModeNN, Coverage: 1, From: "test"}}
}

func open(t *testing.T, path string) (*Store, Summary) {
	t.Helper()
	s, sum, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, sum
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStoreKeepsRunsOverRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	s, _ := open(t, path)
	r := run(0, "ROMS", 1e12)
	begun := r
	begun.End, begun.Profile, begun.NodeList = time.Time{}, nil, []topology.NodeID{"c1", "c2"}
	must(t, s.Begin(begun))
	if got := s.Running(); len(got) != 1 || !slices.Equal(got[0].NodeList, begun.NodeList) {
		t.Fatalf("running %+v", got)
	}
	other := begun
	other.Job = "77"
	must(t, s.Begin(other))
	must(t, s.End(r))
	must(t, s.Close())

	s, sum := open(t, path)
	if sum.Runs != 1 || sum.Running != 1 || len(sum.Damaged) > 0 || sum.TornBytes != 0 {
		t.Errorf("summary %+v", sum)
	}
	if got := s.Running(); len(got) != 1 || got[0].Job != "77" || len(got[0].NodeList) != 2 {
		t.Errorf("running %+v", got)
	}
	got, ok, err := s.Job(r.Job)
	if err != nil || !ok || got.Profile == nil || got.Profile.VolumeBytes() != 1e12 || !got.End.Equal(r.End) {
		t.Errorf("job %+v, %v, %v", got, ok, err)
	}
	if _, ok, err := s.Job("9"); ok || err != nil {
		t.Errorf("an unknown job: %v, %v", ok, err)
	}
	if got, err := s.Recent(10); err != nil || len(got) != 1 || got[0].Job != r.Job {
		t.Errorf("recent %+v, %v", got, err)
	}
	n := 0
	must(t, s.Each(func(Run) error { n++; return nil }))
	if n != 1 || s.Count() != 1 {
		t.Errorf("%d runs shown, %d counted", n, s.Count())
	}
}

// TestStoreRemembersWhoseProfileIsDue: a restart between a job's end and its profile loses neither.
func TestStoreRemembersWhoseProfileIsDue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	s, _ := open(t, path)
	r := run(0, "ROMS", 1e12)
	begun := r
	begun.End, begun.Profile, begun.NodeList = time.Time{}, nil, []topology.NodeID{"c1", "c2"}
	must(t, s.Begin(begun))
	stopped := begun
	stopped.End = r.End
	must(t, s.Stop(stopped))
	for range 2 {
		if p := s.Pending(); len(p) != 1 || len(p[0].NodeList) != 2 || len(s.Running()) != 0 || s.Count() != 0 {
			t.Fatalf("pending %+v, running %+v, %d ended", p, s.Running(), s.Count())
		}
		must(t, s.Close())
		s, _ = open(t, path)
	}
	must(t, s.End(r))
	if len(s.Pending()) != 0 || s.Count() != 1 {
		t.Errorf("pending %+v, %d ended", s.Pending(), s.Count())
	}
}

func TestStoreRefusesWhatCannotBe(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "history"))
	for _, c := range []struct {
		change func(*Run)
		want   string
	}{
		{func(r *Run) { r.Job = "" }, "a run without a job"},
		{func(r *Run) { r.Nodes = 0 }, "nodes = 0"},
		{func(r *Run) { r.End = r.Start.Add(-time.Second) }, "is before start"},
		{func(r *Run) { r.Profile.WriteBytes = -1 }, "profile.write_bytes = -1"},
		{func(r *Run) { q := -2.0; r.Profile.MetaQueue = &q }, "profile.meta_queue = -2"},
		{func(r *Run) { r.Profile.Mode = "N-X" }, `profile.mode = "N-X"`},
		{func(r *Run) { r.End = time.Time{} }, "ends without an end"},
	} {
		r := run(0, "A", 1)
		c.change(&r)
		if err := s.End(r); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if err := s.Begin(run(0, "A", 1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("a start with an end: %v", err)
	}
	if s.Count() != 0 || len(s.Running()) != 0 {
		t.Error("something refused was kept")
	}
}

// TestStoreSurvivesEveryCut cuts the file off at every byte of its last record: what was whole stays.
func TestStoreSurvivesEveryCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	s, _ := open(t, path)
	must(t, s.End(run(0, "A", 1e10)))
	first := s.log.Size()
	must(t, s.End(run(1, "A", 1e10)))
	must(t, s.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	for cut := first; cut < int64(len(whole)); cut++ {
		must(t, os.WriteFile(path, whole[:cut], 0o600))
		s, sum, err := Open(path)
		if err != nil || sum.Runs != 1 || sum.TornBytes != cut-first {
			t.Fatalf("cut at %d: %+v, %v", cut, sum, err)
		}
		must(t, s.End(run(2, "A", 1e10)))
		if p, ok := s.Predict(Key{"wei", "A", "", 64}); !ok || p.Depth != 2 {
			t.Fatalf("cut at %d: prediction %+v", cut, p)
		}
		must(t, s.Close())
	}
}

func TestStoreSkipsAndNamesADamagedRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	s, _ := open(t, path)
	for i := range 3 {
		must(t, s.End(run(i, "A", 1e10)))
	}
	must(t, s.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	lines := bytes.SplitAfter(b, []byte("\n"))
	lines[1][20] ^= 1
	must(t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))
	s, sum := open(t, path)
	if sum.Runs != 2 || len(sum.Damaged) != 1 || !errors.Is(sum.Damaged[0], ErrDamaged) ||
		!strings.Contains(sum.Damaged[0].Error(), path+":2: ") {
		t.Errorf("summary %+v", sum)
	}
	n := 0
	must(t, s.Each(func(Run) error { n++; return nil }))
	if n != 2 {
		t.Errorf("%d runs shown", n)
	}
}

func TestStoreIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	open(t, path)
	if _, _, err := Open(path); !errors.Is(err, appendlog.ErrLocked) {
		t.Errorf("a second opening: %v", err)
	}
}

// TestPredictionIsTheLatestRunWithTheSitesOwnError replays runs whose deviations are known.
func TestPredictionIsTheLatestRunWithTheSitesOwnError(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "history"))
	// 100 -> 110 is within 20 % of 110; 110 -> 200 is not; 200 -> 240 is; 240 -> 239 changes its mode.
	for i, v := range []float64{100e9, 110e9, 200e9, 240e9, 239e9} {
		r := run(i, "ROMS", v)
		if i == 4 {
			r.Profile.Mode = topology.ModeN1
		}
		must(t, s.End(r))
	}
	must(t, s.End(run(7, "WRF", 5e9)))
	must(t, s.End(run(8, "WRF", 5e9)))
	late := run(0, "ROMS", 1)
	late.Job, late.End = "late", epoch.Add(time.Minute)
	must(t, s.End(late))
	unseen := run(9, "DVS", 0)
	unseen.Profile = nil
	must(t, s.End(unseen))
	if p, ok := s.Predict(unseen.Key()); ok || p.Blind != 1 {
		t.Errorf("a run of whose I/O nothing is known: %+v, %v", p, ok)
	}
	p, ok := s.Predict(Key{"wei", "ROMS", "", 64})
	if !ok || p.Run.Profile.WriteBytes != 239e9 || p.Depth != 6 || p.Own != (Accuracy{5, 2}) ||
		p.Site != (Accuracy{6, 3}) {
		t.Errorf("prediction %+v", p)
	}
	if share, ok := s.Accuracy().Share(); !ok || share != 0.5 {
		t.Errorf("site's share %g, %v", share, ok)
	}
	for _, k := range []Key{{"wei", "ROMS", "", 65}, {"lin", "ROMS", "", 64}, {"wei", "ROMS", "p", 64}} {
		if p, ok := s.Predict(k); ok {
			t.Errorf("%+v is predicted from %+v", k, p.Run)
		}
	}
	r := run(9, "WRF", 0)
	r.Profile = nil
	must(t, s.End(r))
	if p, _ := s.Predict(r.Key()); p.Depth != 2 {
		t.Errorf("a run without a profile counts: %+v", p)
	}
}

// TestAccuracyDoesNotDependOnTheOrderOfLearning: an import of old logs behind newer runs counts as if
// they had come in when they ended.
func TestAccuracyDoesNotDependOnTheOrderOfLearning(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	runs := make([]Run, 60)
	for i := range runs {
		runs[i] = run(i, "A", 100e9+float64(rnd.IntN(60))*1e9)
		runs[i].Profile.Mode = []topology.Mode{"", topology.ModeNN, topology.ModeN1}[rnd.IntN(3)]
	}
	learned := func() *index {
		x := &index{series: map[Key]*series{}}
		for i := range runs {
			x.learn(&runs[i], 0)
		}
		return x
	}
	want := learned()
	if want.site.Predicted != 59 || want.site.Within == 0 || want.site.Within == 59 {
		t.Fatalf("%+v", want.site)
	}
	last := runs[59].Job
	for range 20 {
		rnd.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		got := learned()
		if s := got.series[runs[0].Key()]; got.site != want.site || s.own != want.site || s.latest.Job != last {
			t.Fatalf("%+v and %+v (last %s), want %+v (%s)", got.site, s.own, s.latest.Job, want.site, last)
		}
	}
}

// TestARunIsImportedOnce also where a job was requeued, where the daemon saw it with its own clock,
// and where it runs at this moment.
func TestARunIsImportedOnce(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "history"))
	live := run(1, "A", 5e9)
	must(t, s.End(live))
	blind := run(2, "A", 0)
	blind.Profile = nil
	must(t, s.End(blind))
	now := run(3, "A", 0)
	now.End, now.Profile = time.Time{}, nil
	must(t, s.Begin(now))
	seen := run(1, "A", 6e9)
	seen.Start, seen.End = seen.Start.Add(-2*time.Second), seen.End.Add(time.Second)
	again := run(2, "A", 8e9)
	again.Job, again.Start, again.End = "77", again.End, again.End.Add(time.Hour)
	first := run(2, "A", 8e9)
	first.Job = "77" // requeued: its second run begins as the first ends
	runs := []Run{seen, run(2, "A", 7e9), run(3, "A", 7e9), first, again}
	for round, want := range []Imported{{Runs: 3, Known: 2}, {Known: 5}} {
		got, err := s.Import(t.Context(), func(yield func(Run, error) bool) {
			for _, r := range runs {
				if !yield(r, nil) {
					return
				}
			}
		})
		if err != nil || got.Runs != want.Runs || got.Known != want.Known || got.Refused != 0 {
			t.Errorf("round %d: %+v %v, want %+v", round, got, err, want)
		}
	}
	if p, _ := s.Predict(live.Key()); p.Depth != 4 {
		t.Errorf("depth %d", p.Depth)
	}
}

const sample = `job,user,app,nodes,start,end,volume_bytes,io_nodes,mode,meta_queue
1,wei,ROMS,64,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,2e12,64,N-N,1.5
2,wei,ROMS,many,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,2e12,64,N-N,1
3,lin,WRF,8,1767225600,1767229200,,,,
4,lin,WRF,8,1767225600,1767225000,5,1,1-1,
5,lin,WRF,8,1767225600
6,lin,WRF,8,1767225600,1767229200,5,1,1-1,
`

func TestImportTakesGoodRowsAndNamesBadOnes(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "history"))
	for again := range 2 {
		sum, err := s.Import(t.Context(), ReadCSV("jobs.csv", strings.NewReader(sample)))
		must(t, err)
		if want := 3 * (1 - again); sum.Runs != want || sum.Known != 3-want || sum.Refused != 3 {
			t.Errorf("import %d: %+v", again, sum)
		}
		for i, want := range []string{"jobs.csv:3: nodes: \"many\"", "jobs.csv:5: invalid run: job \"4\": end",
			"jobs.csv: record on line 6: wrong number"} {
			if i >= len(sum.Errors) || !strings.HasPrefix(sum.Errors[i].Error(), want) {
				t.Errorf("errors %v, want one that begins with %s", sum.Errors, want)
			}
		}
	}
	p, ok := s.Predict(Key{"wei", "ROMS", "", 64})
	if !ok || p.Run.Profile.VolumeBytes() != 2e12 || *p.Run.Profile.MetaQueue != 1.5 || p.Run.Profile.IONodes != 64 {
		t.Errorf("prediction %+v", p)
	}
	if p, _ := s.Predict(Key{"lin", "WRF", "", 8}); p.Depth != 1 || p.Run.Profile.MetaQueue != nil {
		t.Errorf("an empty cell is not absent: %+v", p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Import(ctx, ReadCSV("x", strings.NewReader(strings.ReplaceAll(sample, "wei", "w")))); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a cancelled import: %v", err)
	}
}

func TestCSVHeading(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "heading: EOF",
		"job,user,app,nodes,start":               `column "end" is missing`,
		"job,user,app,nodes,start,end,bandwidth": `unknown column "bandwidth"`,
	} {
		var got error
		for _, err := range ReadCSV("x.csv", strings.NewReader(text)) {
			got = err
		}
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add(sample)
	f.Add("job,user,app,nodes,start,end\n\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		for r, err := range ReadCSV("f", strings.NewReader(text)) {
			if err == nil && r.check() != nil {
				t.Errorf("%+v was read and cannot be", r)
			}
			if n++; n > len(text)+1 {
				t.Fatal("more rows than letters")
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	r := run(0, "A", 1)
	line, _ := encode(&r)
	f.Add(line)
	f.Add([]byte("00000000 {}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := decode(line)
		if err != nil {
			return
		}
		if _, err := encode(&r); err != nil {
			t.Error(err)
		}
	})
}

// The runs of a past second are known with their nodes, also after a restart and while their profile is
// still to be made; one of which only the end is known is not among them.
func TestStoreKnowsTheRunsOfAPastSecond(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	s, _ := open(t, path)
	if s.Known() {
		t.Error("jobs are known before the first one")
	}
	nodes := []topology.NodeID{"c1", "c2"}
	begin := func(job string, from time.Duration) Run {
		r := Run{Job: topology.JobID(job), User: "wei", App: "ROMS", Nodes: 2, NodeList: nodes, Start: epoch.Add(from)}
		must(t, s.Begin(r))
		return r
	}
	finish := func(r Run, at time.Duration, made bool) {
		r.End = epoch.Add(at)
		must(t, s.Stop(r))
		if made {
			must(t, s.End(r))
		}
	}
	finish(begin("1", 0), time.Minute, true)
	finish(begin("2", 0), 2*time.Minute, false)
	again := begin("1", 90*time.Second) // the number comes again
	begin("3", 90*time.Second)
	must(t, s.End(run(0, "ROMS", 1e12))) // from logs
	check := func(when string) {
		t.Helper()
		for at, want := range map[time.Duration]string{-time.Second: "", 30 * time.Second: "1 2",
			59 * time.Second: "1 2", time.Minute: "2", 95 * time.Second: "1 2 3", time.Hour: "1 3"} {
			runs, err := s.At(epoch.Add(at))
			must(t, err)
			var names []string
			for _, r := range runs {
				names = append(names, string(r.Job))
				if !slices.Equal(r.NodeList, nodes) {
					t.Errorf("%s, at %s: job %s had %v", when, at, r.Job, r.NodeList)
				}
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s, at %s: %q, want %q", when, at, got, want)
			}
		}
	}
	check("before the restart")
	must(t, s.Close())
	s, _ = open(t, path)
	check("after it")
	finish(again, 2*time.Hour, true)
	if runs, err := s.At(epoch.Add(time.Hour)); err != nil || len(runs) != 2 || !s.Known() {
		t.Errorf("%v, %v", runs, err)
	}
}
