package compare

import (
	"testing"
	"time"

	"fairway/anomaly"
)

func TestOthersAreWithoutOnesOwn(t *testing.T) {
	for _, c := range []struct {
		sorted    []float64
		own       float64
		low, high float64
		n         int
	}{
		{nil, 1, 0, 0, 0}, {[]float64{3}, 3, 0, 0, 0}, {[]float64{3}, 1, 3, 3, 1}, {[]float64{1, 2}, 1, 2, 2, 1},
		{[]float64{1, 2, 3}, 2, 1, 3, 2}, {[]float64{1, 2, 2, 9}, 2, 2, 2, 3}, {[]float64{1, 2, 4, 9}, 5, 2, 4, 4},
	} {
		if low, high, n := Others(c.sorted, c.own); low != c.low || high != c.high || n != c.n {
			t.Errorf("%+v: %g, %g of %d", c, low, high, n)
		}
	}
}

// TestACaseGoesFromDoubtToAnAlarmAndIsCleared: an alarm ends far below what begins it, and is what its worst test says.
func TestACaseGoesFromDoubtToAnAlarmAndIsCleared(t *testing.T) {
	b, c := &Bar{Kind: anomaly.FailSlow, Alarm: 10, Doubt: 0.4}, &Case{}
	for i, step := range []struct {
		test  int
		bet   float64
		level anomaly.Level
		since int64
	}{{0, 3, anomaly.Clean, 0}, {2, 4, anomaly.Doubt, 1}, {2, 5, anomaly.Doubt, 1}, {0, 9, anomaly.Alarm, 0},
		{0, 99, anomaly.Alarm, 0}, {2, -9, anomaly.Alarm, 0}, {0, -11, anomaly.Alarm, 0}, {0, -1.1, anomaly.Clean, 0}} {
		c.Bet(b, step.test, int64(i), step.bet)
		v, worst := c.Verdict(b, "n")
		if v.Level != step.level || step.level > anomaly.Clean && !v.Since.Equal(time.Unix(step.since, 0)) {
			t.Errorf("%d: level %d since %s by test %d, score %g", i, v.Level, v.Since, worst, v.Score)
		}
	}
	c.Bet(b, 1, 9, 50)
	c.Verdict(b, "n")
	if c.Forget(); c.Alarm || c.Wealth() != 0 {
		t.Errorf("forgotten: %+v", c)
	}
}

// TestSubjectsAreSavedAndForgotten: what is damaged is refused and changes nothing.
func TestSubjectsAreSavedAndForgotten(t *testing.T) {
	var s, again Subjects[Case, *Case]
	s.Get("b").Alarm, s.Get("a").Since = true, 7
	saved, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.UnmarshalBinary(saved[:len(saved)/2]); err == nil || again.Known("a") != nil {
		t.Error("half a state is taken up:", err)
	}
	if err := again.UnmarshalBinary(saved); err != nil || !again.Known("b").Alarm {
		t.Error(err)
	}
	again.Forget("b")
	again.Forget("nobody")
	order := ""
	for id, c := range again.All() {
		if order += string(id); c.Alarm {
			t.Errorf("%s is forgotten and accused", id)
		}
	}
	if order != "ab" {
		t.Error(order)
	}
}
