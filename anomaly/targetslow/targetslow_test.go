package targetslow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

const every = 500 * 24 * time.Hour

// accused notes when each target was first accused.
func accused(at map[topology.NodeID]int64, now int64, verdicts []anomaly.Verdict) {
	for _, v := range verdicts {
		if _, was := at[v.Node]; v.Level == anomaly.Alarm && !was {
			at[v.Node] = now
		}
	}
}

// TestOnlyTheSlowTarget: of twelve targets with habits of up to a tenth, whose noise lasts for minutes and
// whose back end comes and goes for all, the one that gets slow is accused, and is cleared when it is well.
func TestOnlyTheSlowTarget(t *testing.T) {
	for seed := range uint64(2) {
		factor, within := 2.5, int64(900)
		if seed%2 == 1 {
			factor, within = 1.5, 2*3600
		}
		r := rand.New(rand.NewPCG(seed, 1))
		d := New(DefaultRules(), every, time.Second)
		at := map[topology.NodeID]int64{}
		var drift [12]float64
		level := anomaly.Unseen
		for s := range int64(14 * 3600) {
			var points []Point
			common := math.Sin(float64(s) / 900)
			for i := range 12 {
				drift[i] += -drift[i]/300 + 0.006*r.NormFloat64()
				x := common + 0.01*float64(i) + drift[i] + 0.3*r.NormFloat64()
				if i == 3 && s >= 6*3600 && s < 9*3600 {
					x += math.Log(factor)
				}
				points = append(points, Point{topology.NodeID(fmt.Sprint("ost", i)), "reads", 1e-3 * math.Exp(x)})
			}
			verdicts := d.Take(time.Unix(s, 0), points)
			accused(at, s, verdicts)
			for _, v := range verdicts {
				if v.Node == "ost3" {
					level = v.Level
				}
			}
		}
		if first, ok := at["ost3"]; !ok || len(at) != 1 || first > 6*3600+within || level != anomaly.Clean {
			t.Errorf("seed %d: accused %v, at the end it is %d", seed, at, level)
		}
	}
}

func TestFewPeersSayNothing(t *testing.T) {
	d := New(DefaultRules(), every, time.Second)
	for s := range int64(5000) {
		if v := d.Take(time.Unix(s, 0), []Point{{"a", "g", 1}, {"b", "g", 1}, {"c", "g", 9},
			{"d", "h", 9}}); len(v) > 0 {
			t.Fatal(v)
		}
	}
}

// TestWhatIsForgottenIsProvenAnew: who has shown that it is well is neither accused nor in doubt by what was before.
func TestWhatIsForgottenIsProvenAnew(t *testing.T) {
	r, d := rand.New(rand.NewPCG(4, 1)), New(DefaultRules(), every, time.Second)
	level, healed := anomaly.Unseen, int64(0)
	for s := range int64(4 * 3600) {
		var points []Point
		for i := range 12 {
			x := 0.3 * r.NormFloat64()
			if i == 3 && s >= 3600 && healed == 0 {
				x += math.Log(4)
			}
			points = append(points, Point{topology.NodeID(fmt.Sprint("ost", i)), "reads", 1e-3 * math.Exp(x)})
		}
		for _, v := range d.Take(time.Unix(s, 0), points) {
			if v.Node == "ost3" {
				level = v.Level
			}
		}
		switch {
		case healed == 0 && level == anomaly.Alarm:
			healed = s
			d.Forget("ost3")
		case healed > 0 && level > anomaly.Clean:
			t.Fatalf("level %d %d s after it was forgotten", level, s-healed)
		}
	}
	if healed == 0 {
		t.Error("it was never accused")
	}
}
