package window

import (
	"testing"
	"time"

	"fairway/remap/policy/periodic"
)

var begin = time.UnixMilli(1_795_430_000_250)

func TestWait(t *testing.T) {
	w := Window{From: begin, Every: 90 * time.Second, Open: []Span{{End: 12 * time.Second},
		{Start: 85 * time.Second, End: 95 * time.Second}}}
	for _, c := range []struct{ at, want float64 }{
		{0, 0}, {6, 0}, {6.5, 78.5}, {40, 45}, {85, 0}, {90, 0}, {900, 0}, {-50, 45}, {96.5, 78.5}, {84, 1},
	} {
		if got := w.Wait(begin.Add(seconds(c.at))); got != seconds(c.want) {
			t.Errorf("%g s after its beginning it waits %s, expected %g s", c.at, got, c.want)
		}
	}
	if got, want := w.Words(), "I/O window 12 s and 10 s every 90 s"; got != want {
		t.Errorf("it is %q, expected %q", got, want)
	}
	w.Every = 4523 * time.Second
	if got, want := w.Words(), "I/O window 12 s and 10 s every 4523 s"; got != want {
		t.Errorf("it is %q, expected %q", got, want)
	}
}

func TestTextIsReadBack(t *testing.T) {
	w := Window{From: begin, Every: 90 * time.Second, Open: []Span{{End: 12 * time.Second},
		{40500 * time.Millisecond, 52 * time.Second, 1.5e9}}}
	const text = "90.000@1795430000.250 0.000-12.000,40.500-52.000*1500.000"
	if w.String() != text {
		t.Errorf("it is %q, expected %q", w, text)
	}
	if got, err := Parse(text); err != nil || got.String() != text || !got.From.Equal(begin) {
		t.Errorf("read back it is %v, %v", got, err)
	}
	for _, bad := range []string{"", "90", "90@1", "90@1 ", "90@1 5", "90@1 5-4", "x@1 0-1", "90@1 95-99", "0@1 0-1",
		"90@1 0-1,", "90@1 0-95", "NaN@1 0-1", "90@1 0-1*x", "90@1e99 0-1", "90@1 -1-2"} {
		if w, err := Parse(bad); err == nil {
			t.Errorf("%q is read as %v", bad, w)
		}
	}
}

// TestOfPattern: an application has an interval for each instance, and one that runs over the pattern's end is whole.
func TestOfPattern(t *testing.T) {
	p := periodic.Pattern{T: 10, Apps: []periodic.Placed{{Name: "a", Instances: []periodic.Instance{
		{IO: []periodic.Interval{{9, 10, 1}, {0, 1, 1}}}, {IO: []periodic.Interval{{4, 5, 1}}}}}}}
	w, ok := Of(p, "a", begin)
	if want := "10.000@1795430000.250 4.000-5.000*1000.000,9.000-11.000*1000.000"; !ok || w.String() != want {
		t.Errorf("%v, %v; expected %s", w, ok, want)
	}
	if _, ok := Of(p, "b", begin); ok {
		t.Error("an unknown application has a window")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("90.000@1795430000.250 0.000-12.000,40.500-52.000")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse(text)
		if err != nil {
			return
		}
		if d := w.Wait(begin); d < 0 || d > w.Every {
			t.Errorf("%q: it waits %s", text, d)
		}
	})
}
