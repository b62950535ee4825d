package webui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gorilla/websocket"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// The topics of the live feed. A client asks for some by ?topics=a,b; without, for the overview.
const (
	topicOverview  = "overview"
	topicPlans     = "plans"      // some plan changed: read again what is shown
	topicForwarder = "forwarder:" // + id: the page's newest second
	topicGrid      = "grid:"      // + a live.GridMetrics name: binary frames
	topicBeat      = "beat"
	topicFindings  = "findings"   // the list, with each picture
	topicExclude   = "exclusions" // the feed, when it changes and before half its lease is over
)

const (
	maxTopics     = 16
	maxLive       = 1024 // clients
	liveWriteTime = 10 * time.Second
	livePing      = 20 * time.Second
	liveSilent    = 60 * time.Second
	backgroundGap = 5 * time.Second // of a hidden tab: 0.2 Hz
	// liveBuffer bounds what the kernel keeps for a listener that does not read: some seconds of all
	// topics, instead of the megabytes that it would grow to.
	liveBuffer = 256 << 10
)

// liveFrame is one message for many clients: the whole message, or what comes before and after the members of its
// overview that name the client's person.
type liveFrame struct {
	topic  string
	binary bool
	whole  []byte
	before []byte // of a personal message: up to the overview's {
	after  []byte // the overview's other members, and the end
}

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

// wanted lists the topics with a prefix that somebody listens to.
func (h *hub) wanted(prefix string) (names []string) {
	for t := range *h.topics.Load() {
		if name, ok := strings.CutPrefix(t, prefix); ok {
			names = append(names, name)
		}
	}
	return names
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

// feed is the live feed: it makes frames of each snapshot and serves the clients that listen.
type feed struct {
	*hub
	picture *live.Picture
	desk    interface{ Feed() remap.Feed }
	grids   *live.Grids
	open    func(cookie string) bool // whether a session is open
	took    *histogram               // from snapshot to every client's queue
	log     *slog.Logger

	// Of the goroutine that publishes: which exclusions the listeners have, and until when that is enough.
	fedGeneration uint64
	feedAgain     time.Time
}

// publish turns a snapshot into frames. It runs in the picture's goroutine, once or twice a second.
func (h *feed) publish(snap *live.Snapshot, plansChanged bool) {
	begun := time.Now()
	frames := h.messages(nil, api.LiveMessage{Topic: topicBeat, Now: begun.UTC()})
	if len(h.wanted(topicOverview)) > 0 {
		frames = h.overview(frames, snap, begun)
	}
	if plansChanged {
		frames = h.messages(frames, api.LiveMessage{Topic: topicPlans, Now: begun.UTC()})
	}
	if len(h.wanted(topicFindings)) > 0 {
		frames = h.messages(frames, findingsMessage(snap, begun))
	}
	frames = h.exclusionFrames(frames, begun)
	for _, id := range h.wanted(topicForwarder) {
		// A forwarder that is gone has no news; its page says so when it is loaded again.
		if d, err := h.picture.Forwarder(context.Background(), topology.ForwarderID(id), false); err == nil {
			frames = h.messages(frames, api.LiveMessage{Topic: topicForwarder + id, Now: begun.UTC(),
				Forwarder: &d})
		}
	}
	for _, name := range h.wanted(topicGrid) {
		if i := gridMetric(name); i >= 0 {
			frames = append(frames, liveFrame{topic: topicGrid + name, binary: true, whole: h.grids.Frame(snap, i)})
		}
	}
	h.hub.publish(frames)
	h.took.observe(time.Since(begun).Seconds())
}

// exclusionFrames adds the exclusions when the listeners need them anew.
func (h *feed) exclusionFrames(frames []liveFrame, now time.Time) []liveFrame {
	if len(h.wanted(topicExclude)) == 0 {
		return frames
	}
	f := h.desk.Feed()
	if f.Generation == h.fedGeneration && !now.After(h.feedAgain) {
		return frames
	}
	h.fedGeneration, h.feedAgain = f.Generation, now.Add(f.ValidUntil.Sub(now)/3)
	return h.messages(frames, feedMessage(f, now))
}

func findingsMessage(snap *live.Snapshot, now time.Time) api.LiveMessage {
	return api.LiveMessage{Topic: topicFindings, Now: now.UTC(), Findings: snap.Overview.Findings}
}

func feedMessage(f remap.Feed, now time.Time) api.LiveMessage {
	return api.LiveMessage{Topic: topicExclude, Now: now.UTC(), Exclusions: &f}
}

func gridMetric(name string) int {
	return slices.IndexFunc(live.GridMetrics, func(m live.GridMetric) bool { return m.Name == name })
}

// messages adds a message, encoded once for everybody. One that cannot be encoded (a number that is
// not a number) is missing from the feed and in the log: a screen must not take the daemon with it.
func (h *feed) messages(frames []liveFrame, m api.LiveMessage) []liveFrame {
	b, err := json.Marshal(m)
	if err != nil {
		h.unencoded(m.Topic, err)
		return frames
	}
	return append(frames, liveFrame{topic: m.Topic, whole: b})
}

// overview adds the overview, which each client gets with its own name and role: JSON objects that are encoded
// apart, the message around the overview, the person (once a connection) and the rest of the overview, are joined
// member by member.
func (h *feed) overview(frames []liveFrame, snap *live.Snapshot, now time.Time) []liveFrame {
	around, err := json.Marshal(api.LiveMessage{Topic: topicOverview, Now: now.UTC()})
	if err != nil {
		h.unencoded(topicOverview, err)
		return frames
	}
	rest, err := json.Marshal(struct {
		*api.Overview
		User string `json:"user,omitempty"` // these two hide the overview's own
		Role string `json:"role,omitempty"`
	}{Overview: &snap.Overview})
	if err != nil {
		h.unencoded(topicOverview, err)
		return frames
	}
	return append(frames, liveFrame{topic: topicOverview,
		before: append(around[:len(around)-1], `,"overview":{`...),
		after:  append(rest[1:], '}')})
}

func (h *feed) unencoded(topic string, err error) {
	h.log.Error("BUG: a message of the live feed cannot be encoded and is left out", "topic", topic, "err", err)
}

// personMembers are the members of a JSON object that say who somebody is, and the comma after them.
func personMembers(p remap.Person) ([]byte, error) {
	b, err := json.Marshal(struct {
		User string     `json:"user"`
		Role remap.Role `json:"role"`
	}{p.Name, p.Role})
	if err != nil {
		return nil, err
	}
	return append(b[1:len(b)-1], ','), nil
}

// liveClient is one listener. Its slots hold the newest frame of each topic it asked for.
type liveClient struct {
	ws     *websocket.Conn
	topics []string
	person []byte // personMembers of who listens
	gap    time.Duration
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
	out := make([]*liveFrame, 0, len(c.slots))
	for _, f := range c.slots {
		out = append(out, f)
	}
	clear(c.slots)
	slices.SortFunc(out, func(a, b *liveFrame) int { return strings.Compare(a.topic, b.topic) })
	return out
}

var liveUpgrader = websocket.Upgrader{
	HandshakeTimeout: 10 * time.Second, ReadBufferSize: 1 << 10, WriteBufferSize: 32 << 10,
	WriteBufferPool: &sync.Pool{},
	CheckOrigin:     func(*http.Request) bool { return true }, // the gate has checked it, with who asks
}

// serve serves one listener until it goes.
func (h *feed) serve(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	topics, err := parseTopics(r.URL.Query().Get("topics"))
	if err != nil {
		return err
	}
	if h.clients.Load() >= maxLive {
		return fmt.Errorf("%w: %d consoles are connected already", api.ErrUnreachable, maxLive)
	}
	ws, err := liveUpgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil // answered by the upgrader
	}
	defer ws.Close()
	if b, ok := ws.NetConn().(interface{ SetWriteBuffer(int) error }); ok {
		_ = b.SetWriteBuffer(liveBuffer) // without it the kernel's own bound holds
	}
	c := &liveClient{ws: ws, topics: topics, slots: map[string]*liveFrame{}, wake: make(chan struct{}, 1),
		session: by.Session, signedOut: make(chan struct{})}
	if r.URL.Query().Get("background") == "1" {
		c.gap = backgroundGap
	}
	if c.person, err = personMembers(by.Person); err != nil {
		return nil // unreachable: a name and a role are text
	}
	select {
	case h.join <- c:
	case <-h.stopped:
		return nil
	}
	if by.Session != "" && !h.open(by.Session) {
		h.ended(by.Session) // it ended while this listener came
	}
	h.first(c)
	gone := make(chan struct{})
	go func() { defer close(gone); c.read() }()
	sent, err := c.write(gone, by.Expires)
	h.sent.Add(sent)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		h.stalled.Add(1)
		h.log.Warn("a console is let go: it has not read for "+liveWriteTime.String(), "user", by.Name, "from",
			by.Remote, "topics", strings.Join(topics, ","))
	}
	ws.Close()
	<-gone
	select {
	case h.leave <- c:
	case <-h.stopped:
	}
	return nil
}

// first puts the present picture in a new client's slots, so that it need not wait for the next.
func (h *feed) first(c *liveClient) {
	snap, now := h.picture.Snapshot(), time.Now()
	var frames []liveFrame
	for _, t := range c.topics {
		name, isGrid := strings.CutPrefix(t, topicGrid)
		switch {
		case t == topicOverview:
			frames = h.overview(frames, snap, now)
		case t == topicFindings:
			frames = h.messages(frames, findingsMessage(snap, now))
		case t == topicExclude:
			frames = h.messages(frames, feedMessage(h.desk.Feed(), now))
		case isGrid:
			frames = append(frames, liveFrame{topic: t, binary: true, whole: h.grids.Frame(snap, gridMetric(name))})
		}
	}
	for i := range frames {
		c.put(&frames[i])
	}
}

func parseTopics(text string) ([]string, error) {
	if text == "" {
		return []string{topicOverview}, nil
	}
	topics := strings.Split(text, ",")
	if len(topics) > maxTopics {
		return nil, fmt.Errorf("%w: %d topics, at most %d", api.ErrInvalid, len(topics), maxTopics)
	}
	for _, t := range topics {
		grid, isGrid := strings.CutPrefix(t, topicGrid)
		switch {
		case t == topicOverview, t == topicPlans, t == topicBeat, t == topicFindings, t == topicExclude:
		case isGrid && gridMetric(grid) >= 0:
		case strings.HasPrefix(t, topicForwarder) && len(t) < 300:
		default:
			return nil,
				fmt.Errorf(
					"%w: topic %q; there are overview, plans, findings, exclusions, beat, forwarder:ID and grid:METRIC",
					api.ErrInvalid, t)
		}
	}
	return topics, nil
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

// write sends what is newest until the client goes, its session ends, or it does not read; it returns
// the number of frames sent and why one could not be.
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
