package mount

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"fairway/collector/p9"
)

// A forwarder that ends each connection at the same request must not be dialled ten times a second for ever, and the
// log has to say what ended it.
func TestAConnectionThatDiesYoungBacksOff(t *testing.T) {
	var text bytes.Buffer
	l := &link{dialer: dialer{log: slog.New(slog.NewTextHandler(&text, nil))}, changed: make(chan struct{}),
		target: Target{Forwarder: "gw1", Addr: "gw1:564"}}
	l.end, l.stop = context.WithCancel(t.Context())
	l.stop() // nothing is dialled
	lose := func(age time.Duration) time.Duration {
		c, err := p9.Dial(t.Context(), tarpit(t, ""), 8192)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.cur = &session{client: c, others: c, since: time.Now().Add(-age)}
		l.lose(l.cur)
		return l.pause
	}
	for i, c := range []struct{ age, want time.Duration }{
		{0, reconnectFirst}, {0, 2 * reconnectFirst}, {0, 4 * reconnectFirst}, {time.Hour, reconnectFirst},
		{0, 2 * reconnectFirst},
	} {
		if got := lose(c.age); got != c.want {
			t.Errorf("loss %d: the next attempt after %s, want %s", i, got, c.want)
		}
	}
	for range 10 {
		lose(0)
	}
	if l.pause != reconnectMost {
		t.Errorf("pause %s after many losses, want %s", l.pause, reconnectMost)
	}
	l.watchers.Wait()
	if !strings.Contains(text.String(), "it was closed here") {
		t.Errorf("the log does not say why: %s", text.String())
	}
}
