package webui

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gorilla/websocket"
)

// hub feeds the newest picture to every client. One goroutine owns the table of clients; a client
// that reads too slowly finds only the newest frame of each topic, and the lost ones are counted.
type hub struct {
	join, leave chan *liveClient
	signOut     chan string // cookies of sessions that have ended
	frames      chan []liveFrame
	stopped     chan struct{}
	topics      atomic.Pointer[map[string]int] // what anybody listens to
	clients     atomic.Int64
	sent        atomic.Uint64
	dropped     atomic.Uint64
	stalled     atomic.Uint64 // listeners let go because they did not read
	patched     atomic.Int64  // listeners that want changes alone
}

func newHub() *hub {
	h := &hub{join: make(chan *liveClient), leave: make(chan *liveClient), signOut: make(chan string),
		frames: make(chan []liveFrame, 4), stopped: make(chan struct{})}
	h.topics.Store(&map[string]int{})
	return h
}

// run owns the clients until ctx ends, then closes them.
func (h *hub) run(ctx context.Context) {
	clients := map[*liveClient]struct{}{}
	defer close(h.stopped)
	for {
		select {
		case c := <-h.join:
			clients[c] = struct{}{}
		case c := <-h.leave:
			delete(clients, c)
		case cookie := <-h.signOut:
			for c := range clients {
				if c.session == cookie {
					close(c.signedOut)
					delete(clients, c)
				}
			}
		case frames := <-h.frames:
			for c := range clients {
				for i := range frames {
					if c.wants(frames[i].topic) && !c.put(&frames[i]) {
						h.dropped.Add(1)
					}
				}
			}
			continue
		case <-ctx.Done():
			for c := range clients {
				c.ws.Close()
			}
			return
		}
		topics := map[string]int{}
		for c := range clients {
			for _, t := range c.topics {
				topics[t]++
			}
		}
		h.topics.Store(&topics)
		h.clients.Store(int64(len(clients)))
	}
}

// ended closes the feeds of a session that has ended.
func (h *hub) ended(cookie string) {
	if cookie == "" {
		return // who shows none has no session
	}
	select {
	case h.signOut <- cookie:
	case <-h.stopped:
	}
}

// publish hands frames to the owner; when it is behind, the oldest picture is not worth waiting for.
func (h *hub) publish(frames []liveFrame) {
	select {
	case h.frames <- frames:
	default:
		h.dropped.Add(uint64(len(frames)))
	}
}

func (h *hub) writeMetrics(w io.Writer) {
	metrics.WriteGaugeUint64(w, "fairway_live_clients", uint64(h.clients.Load()))
	metrics.WriteCounterUint64(w, "fairway_live_sent_total", h.sent.Load())
	metrics.WriteCounterUint64(w, "fairway_live_dropped_total", h.dropped.Load())
	metrics.WriteCounterUint64(w, "fairway_live_stalled_total", h.stalled.Load())
}

// liveClient is one listener. Its slots hold the newest frame of each topic it asked for.
type liveClient struct {
	ws     *websocket.Conn
	topics []string
	person []byte // personMembers of who listens
	gap    time.Duration
	// patches reports whether the listener takes differences to frame seq, which it has. Both belong to the goroutine
	// that writes.
	patches bool
	seq     uint64
	// session is the cookie that the listener came with, signedOut is closed when that session ends.
	session   string
	signedOut chan struct{}

	mu    sync.Mutex // guards everything that follows
	slots map[string]*liveFrame
	wake  chan struct{}
}

func (c *liveClient) wants(topic string) bool {
	return topic == topicBeat || slices.Contains(c.topics, topic)
}

// put makes f the newest frame of its topic; false when one that was not sent yet is lost by that.
func (c *liveClient) put(f *liveFrame) bool {
	c.mu.Lock()
	_, lost := c.slots[f.topic]
	c.slots[f.topic] = f
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return !lost || f.topic == topicBeat
}

func (c *liveClient) take() []*liveFrame {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer clear(c.slots)
	return slices.SortedFunc(maps.Values(c.slots),
		func(a, b *liveFrame) int { return strings.Compare(a.topic, b.topic) })
}

// read keeps the connection's end in sight; nothing that a client says here is heeded.
func (c *liveClient) read() {
	c.ws.SetReadLimit(4 << 10)
	extend := func(string) error { return c.ws.SetReadDeadline(time.Now().Add(liveSilent)) }
	extend("")
	c.ws.SetPongHandler(extend)
	for {
		if _, _, err := c.ws.NextReader(); err != nil {
			return
		}
	}
}

// write sends the newest frame until the client goes, its session ends, or it does not read. It returns the number of
// frames sent and why one could not be.
func (c *liveClient) write(gone <-chan struct{}, expires time.Time) (sent uint64, err error) {
	ping := time.NewTicker(livePing)
	defer ping.Stop()
	over := func() {
		msg := websocket.FormatCloseMessage(websocket.ClosePolicyViolation, "the session has ended; sign in again")
		_ = c.ws.WriteControl(websocket.CloseMessage, msg, time.Now().Add(time.Second)) // it ends either way
	}
	for {
		select {
		case <-gone:
			return sent, nil
		case <-c.signedOut:
			over()
			return sent, nil
		case <-ping.C:
			if !expires.IsZero() && time.Now().After(expires) {
				over()
				return sent, nil
			}
			if err := c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(liveWriteTime)); err != nil {
				return sent, err
			}
			continue
		case <-c.wake:
		}
		for _, f := range c.take() {
			if err := c.send(f); err != nil {
				return sent, err
			}
			sent++
		}
		if c.gap > 0 {
			select {
			case <-time.After(c.gap):
			case <-c.signedOut:
			case <-gone:
				return sent, nil
			}
		}
	}
}

func (c *liveClient) send(f *liveFrame) error {
	c.ws.SetWriteDeadline(time.Now().Add(liveWriteTime))
	kind := websocket.TextMessage
	if f.binary {
		kind = websocket.BinaryMessage
	}
	if f.before == nil {
		return c.ws.WriteMessage(kind, f.whole)
	}
	has := c.seq
	c.seq = f.seq
	if c.patches && f.changes != nil && has == f.seq-1 {
		c.ws.EnableWriteCompression(true)
		defer c.ws.EnableWriteCompression(false)
		return c.ws.WritePreparedMessage(f.changes)
	}
	w, err := c.ws.NextWriter(kind)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{f.before, c.person, f.after} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return w.Close()
}

// patch is what makes a JSON value of an earlier one: an object lists the members that changed, with null for one that
// is gone (RFC 7396). An array of objects that has as many elements as before is an object with the one member "[]",
// which has the patches of the elements that changed by their place; every other value replaces the earlier one.
const patchedElements = "[]"

// shownDigits are the significant digits of a number that no screen shows more of.
const shownDigits = 5

// changes remembers a JSON value and says how the next one differs.
type changes struct {
	have any
	seq  uint64 // of the value; 0 before the first one
}

// next takes a value, and returns its patch; nil of the first one.
func (c *changes) next(encoded []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	v = rounded(v)
	before := c.have
	c.have = v
	c.seq++
	if before == nil {
		return nil, nil
	}
	p, changed := patchOf(before, v)
	if !changed {
		return []byte("{}"), nil
	}
	return json.Marshal(p)
}

// rounded shortens fractions, so that what nobody could see changing does not change.
func rounded(v any) any {
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return v
		}
		f, _ := v.Float64() // it was encoded from one
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', shownDigits, 64), 64)
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
	case map[string]any:
		for k := range v {
			v[k] = rounded(v[k])
		}
	case []any:
		for i := range v {
			v[i] = rounded(v[i])
		}
	}
	return v
}

// patchOf is what makes b of a; false: they are the same.
func patchOf(a, b any) (patch any, changed bool) {
	switch b := b.(type) {
	case map[string]any:
		a, ok := a.(map[string]any)
		if !ok {
			return b, true
		}
		out := map[string]any{}
		for k, v := range b {
			if was, had := a[k]; !had {
				out[k] = v
			} else if p, changed := patchOf(was, v); changed {
				out[k] = p
			}
		}
		for k := range a {
			if _, still := b[k]; !still {
				out[k] = nil
			}
		}
		return out, len(out) > 0
	case []any:
		a, ok := a.([]any)
		if !ok || len(a) != len(b) || !objects(a) || !objects(b) {
			return b, !ok || !reflect.DeepEqual(a, b)
		}
		out := map[string]any{}
		for i := range b {
			if p, changed := patchOf(a[i], b[i]); changed {
				out[strconv.Itoa(i)] = p
			}
		}
		return map[string]any{patchedElements: out}, len(out) > 0
	}
	return b, a != b
}

func objects(list []any) bool {
	for _, v := range list {
		if _, ok := v.(map[string]any); !ok {
			return false
		}
	}
	return true
}
