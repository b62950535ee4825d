package recorded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

const header = "rx,ts,node,r_bytes,w_bytes,r_ops,w_ops,m_ops,qlen," +
	"r_wait_us,w_wait_us,m_wait_us,r_exe_us,w_exe_us,m_exe_us\n"

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var w io.WriteCloser = f
	if strings.HasSuffix(name, ".gz") {
		z := gzip.NewWriter(f)
		defer z.Close()
		w = z
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func TestBadRowsAreNamedAndLeftOut(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "samples.csv", header+
		"100,100,f1,1600,1600,1,1,0,0,5,5,0,500,500,0\n"+
		"100,100,f2,1600,x,1,1,0,0,5,5,0,500,500,0\n"+ // line 3
		"yesterday,100,f2,1600,1600,1,1,0,0,5,5,0,500,500,0\n"+ // line 4
		"101,101,f1,1600\n"+ // line 5
		"101,101,f1,-1,1600,1,1,0,0,5,5,0,500,500,0\n"+ // line 6
		"102,102,,1600,1600,1,1,0,0,5,5,0,500,500,0\n"+ // line 7
		"99,102,\"f3\",3200,1600,\"2.5\",1,0,0,5,5,0,,500,0\n"+ // late, a fraction and an unknown value: taken, now
		strings.Repeat("9", maxLine+10)+"\n"+
		"103,103,f1,1600,1600,1,1,0,0,5,5,0,500,500,0")
	var bad []string
	tr, err := Open(dir, func(e *RowError) { bad = append(bad, fmt.Sprint(e.Line, " ", e.Field)) })
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	rows := ""
	for {
		s, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Rows {
			rows += fmt.Sprint(s.RX, r.Node, r.Class[0].Ops, " ")
		}
	}
	if got, want := strings.Join(bad, ","), "3 w_bytes,4 rx,5 ,6 r_bytes,7 node,9 "; got != want {
		t.Errorf("bad rows %q, want %q", got, want)
	}
	if want := "100f11 102f32.5 103f11 "; rows != want {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	none := func(*RowError) {}
	dir := t.TempDir()
	if _, err := Open(dir, none); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "samples.csv") {
		t.Error(err)
	}
	write(t, dir, "samples.csv", "rx,node,r_bytes\n")
	if _, err := Open(dir, none); err == nil || !strings.Contains(err.Error(), "field r_ops is missing") {
		t.Error(err)
	}
	write(t, dir, "samples.csv", header)
	write(t, dir, "backend.csv.gz", "")
	if err := os.WriteFile(filepath.Join(dir, "backend.csv.gz"), []byte("not gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, none); err == nil || !strings.Contains(err.Error(), "backend.csv.gz") {
		t.Error(err)
	}
}

func TestOptionalFilesJoinTheirSecond(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "samples.csv.gz", header+
		"100,100,f1,1600,1600,1,1,3,0,5,5,5,500,500,9\n100,100,f2,1600,1600,1,1,3,0,5,5,5,500,500,9\n"+
		"115,115,f1,1600,1600,1,1,3,0,5,5,5,500,500,9\n")
	write(t, dir, "backend.csv", "rx,pool0_us,pool1_us,mds_us\n100,900,1800,190\n115,soon,1800,190\n")
	write(t, dir, "probe.csv", "rx,node,read1m_us,write1m_us,stat_us\n100,f1,2000,2100,300\n")
	write(t, dir, "nodes.csv", "node,group,rack,default_service\nf1,A,0,1\nf2,A,0,0\n")
	write(t, dir, "jobs.csv", "job,app,start,end,nodes\nj1,a,90,200,f1;f2\nj2,a,soon,200,f1\n")
	badRows := 0
	tr, err := Open(dir, func(*RowError) { badRows++ })
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	s, err := tr.Next()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Pools) != 2 || s.Pools[1] != 1800e-6 {
		t.Errorf("pools %v", s.Pools)
	}
	if p, ok := tr.Canary("f1"); !ok || p.Took[1] != 2100e-6 {
		t.Errorf("canary %v %v", p, ok)
	}
	if _, err := tr.Next(); err != nil {
		t.Fatal(err)
	}
	if _, ok := tr.Canary("f1"); ok {
		t.Error("a canary of a slot that is over")
	}
	if len(tr.Jobs) != 1 || len(tr.Jobs[0].Nodes) != 2 || len(tr.Nodes) != 2 || badRows != 2 {
		t.Errorf("jobs %v nodes %v %d bad rows", tr.Jobs, tr.Nodes, badRows)
	}
}

// drawnTrace writes 1,800 seconds of 16 forwarders with a job on each four. From second 500 on f3 takes three times as
// long for everything, and from 1,100 on f9, and canaries through f3 see it; until is the last second that arrives.
func drawnTrace(t *testing.T, until int) string {
	t.Helper()
	const begin = 1_600_000_000
	r := rand.New(rand.NewPCG(7, 7))
	var samples, probes strings.Builder
	samples.WriteString(header)
	probes.WriteString("rx,node,read1m_us,write1m_us,stat_us\n")
	for at := range until {
		for n := range 16 {
			slow := 1.0
			if n == 3 && at >= 500 || n == 9 && at >= 1100 {
				slow = 3
			}
			jitter := func(v float64) float64 { return v * (0.9 + 0.2*r.Float64()) }
			ops := 50 + r.IntN(100)
			exec := func(us float64) float64 { return jitter(us * slow) }
			fmt.Fprintf(&samples, "%d,%d,f%d,%d,%d,%d,%d,%d,%d,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f\n", begin+at, begin+at, n,
				ops<<20, ops<<20, ops, ops, ops, 0, jitter(20), jitter(20), jitter(10), exec(900), exec(1100),
				exec(120))
		}
		if at%10 == 0 {
			took := map[bool]int{true: 9000, false: 3000}[at >= 500]
			fmt.Fprintf(&probes, "%d,f3,%d,%d,%d\n", begin+at, took, took, took/4)
		}
	}
	dir := t.TempDir()
	write(t, dir, "samples.csv.gz", samples.String())
	write(t, dir, "probe.csv.gz", probes.String())
	var jobs strings.Builder
	jobs.WriteString("job,start,end,nodes\n")
	for k := range 4 {
		fmt.Fprintf(&jobs, "j%d,%d,%d,f%d;f%d;f%d;f%d\n", k, begin, begin+1800, 4*k, 4*k+1, 4*k+2, 4*k+3)
	}
	write(t, dir, "jobs.csv", jobs.String())
	return dir
}

// Nothing that arrives later may be used: what is decided in the first half of a trace is the same
// whether or not there is a second half.
func TestOnlyThePastDecides(t *testing.T) {
	const half = 900
	const until = 1_600_000_000 + half
	early := func(dir string) (out []string) {
		_, err := Detect(context.Background(), dir, DefaultSettings(), func(e Event) error {
			if e.Start < until && (e.End == 0 || e.End >= until) {
				e.End = 0
			}
			if e.Start < until && e.Type != "probe" {
				out = append(out, fmt.Sprint(e.Type, e.Node, e.Start, e.End, e.Detail))
			}
			return nil
		}, func(e *RowError) { t.Error(e) })
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(out)
		return out
	}
	whole, cut := early(drawnTrace(t, 2*half)), early(drawnTrace(t, half))
	if !slices.Equal(whole, cut) {
		t.Errorf("decided with the future:\n%q\nwithout:\n%q", whole, cut)
	}
	if !slices.ContainsFunc(whole, func(e string) bool { return strings.HasPrefix(e, "fail_slowf3") }) {
		t.Errorf("f3 is not found: %q", whole)
	}
}

func FuzzTrace(f *testing.F) {
	f.Add(header+"100,100,f1,1600,1600,1,1,0,0,5,5,0,500,500,0\n",
		"rx,pool0_us,pool1_us\n100,900,1800\n")
	f.Add(header+"1e3,,f1,4294967295,1600,4294967295,1,0,0,5,5,0,500,500,0\n\n,,\n", "rx\n")
	f.Fuzz(func(t *testing.T, samples, pools string) {
		dir := t.TempDir()
		write(t, dir, "samples.csv", samples)
		write(t, dir, "backend.csv", pools)
		_, _ = Detect(context.Background(), dir, DefaultSettings(), func(Event) error { return nil },
			func(*RowError) {})
	})
}

// TestTargetsOfATrace: a trace may hold storage targets, with forwarders or alone; bad rows are named.
func TestTargetsOfATrace(t *testing.T) {
	var b strings.Builder
	b.WriteString("rx,target,group,cost_us\n")
	for at := range 2000 {
		for i, cost := range []float64{900, 1000, 1100, 1000, 950} {
			if i == 2 && at >= 1000 {
				cost *= 3
			}
			fmt.Fprintf(&b, "%d,ost%d,flash,%g\n", 5000+at, i, cost)
		}
		if at == 10 {
			b.WriteString("5001,ost0,flash,1000\n5010,ost1,flash,slow\n")
		}
	}
	dir := t.TempDir()
	write(t, dir, "targets.csv", b.String())
	var events, bad []string
	sum, err := Detect(context.Background(), dir, DefaultSettings(), func(e Event) error {
		events = append(events, fmt.Sprint(e.Type, " ", e.Node, " ", e.End, " ", e.Start > 6000 && e.Start < 6600))
		return nil
	}, func(e *RowError) { bad = append(bad, fmt.Sprint(e.Line, e.Field)) })
	if err != nil || sum.Rows != 10000 || sum.Seconds != 2000 {
		t.Error(sum, err)
	}
	if got := fmt.Sprint(events, bad); got != "[target_slow ost2 0 true] [57rx 58cost_us]" {
		t.Error(got)
	}
	write(t, dir, "samples.csv", header+"100,100,f1,1600,1600,1,1,0,0,5,5,0,500,500,0\n")
	if sum, err = Detect(context.Background(), dir, DefaultSettings(), func(Event) error { return nil },
		func(*RowError) {}); err != nil || sum.Rows != 10001 {
		t.Error(sum, err)
	}
}

// TestLogsOfATrace: a directory may hold logs of jobs alone; one that cannot be read is named and left out.
func TestLogsOfATrace(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "damaged.darshan", "no log")
	var bad []string
	sum, err := Detect(context.Background(), dir, DefaultSettings(), func(e Event) error { t.Error(e); return nil },
		func(e *RowError) { bad = append(bad, e.Error()) })
	if err != nil || sum.Bad != 1 || len(bad) != 1 ||
		!strings.HasPrefix(bad[0], filepath.Join(dir, "damaged.darshan")+": ") {
		t.Error(sum, err, bad)
	}
}

// TestDamagedFiles: an optional file that breaks off does not end the run, and the error says where; a row from another
// time is left out; of two files of one name the plain one is read; gzip data under a plain name is reported.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	var rows, pools strings.Builder
	rows.WriteString(header)
	pools.WriteString("rx,pool0_us,pool1_us\n")
	for s := range 2000 {
		fmt.Fprintf(&rows, "%d,%d,f1,1600,1600,1,1,0,0,5,5,0,500,500,0\n", 5000+s, s)
		fmt.Fprintf(&pools, "%d,900,%d\n", 5000+s, 900+s*s%97)
		if s == 1000 {
			rows.WriteString("5600,5600,f1,1600,1600,1,1,0,0,5,5,0,500,500,0\n")
		}
	}
	write(t, dir, "samples.csv", rows.String())
	write(t, dir, "samples.csv.gz", header)
	write(t, dir, "backend.csv.gz", pools.String())
	whole, err := os.ReadFile(filepath.Join(dir, "backend.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "backend.csv.gz"), whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	var bad []string
	sum, err := Detect(context.Background(), dir, DefaultSettings(), func(Event) error { return nil },
		func(e *RowError) {
			bad = append(bad, strings.TrimPrefix(e.Error(), dir+"/"))
		})
	if err == nil || !strings.Contains(err.Error(), "backend.csv.gz:") || sum.Rows != 2001 || sum.Seconds != 2000 {
		t.Error(sum, err)
	}
	want := "samples.csv.gz: samples.csv is there too and is read; it is left out; samples.csv:1003: field rx: 5600 " +
		"comes after 6000; the row is left out"
	if got := strings.Join(bad, "; "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "jobs.csv"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, func(*RowError) {}); err == nil ||
		!strings.Contains(err.Error(), "jobs.csv: it is gzip data") {
		t.Error(err)
	}
	for _, wrong := range []string{filepath.Join(dir, "samples.csv"), filepath.Join(dir, "none")} {
		if _, err := Detect(context.Background(), wrong, DefaultSettings(), nil, nil); err == nil ||
			!strings.Contains(err.Error(), wrong) {
			t.Error(err)
		}
	}
}
