package collector

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
)

// fakeSource is a source whose Read is a function.
type fakeSource struct {
	name   string
	read   func(ctx context.Context, n int, into *Reading) error
	n      int
	closed chan struct{}
	once   sync.Once
}

func fake(name string, read func(ctx context.Context, n int, into *Reading) error) *fakeSource {
	return &fakeSource{name: name, read: read, closed: make(chan struct{})}
}

func (f *fakeSource) Name() string { return f.name }
func (f *fakeSource) Close() error { f.once.Do(func() { close(f.closed) }); return nil }
func (f *fakeSource) Read(ctx context.Context, into *Reading) error {
	f.n++
	return f.read(ctx, f.n, into)
}

func steady(v float64) func(context.Context, int, *Reading) error {
	return func(_ context.Context, _ int, into *Reading) error {
		into.Add(QueueLen, v)
		return nil
	}
}

// run runs sources for that many seconds of fake time and returns a copy of each frame.
func run(t *testing.T, r *Runner, seconds float64) (frames []Frame, log string, err error) {
	t.Helper()
	var text strings.Builder
	r.Node, r.Role = "n1", topology.Forwarder
	r.Log = slog.New(slog.NewTextHandler(&text, nil))
	r.Emit = func(f *Frame) {
		c := *f
		c.Samples = append([]Sample(nil), f.Samples...)
		c.Sources = append([]SourceStatus(nil), f.Sources...)
		frames = append(frames, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds*float64(time.Second)))
	defer cancel()
	err = r.Run(ctx)
	return frames, text.String(), err
}

func TestFramesDescribeTheSecondThatJustEnded(t *testing.T) {
	for _, phase := range []time.Duration{0, 250 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(300 * time.Millisecond)
			start := time.Now().Truncate(time.Second)
			var emitted []time.Time
			s := fake("s", func(_ context.Context, _ int, into *Reading) error {
				emitted = append(emitted, into.Now)
				return nil
			})
			frames, _, err := run(t, &Runner{Sources: []Source{s}, Phase: phase}, 3.5)
			if err != nil || len(frames) != 3 {
				t.Fatalf("%d frames, %v", len(frames), err)
			}
			for i, f := range frames {
				if want := start.Add(time.Duration(i) * time.Second).UnixMilli(); f.TimeMillis != want {
					t.Errorf("phase %v, frame %d: time %d, want %d", phase, i, f.TimeMillis, want)
				}
				if want := start.Add(time.Duration(i+1)*time.Second + phase); !emitted[i].Equal(want) {
					t.Errorf("phase %v: read at %v, want %v", phase, emitted[i], want)
				}
			}
		})
	}
}

func TestOneBadSourceCostsOnlyItsOwnSamples(t *testing.T) {
	for name, c := range map[string]struct {
		read func(ctx context.Context, n int, into *Reading) error
		want string
	}{
		"fails": {func(context.Context, int, *Reading) error { return errors.New("ctl: no route") },
			"ctl: no route"},
		"panics": {func(context.Context, int, *Reading) error { panic("index out of range") },
			"BUG: panic: index out of range"},
		"is slow": {func(ctx context.Context, _ int, _ *Reading) error { <-ctx.Done(); return ctx.Err() },
			"deadline"},
		"ignores its ctx": {func(context.Context, int,
			*Reading) error {
			time.Sleep(950 * time.Millisecond)
			return nil
		}, "no answer before the deadline"},
		"hangs for 2.5 s": {func(context.Context, int,
			*Reading) error {
			time.Sleep(2500 * time.Millisecond)
			return nil
		}, "no answer before the deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := fake("bad", c.read)
				frames, log, err := run(t, &Runner{Sources: []Source{bad, fake("good", steady(7))}}, 4.9)
				if err != nil || len(frames) != 4 {
					t.Fatalf("%d frames, %v", len(frames), err)
				}
				for i, f := range frames {
					if v, ok := f.Value(QueueLen); !ok || v != 7 {
						t.Errorf("frame %d: the good source's sample is missing", i)
					}
					if st := f.Sources[0]; !strings.Contains(st.Err, c.want) || st.Failures != uint64(i+1) {
						t.Errorf("frame %d: status %+v, want %q and %d failures", i, st, c.want, i+1)
					}
				}
				if n := strings.Count(log, "source failed"); n != 1 {
					t.Errorf("a lasting failure was logged %d times:\n%s", n, log)
				}
			})
		})
	}
}

func TestHungSourceIsFreedByCloseOrNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *fakeSource
		s = fake("stuck", func(context.Context, int, *Reading) error { <-s.closed; return nil })
		frames, _, err := run(t, &Runner{Sources: []Source{s}}, 3.5)
		if err != nil || len(frames) != 3 {
			t.Errorf("%d frames, %v", len(frames), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := fake("stuck", func(context.Context, int, *Reading) error { <-release; return nil })
		_, _, err := run(t, &Runner{Sources: []Source{s}}, 1.5)
		if err == nil || !strings.Contains(err.Error(), "stuck") {
			t.Errorf("the source that would not end is not named: %v", err)
		}
		close(release)
	})
}

func TestMissingSubjectIsSaidOnceAndNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fake("lustre", func(context.Context, int, *Reading) error { return ErrNoData })
		frames, log, err := run(t, &Runner{Sources: []Source{s}}, 5.5)
		if err != nil || len(frames) != 5 || frames[4].Sources[0].Failures != 0 {
			t.Errorf("%d frames, %v, %+v", len(frames), err, frames)
		}
		if strings.Count(log, "nothing to read") != 1 {
			t.Errorf("want it logged once:\n%s", log)
		}
	})
}

func TestResetsAreCountedAndTheFirstSourceOfAMetricCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fake("a", func(_ context.Context, n int, into *Reading) error {
			into.Resets = 1
			return steady(1)(nil, n, into)
		})
		frames, _, err := run(t, &Runner{Sources: []Source{a, fake("b", steady(2))}}, 2.5)
		if err != nil || len(frames) != 2 {
			t.Fatal(len(frames), err)
		}
		if f := frames[1]; f.Sources[0].Resets != 2 || len(f.Samples) != 1 || f.Samples[0].Value != 1 {
			t.Errorf("%+v", f)
		}
	})
}

func TestSettingsOutOfRangeAreNamed(t *testing.T) {
	r := &Runner{Phase: time.Second}
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "phase") {
		t.Errorf("%v, want an error that names the phase", err)
	}
}

func TestTickAllocatesLittle(t *testing.T) {
	r := &Runner{Sources: []Source{fake("s", steady(1)), fake("u", steady(2))}, Emit: func(*Frame) {},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if err := r.defaults(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.results = make(chan *worker, 2)
	for _, s := range r.Sources {
		w := newWorker(s, r.Log)
		r.workers = append(r.workers, w)
		go w.loop(ctx, r.results)
	}
	defer func() {
		cancel()
		for _, w := range r.workers {
			<-w.done
		}
	}()
	at := time.Now()
	n := testing.AllocsPerRun(50, func() { at = at.Add(time.Second); r.tick(ctx, at) })
	if n > 6 { // the deadline's context and timer
		t.Errorf("%v allocations per tick", n)
	}
}

// The tick after one follows the wall clock, whichever way it is set.
func TestTicksFollowTheClock(t *testing.T) {
	r := Runner{Phase: 300 * time.Millisecond}
	last := time.Unix(1000, 3e8)
	for _, c := range []struct {
		now, want time.Time
	}{
		{last.Add(2 * time.Millisecond), last.Add(time.Second)},
		{last.Add(-20 * time.Millisecond), last.Add(time.Second)}, // slewed: the second is not reported twice
		{last.Add(90 * time.Second), last.Add(91 * time.Second)},  // slept through
		{last.Add(-time.Hour), last.Add(-time.Hour + time.Second)},
	} {
		if got := r.following(last, c.now); !got.Equal(c.want) {
			t.Errorf("%s after the tick the next one is %s after it, want %s", c.now.Sub(last), got.Sub(last),
				c.want.Sub(last))
		}
	}
}
