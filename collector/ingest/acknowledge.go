package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"fairway/collector/wire"
)

// An acknowledgement costs both ends a system call, and as much again on the way there. It covers all that came
// before, so that one is enough for several seconds of a stream that goes on steadily. A stream that has just
// begun, replays its spool or pauses is answered at once: its agent waits for the answer. So is one that sends
// nothing before it has the answer, which shows when a single message is followed by a pause.

const (
	// ackEvery makes it each fourth message of a stream with one a second.
	ackEvery = 3500 * time.Millisecond
	// promptAcks is how many of a connection's first acknowledgements do not wait, manyUnsaid how many
	// messages never do.
	promptAcks, manyUnsaid = 16, 16
	// promptForOne is how many do not wait after a pause that followed a single message.
	promptForOne = 256
	// pauseAfter is after how long without a message a stream pauses: agents send every second.
	pauseAfter = 1500 * time.Millisecond
	owedEvery  = 500 * time.Millisecond
)

// unanswered is what a connection has brought and was not answered yet.
type unanswered struct {
	flight []*inFlight // not durable yet, in the order of arrival
	size   int         // bytes of them
	failed bool        // the store has refused one: nothing more is acknowledged
	acks   owedAck
}

// owedAck is the acknowledgement that a connection is to get; the connection's mu guards it.
type owedAck struct {
	seq    uint64 // 0: none
	count  int    // messages that it covers
	early  int    // how many were sent, up to promptAcks
	sent   time.Time
	came   time.Time // when the last message became durable
	listed bool
}

// add notes that everything up to a number is durable and says whether the agent should get an answer now.
func (a *owedAck) add(seq uint64, messages int, now time.Time) (send bool) {
	a.seq, a.came = seq, now
	a.count += messages
	return a.early < promptAcks || a.count >= manyUnsaid || now.Sub(a.sent) >= ackEvery
}

// due says whether one that waits has waited long enough.
func (a *owedAck) due(now time.Time) bool {
	return a.seq > 0 && (now.Sub(a.came) >= pauseAfter || now.Sub(a.sent) >= ackEvery+pauseAfter)
}

// take returns the number to send.
func (a *owedAck) take(now time.Time) (seq uint64) {
	a.early = min(a.early+1, promptAcks)
	if a.count == 1 && now.Sub(a.came) >= pauseAfter {
		a.early = promptAcks - promptForOne
	}
	seq, a.seq, a.count, a.sent = a.seq, 0, 0, now
	return seq
}

// acknowledge answers messages in order once they are durable. After the store failed once nothing
// more is acknowledged: the agent reconnects and sends again.
func (c *connection) acknowledge(now time.Time) {
	var last uint64
	var broken *inFlight
	c.mu.Lock()
	n, good := 0, 0
	for ; n < len(c.flight) && c.flight[n].done; n++ {
		f := c.flight[n]
		c.size -= f.size
		switch {
		case c.failed:
		case f.err != nil:
			c.failed, broken = true, f
		default:
			last = f.seq
			good++
		}
	}
	if n > 0 {
		rest := copy(c.flight, c.flight[n:])
		clear(c.flight[rest:])
		c.flight = c.flight[:rest]
		if rest == 0 && cap(c.flight) > 4 {
			c.flight = nil
		}
	}
	list := false
	if last > 0 {
		if send := c.acks.add(last, good, now); send || broken != nil {
			last = c.acks.take(now)
		} else {
			last, list, c.acks.listed = 0, !c.acks.listed, true
		}
	}
	c.mu.Unlock()
	if n > 0 {
		c.link.Freed()
	}
	c.ack(last)
	if list {
		c.hub.owes.add(c)
	}
	if broken != nil {
		if !errors.Is(broken.err, context.Canceled) {
			c.hub.cfg.Log.Error("frames were not stored; the agent keeps them", "node", c.hello.Node, "seq", broken.seq,
				"err", broken.err)
		}
		c.link.Close()
	}
}

// ack sends an acknowledgement. It covers all before it; one that finds no room is made good by the next.
func (c *connection) ack(seq uint64) {
	if seq == 0 {
		return
	}
	if msg, err := wire.Append(nil, wire.Ack{Seq: seq}); err == nil {
		c.link.Send(msg)
	}
}

// owes are the connections whose acknowledgement waits.
type owes struct {
	mu      sync.Mutex // guards everything that follows
	listed  []*connection
	running bool
}

func (o *owes) add(c *connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listed = append(o.listed, c)
	if !o.running {
		o.running = true
		c.hub.wait.Go(func() { o.run(c.hub.stopping) })
	}
}

// run sends what is due until nothing waits.
func (o *owes) run(stopping <-chan struct{}) {
	beat := time.NewTicker(owedEvery)
	defer beat.Stop()
	var mine []*connection
	for {
		select {
		case <-beat.C:
		case <-stopping:
			return
		}
		o.mu.Lock()
		mine, o.listed = o.listed, mine[:0]
		if len(mine) == 0 {
			o.running = false
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		now := time.Now()
		still := 0
		for _, c := range mine {
			if c.pays(now) {
				mine[still] = c
				still++
			}
		}
		o.mu.Lock()
		o.listed = append(o.listed, mine[:still]...)
		o.mu.Unlock()
		clear(mine)
	}
}

// pays sends an acknowledgement that is due, and says whether another one still waits.
func (c *connection) pays(now time.Time) (waits bool) {
	c.mu.Lock()
	seq := uint64(0)
	if c.acks.due(now) {
		seq = c.acks.take(now)
	}
	waits = c.acks.seq > 0
	c.acks.listed = waits
	c.mu.Unlock()
	c.ack(seq)
	return waits
}
