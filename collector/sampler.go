package collector

import (
	"sync"
	"time"
)

// Sampler adds up samples of a source that are taken between its ticks.
type Sampler[Sums any] struct {
	mu     sync.Mutex // guards what follows
	sums   Sums
	err    error     // of the newest sample
	since  time.Time // when the sums began
	end    func()    // stops it and waits for it; nil while it does not run
	closed bool
}

// Start has a sample taken once a period, unless that is done already or the sampler was closed. A sample returns what
// adds it to the sums, which may be nil.
func (s *Sampler[Sums]) Start(period time.Duration, sample func() (add func(*Sums), err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil || s.closed {
		return
	}
	s.sums, s.err, s.since = *new(Sums), nil, time.Now()
	s.end = every(period, func() { s.Add(sample) }, func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
	})
}

// Add takes a sample now.
func (s *Sampler[Sums]) Add(sample func() (add func(*Sums), err error)) {
	add, err := sample()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; add != nil {
		add(&s.sums)
	}
}

// Take returns the sums since the last time, how long ago that was, and why the newest sample is missing.
func (s *Sampler[Sums]) Take() (sums Sums, over time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return sums, 0, nil
	}
	now := time.Now()
	sums, over, err = s.sums, now.Sub(s.since), s.err
	s.sums, s.err, s.since = *new(Sums), nil, now
	return sums, over, err
}

// Stop ends the sampling until it is started again, and waits for a sample under way.
func (s *Sampler[Sums]) Stop() {
	s.mu.Lock()
	end := s.end
	s.end = nil
	s.mu.Unlock()
	if end != nil {
		end()
	}
}

// Close ends the sampling for good.
func (s *Sampler[Sums]) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Stop()
	return nil
}

// every calls do once a period until end is called, which waits for a call under way. A panic of do is handed to
// failed, and do is called again the period after.
func every(period time.Duration, do func(), failed func(error)) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if err := Fenced(func() error { do(); return nil }); err != nil {
					failed(err)
				}
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}
