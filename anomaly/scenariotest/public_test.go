package scenariotest

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"fairway/anomaly/recorded"
	"fairway/collector/topology"
)

var publicTraces = []string{"pub-a", "pub-b", "pub-c"}

func publicDir(t *testing.T, trace string) string {
	dir := filepath.Join("..", "..", "..", "shared", "failslow", trace)
	if _, err := os.Stat(dir); err != nil {
		t.Skip("skipped: the public traces are not beside the repository:", err)
	}
	return dir
}

func TestScoreOfPublicTraces(t *testing.T) {
	var own, fixed, peers Score
	for _, trace := range publicTraces {
		score(t, publicDir(t, trace), &own, &fixed, &peers)
	}
	t.Log("built in:        ", own.String())
	t.Log("fixed threshold: ", fixed.String())
	t.Log("peer z-score:    ", peers.String())
	for _, f := range append(own.FalseAlarms, own.NotFound...) {
		t.Log(f)
	}
	nr, np := own.NamingShares()
	if own.Precision() < 0.95 || own.Recall() < 0.85 || own.StrongRecall() < 0.88 || own.FalsePerNodeDay() > 0.03 ||
		own.Delay(.5) > 100 ||
		own.HealthyMost > 1 || own.Coverage() < 0.85 || nr < 0.9 || np < 0.9 {
		t.Error("below the bar")
	}
}

func readLabels(t *testing.T, dir string) (out []Label) {
	f, err := os.Open(filepath.Join(dir, "labels.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil && s != "" {
			t.Fatal(err)
		}
		return v
	}
	for _, r := range rows[1:] {
		out = append(out, Label{Fault: r[0] == "fault", Node: r[1], Start: int64(number(r[2])),
			End: int64(number(r[3])), Kind: r[4],
			Info: number(r[6]), Weak: number(r[7]), Seconds: int(number(r[8])), First: int64(number(r[10]))})
	}
	return out
}

// window is a node's last minute, as the naive rules see it.
type window struct {
	exec    [60]float64
	n       int
	calling bool
}

func (w *window) add(x float64) {
	w.exec[w.n%60] = x
	w.n++
}

func (w *window) mean() float64 {
	sum := 0.0
	for _, x := range w.exec {
		sum += x
	}
	return sum / 60
}

// naive runs two usual rules beside the detector: mean execution time of a minute above 5 ms; and the
// same more than 4 robust deviations above the other nodes.
func naive(t *testing.T, dir string) (from, to int64, nodes int, rules [2][]recorded.Event) {
	tr, err := recorded.Open(dir, func(*recorded.RowError) {})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	windows := map[topology.NodeID]*[2]window{}
	for {
		s, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return from, to, len(tr.Nodes), rules
		}
		if err != nil {
			t.Fatal(err)
		}
		if to = s.RX; from == 0 {
			from = to
		}
		var means []float64
		for i := range s.Rows {
			o := &s.Rows[i]
			w := windows[o.Node]
			if w == nil {
				w = &[2]window{}
				windows[o.Node] = w
			}
			ops := o.Class[0].Ops + o.Class[1].Ops
			if ops > 0 && ops < 1e7 {
				x := (o.Class[0].Ops*o.Class[0].Exec + o.Class[1].Ops*o.Class[1].Exec) / ops
				w[0].add(x)
				w[1].add(math.Log(x + 1e-6))
			}
			if w[0].n >= 60 {
				means = append(means, w[1].mean())
			}
		}
		if len(means) < 5 {
			continue
		}
		slices.Sort(means)
		mid := means[len(means)/2]
		spread := 1.48 * (means[len(means)*3/4] - mid)
		for _, r := range s.Rows {
			w := windows[r.Node]
			for k, hit := range [2]bool{w[0].mean() > 5e-3, w[1].mean() > mid+4*max(spread, 0.05)} {
				if hit && !w[k].calling && w[0].n >= 60 {
					rules[k] = append(rules[k], recorded.Event{Type: "fail_slow", Node: r.Node, Start: s.RX})
				}
				w[k].calling = hit
			}
		}
	}
}
