package rootcause

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

func file(name string, start, end float64) File {
	return File{Name: name, Start: start, End: end, Small: Unknown(), Nonconsec: Unknown(), Collective: Unknown(),
		Procs: Unknown(), OSTs: Unknown()}
}

func names(cs []Critical) string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

// IOMiner Figure 3: 14 s of I/O in a span of 18 s, exclusive times 10, 2 and 2 s.
func TestFigure3(t *testing.T) {
	j := Job{Procs: Unknown(), Files: []File{file("File1", 0, 10), file("File2", 6, 12), file("File3", 4, 8),
		file("File4", 16, 18)}}
	for i, small := range []Known{0.1, 0.6, 0.9, 1} {
		j.Files[i].Small = small
		j.Files[i].Bytes = 7e9
	}
	a := Explain(j, Defaults())
	if a.IOTime != 14 || a.Span != 18 || names(a.Critical) != "File1 File2 File4" {
		t.Fatalf("io_time %v span %v critical %s", a.IOTime, a.Span, names(a.Critical))
	}
	for i, want := range []float64{10, 2, 2} {
		if got := a.Critical[i].Exclusive; got != want {
			t.Errorf("exclusive[%d] = %v, want %v", i, got, want)
		}
	}
	if a.Critical[1].Start != 10 || a.Critical[1].FileStart != 6 {
		t.Errorf("File2's piece is %+v", a.Critical[1])
	}
	if want := (0.1*10 + 0.6*2 + 1*2) / 14; math.Abs(float64(a.Factors.Small)-want) > 1e-12 {
		t.Errorf("small %v, want %v", a.Factors.Small, want)
	}
	if a.Bandwidth != 2e9 {
		t.Errorf("bandwidth %v", a.Bandwidth)
	}
	if a.Factors.Collective.OK() || a.DistinctOSTs.OK() {
		t.Error("what is not logged must be unknown")
	}
}

func TestCoverEdges(t *testing.T) {
	f := func(want string, files ...File) {
		t.Helper()
		if got := names(criticalFiles(files)); got != want {
			t.Errorf("critical files %q, want %q", got, want)
		}
	}
	f("")
	f("", file("empty", 3, 3))
	f("a", file("empty", 3, 3), file("a", 0, 5))
	f("a b", file("a", 0, 5), file("b", 5, 9))                        // touching
	f("a c", file("a", 0, 5), file("b", 4, 7), file("c", 5, 12))      // the touching one reaches further
	f("a c", file("a", 0, 6), file("b", 1, 7), file("c", 2, 9))       // first-in-first-out would use three
	f("whole", file("a", 0, 5), file("b", 5, 9), file("whole", 0, 9)) // same start, longer wins
	f("a", file("a", 0, 5), file("b", 0, 5))                          // equal: the first
	f("a b", file("a", -5, -1), file("b", 1, 2))                      // gap
}

// The greedy choice against every subset of up to nine random intervals.
func TestMinimumCoverAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	for range 3000 {
		files := make([]File, 1+r.IntN(9))
		for i := range files {
			s := float64(r.IntN(14))
			files[i] = file("f", s, s+float64(r.IntN(6)))
		}
		got := criticalFiles(files)
		want, fewest := cover(files, 1<<len(files)-1), len(files)+1
		for set := range 1 << len(files) {
			if n := popcount(set); n < fewest && cover(files, set) == want {
				fewest = n
			}
		}
		set, total := 0, 0.0
		for i, c := range got {
			set |= 1 << c.File
			total += c.Exclusive
			if c.Start < files[c.File].Start || c.End != files[c.File].End || i > 0 && c.Start < got[i-1].End {
				t.Fatalf("%v: piece %+v", files, c)
			}
		}
		if len(got) != fewest || cover(files, set) != want || total != float64(popcount(int(want))) {
			t.Fatalf("%v: %d critical files of %v s, want %d of %d s", files, len(got), total, fewest,
				popcount(int(want)))
		}
	}
}

// cover marks the unit intervals that a set of files covers.
func cover(files []File, set int) (marks uint64) {
	for i, f := range files {
		if set>>i&1 == 1 {
			for s := int(f.Start); s < int(f.End); s++ {
				marks |= 1 << s
			}
		}
	}
	return marks
}

func popcount(v int) (n int) {
	for ; v != 0; v &= v - 1 {
		n++
	}
	return n
}

func reason(t *testing.T, a Answer, rule string) Clause {
	t.Helper()
	i := slices.IndexFunc(a.Reasons, func(c Clause) bool { return c.Rule == rule })
	if i < 0 {
		t.Fatalf("no clause %q in %q", rule, a.Verdict)
	}
	return a.Reasons[i]
}

func has(a Answer, rule string) bool {
	return slices.ContainsFunc(a.Reasons, func(c Clause) bool { return c.Rule == rule })
}

// The kinds of root cause that IOMiner section III-F describes.
func TestVerdicts(t *testing.T) {
	one := func(f File) Answer { return Explain(Job{Files: []File{f}, Procs: 1024}, Defaults()) }
	shared := file("big", 0, 100)
	shared.Procs, shared.OSTs, shared.Small, shared.Nonconsec, shared.Bytes = 1024, 1, 0.9, 0.02, 4e9
	a := one(shared)
	if c := reason(t, a, "procs-per-ost"); !c.Cause || c.Value != 1024 {
		t.Errorf("Physics1.1: %+v", c)
	}
	if c := reason(t, a, "small"); c.Cause || !strings.Contains(c.Text, "not the cause") {
		t.Errorf("small consecutive writes are no cause: %+v", c)
	}
	if c := reason(t, a, "one-file"); !c.Cause || !strings.Contains(c.Text, "1024 processes on 1 OST") {
		t.Errorf("one file: %+v", c)
	}
	scattered := shared
	scattered.Nonconsec, scattered.Collective, scattered.OSTs = 0.8, 0, 512
	a = one(scattered)
	for _, rule := range []string{"small", "nonconsec", "collective"} {
		if c := reason(t, a, rule); !c.Cause {
			t.Errorf("Meteorology1: %+v", c)
		}
	}
	if reason(t, a, "procs-per-ost").Cause {
		t.Error("2 processes for each OST are not crowded")
	}
	root := shared
	root.Procs = 1
	if c := reason(t, one(root), "one-process"); !c.Cause || c.Value != 1 {
		t.Errorf("Physics1.2: %+v", c)
	}
	var app []File
	for i := range 10 {
		app = append(app, file("step", float64(i*10), float64(i*10+4)))
	}
	a = Explain(Job{Files: app, Procs: Unknown()}, Defaults())
	if c := reason(t, a, "serial"); !c.Cause || c.Value != 1 {
		t.Errorf("App1: %+v", c)
	}
	if has(a, "small") || has(a, "procs-per-ost") || has(a, "one-process") {
		t.Errorf("clauses on unknown numbers: %q", a.Verdict)
	}
	if a := Explain(Job{Files: []File{file("a", 0, 3), file("b", 0, 3)}, Procs: Unknown()},
		Limits{Dominant: 1}); !has(a, "none") {
		t.Errorf("the absence of a cause is missing: %q", a.Verdict)
	}
	if a := Explain(Job{}, Defaults()); len(a.Verdict) != 1 || a.Bandwidth.OK() {
		t.Errorf("no files: %+v", a)
	}
}

// A trouble counts for the critical seconds it lasted, once, and only on files that lie on the target.
func TestRecordsOnTheWay(t *testing.T) {
	j := Job{Procs: Unknown(), Files: []File{file("a", 0, 10), file("b", 20, 30)}}
	j.Files[1].Targets = []topology.TargetID{"OST0001"}
	j.Files[0].Targets = []topology.TargetID{"OST0002"}
	j.Records = []Record{
		{Layer: topology.Forwarder, Node: "fwd1", What: anomaly.FailSlow, Start: 5, End: 22,
			Text: "writes 9 times its peers."},
		{Layer: topology.Forwarder, Node: "fwd1", What: anomaly.FailSlow, Start: 6, End: 8},
		{Layer: topology.Forwarder, Node: "fwd1", What: anomaly.FailSlow, Start: 29, End: 400},
		{Layer: topology.Forwarder, Node: "fwd2", What: Excluded, Start: -5, End: 400},
		{Layer: topology.Forwarder, Node: "fwd3", What: anomaly.N1Pin, Start: 0, End: 3, Neighbour: "88260"},
		{Layer: topology.Forwarder, Node: "fwd4", What: anomaly.FailSlow, Start: 10, End: 20},
		{Layer: topology.Storage, Node: "OST0001", What: anomaly.FailSlow, Start: 0, End: 30},
	}
	if err := j.Check(); err != nil {
		t.Fatal(err)
	}
	a := Explain(j, Defaults())
	got := map[string]float64{}
	for _, c := range a.Reasons {
		for _, node := range []string{"fwd1", "fwd2", "fwd3", "fwd4", "OST0001"} {
			if strings.Contains(c.Text, node) {
				got[node] = float64(c.Value) * a.IOTime
			}
		}
	}
	for node, want := range map[string]float64{"fwd1": 8, "fwd2": 20, "fwd3": 3, "OST0001": 10} {
		if math.Abs(got[node]-want) > 1e-9 {
			t.Errorf("%s: %v s, want %v", node, got[node], want)
		}
	}
	if _, named := got["fwd4"]; named {
		t.Error("fwd4 was slow only while nothing was read or written")
	}
	if c := reason(t, a, string(anomaly.N1Pin)); !c.Cause || !strings.Contains(c.Text, "pinned by job 88260") {
		t.Errorf("%+v", c)
	}
	if c := reason(t, a, string(Excluded)); c.Cause {
		t.Errorf("an exclusion counts as a cause: %+v", c)
	}
}

// What the desk remembers of the forwarders becomes records; who was only suspected is left out.
func TestFindingsBecomeRecords(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	got := FromFindings([]anomaly.Finding{
		{Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Excluded, Since: at(-60), Changed: at(2),
			Jobs: []topology.JobID{"7"}},
		{Node: "fwd1", Kind: anomaly.MetaStorm, State: anomaly.Returned, Since: at(1), Changed: at(9),
			Jobs: []topology.JobID{"8"}, Sentence: "many opens"},
		{Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Suspect, Since: at(0)},
		{Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Dismissed, Since: at(0)},
		{Node: "fwd2", Kind: anomaly.FailSlow, State: anomaly.Confirmed, Since: at(0)},
		{Node: anomaly.Everywhere, Kind: anomaly.BrownoutAll, State: anomaly.Confirmed, Since: at(5)},
	}, "7", map[topology.NodeID]bool{"fwd1": true}, start, at(20))
	if len(got) != 3 || got[0].Start != -60 || got[0].End != 20 || got[0].Neighbour != "" || got[1].End != 9 ||
		got[1].Neighbour != "8" || got[2].Layer != topology.Storage {
		t.Fatalf("%+v", got)
	}
	got = append(got, Record{Layer: topology.Storage, Node: "OST0003", What: anomaly.TargetSlow, Start: 0, End: 6},
		Record{Layer: topology.Forwarder, Node: "fwd1", What: anomaly.ForwarderSilent, Start: 0, End: 3})
	text := strings.Join(Explain(Job{Files: []File{file("a", 0, 10)}, Procs: Unknown(), Records: got},
		Defaults()).Verdict, "\n")
	for _, want := range []string{"fwd1 was fail-slow for 10 s of the I/O time (100 %)",
		"pinned by job 8 with a storm of metadata operations for 8 s",
		"The back end as a whole was slow behind the forwarders for 5 s",
		"Storage target OST0003 was slower than its peers for 6 s", "fwd1 did not report for 3 s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func readJob(b []byte) (Job, error) {
	return ReadJob(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))))
}

func TestReadJob(t *testing.T) {
	j, err := readJob([]byte(`{"files":[
		{"name":"a","start":0,"end":10,"bytes":5,"small":0.5,"nonconsec":0,"procs":8,"osts":4},
		{"name":"b","start":1,"end":2,"collective":true,"osts":["OST0003",20]}],"procs":8,
		"records":[{"layer":"storage","node":"OST0014","what":"fail_slow","start":0,"end":9}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if b := j.Files[1]; b.Collective != 1 || b.OSTs != 2 || b.Targets[1] != "OST0014" || b.Small.OK() || j.Procs != 8 {
		t.Errorf("%+v", j)
	}
	f := func(text, want string) {
		t.Helper()
		if _, err := readJob([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	f(``, "ends")
	f(`{"files":[`, "ends")
	f(`[]`, "want {")
	f(`{}`, `no field "files"`)
	f(`{"file":[]}`, `unknown field "file"`)
	f(`{"files":[{"name":"x","start":0}]}`, `files[0] "x": no field "end"`)
	f(`{"files":[{"name":"x","start":0,"end":"2"}]}`, `files[0]`)
	f(`{"files":[{"name":"x","start":5,"end":2}]}`, `files[0] "x": end 2 lies before start 5`)
	f(`{"files":[{"name":"x","start":0,"end":2,"small":60}]}`, `small is 60`)
	f(`{"files":[{"name":"x","start":0,"end":2,"osts":{}}]}`, `osts`)
	f(`{"files":[{"name":"x","start":0,"end":2,"smal":0}]}`, `smal`)
	f(`{"files":[]} {}`, "text after")
	f(`{"files":[],"records":[{"layer":"compute","node":"n","what":"fail_slow"}]}`, "layer")
}

// A long text is read object by object, and what is wrong at its end is named with its line.
func TestReadLongText(t *testing.T) {
	const files = 20_000
	b := []byte(`{"files" : [`)
	for i := range files {
		if i > 0 {
			b = append(b, " ,\n"...)
		}
		b = fmt.Appendf(b, `{"name":"f%d", "start":%d.5,"end":%d, "osts" : null,"collective":true}`, i, i, i+1)
	}
	whole := append(slices.Clone(b), " ] ,\"procs\": 12345 }\n"...)
	j, err := readJob(whole)
	if err != nil || len(j.Files) != files || j.Procs != 12345 {
		t.Fatalf("%d files of %v processes, %v", len(j.Files), j.Procs, err)
	}
	if f := j.Files[files-1]; f.Name != "f19999" || f.Start != 19999.5 || f.End != 20000 || f.Collective != 1 {
		t.Errorf("%+v", f)
	}
	if _, err := readJob(append(whole, '}')); err == nil {
		t.Error("a text with something behind it is taken")
	}
	_, err = readJob(append(b, ",\n{\"start\":1}]}"...))
	if want := `line 20001: files[20000] "": no field "end"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func FuzzReadJob(f *testing.F) {
	f.Add(
		"{\"files\":[{\"name\":\"a\",\"start\":0,\"end\":10,\"bytes\":5,\"small\":0.5,\"nonconsec\":0," +
			"\"procs\":8,\"osts\":[1,\"x\"],\"collective\":false}]}")
	f.Add(`{"files":[ {"name":"a\u00e9","start":1.5e3,"end":01,"bytes":-0,"small":0.5} , {"start":1,"end":2} ] } `)
	f.Add(
		"{\"procs\":3,\"files\":[{\"start\":1,\"end\":2,\"collective\":true,\"small\":null},{\"start\":1," +
			"\"end\":2,\"collective\":null,\"osts\":null}]}")
	f.Add(`{"files":[{"start":1.,"end":2},{"start":.5,"end":+2}]}`)
	f.Add(`{"files":[{"name":"a","start":-1e308,"end":1e308}],"procs":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		j, err := readJob([]byte(text))
		if err != nil {
			return
		}
		if _, err := json.Marshal(Explain(j, Defaults())); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

// cpuSeconds is the CPU time of the process so far; the clock of a shared machine says less.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return math.NaN()
	}
	return (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Seconds()
}

func BenchmarkMillionIntervals(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	files := make([]File, 1_000_000)
	for i := range files {
		s := r.Float64() * 1e6
		files[i] = file("f", s, s+r.ExpFloat64()*3)
		files[i].Small = Known(r.Float64())
	}
	begun := cpuSeconds()
	b.ReportAllocs()
	for b.Loop() {
		Explain(Job{Files: files, Procs: 64}, Defaults())
	}
	b.ReportMetric((cpuSeconds()-begun)/float64(b.N), "cpu-s/op")
}
