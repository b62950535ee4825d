package webui_test

import (
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/webui/client"
)

// The slow forwarder is the hottest of all, in its row and over the last minutes, and nobody else is near it.
func TestTheTrendShowsWhoIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, slow := simsite.NewSlow(t, simsite.Options{Offline: true})
		c := client.Over(s.Dial, simsite.ViewerSecret)
		defer c.Close()
		s.Second()
		time.Sleep(time.Second / 2)
		synctest.Wait()
		o, err := c.Overview(t.Context())
		if err != nil || o.Now == nil || o.Now.WriteBytesPerSec == nil || o.Now.P95 == nil {
			t.Fatalf("%+v, %v", o.Now, err)
		}
		for _, r := range o.Forwarders {
			switch {
			case r.Slow == nil:
			case r.ID == slow && *r.Slow < 5, r.ID != slow && *r.Slow > 2:
				t.Errorf("%s is %.1fx slow at %s; %s alone is", r.ID, *r.Slow, r.SlowOp, slow)
			case r.ID == slow && (r.Latency == nil || r.SlowOp == ""):
				t.Errorf("%+v", r)
			}
		}
		trend, err := c.Trend(t.Context())
		if err != nil || len(trend.Layer) != 179 || !trend.End.After(time.Now().Add(-10*time.Second)) {
			t.Fatalf("%d steps to %s, %v", len(trend.Layer), trend.End, err)
		}
		w := trend.Waits[slow].Slow
		if len(w) != 59 || w[0] == nil || *w[0] > 2 || w[58] == nil || *w[58] < 5 {
			t.Errorf("the five minutes of %s begin before its fault and end in it: %d steps, %v to %v", slow, len(w),
				*w[0], *w[len(w)-1])
		}
	})
}
