package collector

import "time"

// Every calls do once a period until end is called, which waits for a call under way: a source samples by it between
// two ticks.
func Every(period time.Duration, do func()) (end func()) {
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
				do()
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}
