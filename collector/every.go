package collector

import "time"

// Every calls do once a period until end is called, which waits for a call under way: a source samples by it between
// two ticks. A panic of do is handed to failed, and do is called again the period after.
func Every(period time.Duration, do func(), failed func(error)) (end func()) {
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
