package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"fairway/console"
	"fairway/console/chart"
	"fairway/remap/desk"
)

// castFile is the recording of the tour.
const castFile = "../docs/tour.cast"

// recording is what a terminal showed, as asciicast has it (version 2).
type recording struct {
	s      *script
	frames [][]any
	at     float64
}

// keep adds what is on screen, and how long it is looked at.
func (r *recording) keep(seconds float64) {
	text := "\x1b[H\x1b[2J" + strings.ReplaceAll(r.s.view(), "\n", "\r\n")
	r.frames = append(r.frames, []any{r.at, "o", text})
	r.at += seconds
}

// types presses keys, each on screen for a moment.
func (r *recording) types(keys ...string) {
	for _, k := range keys {
		r.s.press(k)
		r.keep(0.4)
	}
}

// The tour leads from what is slow to what helped, and each step names a key that leads to the next one. With -update
// its recording in docs is made anew.
func TestTheTour(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		l := layout{slow: true, w: 120, h: 36, colors: chart.Colors256}
		l.Desk = func(set *desk.Settings) { set.HealthyFloor, set.SelfApproval, set.TwoPersons = 1, true, false }
		s := l.start(t)
		s.blocks()
		s.seconds(2)
		console.Guide(s.model.(*console.Model))
		r := &recording{s: s}
		step := func(n int, key string) {
			t.Helper()
			s.sees(fmt.Sprintf("TOUR %d of 6", n))
			if text := strings.Join(strings.Fields(s.screen()), " "); !regexp.MustCompile(key).MatchString(text) {
				t.Fatalf("step %d does not say %s:\n%s", n, key, s.screen())
			}
			r.keep(4)
		}
		s.look()
		step(1, "Something is slow: fwd006.*Open it: enter")
		r.types("enter")
		step(2, "accused: w")
		r.types("w")
		step(3, "how much: 2")
		r.types("2")
		step(4, "fwd006: 1, enter, p")
		r.types("1", "enter", "p")
		step(4, "Choose where its nodes go")
		r.types("down", "enter", "fwd006 is ten times as slow as its peers", "enter")
		step(5, "approve: A, and A once more")
		r.types("tab", "its jobs wait for it", "enter", "A")
		s.press("wait")
		r.types("A")
		s.seconds(4)
		step(6, "Did it help")
		s.seconds(66) // a minute after the move was observed
		step(6, "It helped: see EFFECT. B takes it back")
		s.sees("EFFECT", "helped")
		s.press("q", "q", "q", "q", "q")
		if !s.quit {
			t.Errorf("q does not leave:\n%s", s.screen())
		}
		castOf(t, r)
	})
}

// castOf writes the recording, or checks that there is one of every step.
func castOf(t *testing.T, r *recording) {
	t.Helper()
	var out bytes.Buffer
	w := json.NewEncoder(&out)
	w.SetEscapeHTML(false)
	head := map[string]any{"version": 2, "width": 120, "height": 36, "title": "fairway tour, on a simulated machine"}
	if err := w.Encode(head); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.frames {
		if err := w.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(castFile, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(castFile)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 6; n++ {
		if !strings.Contains(string(kept), fmt.Sprintf("TOUR %d of 6", n)) {
			t.Errorf("%s has no step %d; go test ./console -run Tour -update", castFile, n)
		}
	}
	for i, line := range strings.Split(strings.TrimSpace(string(kept)), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("%s:%d is not JSON", castFile, i+1)
		}
	}
}
