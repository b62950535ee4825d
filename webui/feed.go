package webui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"fairway/anomaly"
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
	topicOwn       = "own:"       // + name, a zero byte and one of the topics: what a user sees of it
)

const (
	maxTopics     = 16
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
	// changes is what a listener needs who has the frame before, the one with a seq less by one.
	changes *websocket.PreparedMessage
	seq     uint64
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
	shown         changes // the overview that listeners of changes have
}

// publish turns a snapshot into frames. It runs in the picture's goroutine, once or twice a second.
func (h *feed) publish(snap *live.Snapshot, plansChanged bool) {
	begun := time.Now()
	frames := h.messages(nil, api.LiveMessage{Topic: topicBeat, Now: begun.UTC()})
	if len(h.wanted(topicOverview)) > 0 {
		frames = h.withChanges(h.overview(frames, &snap.Overview, begun), begun)
	}
	if plansChanged {
		frames = h.messages(frames, api.LiveMessage{Topic: topicPlans, Now: begun.UTC()})
	}
	if len(h.wanted(topicFindings)) > 0 {
		frames = h.messages(frames, findingsMessage(snap.Overview.Findings, begun))
	}
	frames = h.exclusionFrames(frames, begun)
	for _, id := range h.wanted(topicForwarder) {
		// A forwarder that is gone has no news; its page says so when it is loaded again.
		if d, err := h.picture.Forwarder(context.Background(), topology.ForwarderID(id), false); err == nil {
			frames = h.messages(frames, api.LiveMessage{Topic: topicForwarder + id, Now: begun.UTC(),
				Forwarder: &d})
		}
	}
	for _, key := range h.wanted(topicOwn) {
		frames = h.ownFrames(frames, key, snap, begun)
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

func findingsMessage(all []anomaly.Finding, now time.Time) api.LiveMessage {
	return api.LiveMessage{Topic: topicFindings, Now: now.UTC(), Findings: all}
}

func feedMessage(f remap.Feed, now time.Time) api.LiveMessage {
	return api.LiveMessage{Topic: topicExclude, Now: now.UTC(), Exclusions: &f}
}

func gridMetric(name string) int {
	return slices.IndexFunc(live.GridMetrics, func(m live.GridMetric) bool { return m.Name == name })
}

// messages adds a message, encoded once for everybody. One that cannot be encoded is missing from the feed and in the
// log: a screen must not take the daemon with it.
func (h *feed) messages(frames []liveFrame, m api.LiveMessage) []liveFrame {
	b, err := api.Encode(m)
	if err != nil {
		h.unencoded(m.Topic, err)
		return frames
	}
	return append(frames, liveFrame{topic: m.Topic, whole: b})
}

// overview adds the overview, with each client's own name and role. Three JSON objects are encoded apart and joined
// member by member: the message around it, the person (once a connection) and the rest.
func (h *feed) overview(frames []liveFrame, o *api.Overview, now time.Time) []liveFrame {
	around, err := api.Encode(api.LiveMessage{Topic: topicOverview, Now: now.UTC()})
	if err != nil {
		h.unencoded(topicOverview, err)
		return frames
	}
	rest, err := api.Encode(struct {
		*api.Overview
		User string `json:"user,omitempty"` // these two hide the overview's own
		Role string `json:"role,omitempty"`
	}{Overview: o})
	if err != nil {
		h.unencoded(topicOverview, err)
		return frames
	}
	return append(frames, liveFrame{topic: topicOverview,
		before: append(around[:len(around)-1], `,"overview":{`...),
		after:  append(rest[1:], '}')})
}

// withChanges gives the newest frame, the overview's, what of it changed since the one before. It is compressed once
// for all listeners; nothing in it is secret to one of them.
func (h *feed) withChanges(frames []liveFrame, now time.Time) []liveFrame {
	f := &frames[len(frames)-1]
	if f.topic != topicOverview || h.patched.Load() == 0 {
		return frames
	}
	// The members after the overview's {, up to its }.
	patch, err := h.shown.next(append([]byte{'{'}, f.after[:len(f.after)-1]...))
	f.seq = h.shown.seq
	if err == nil && patch != nil {
		var b []byte
		b, err = json.Marshal(api.LiveMessage{Topic: topicOverview, Now: now.UTC(), Changes: patch})
		if err == nil {
			f.changes, err = websocket.NewPreparedMessage(websocket.TextMessage, b)
		}
	}
	if err != nil {
		h.unencoded(topicOverview, err)
	}
	return frames
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

var liveUpgrader = websocket.Upgrader{
	HandshakeTimeout: 10 * time.Second, ReadBufferSize: 1 << 10, WriteBufferSize: 32 << 10, EnableCompression: true,
	WriteBufferPool: &sync.Pool{}, Subprotocols: []string{access.FeedProtocol},
	CheckOrigin: func(*http.Request) bool { return true }, // the gate has checked it, with who asks
}

// serve serves one listener until it goes.
func (h *feed) serve(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	topics, err := parseTopics(r.URL.Query().Get("topics"))
	if err != nil {
		return err
	}
	if !by.Role.Includes(viewer) {
		if topics, err = ownTopics(by.Person, topics); err != nil {
			return err
		}
	}
	ws, err := liveUpgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil // answered by the upgrader
	}
	defer ws.Close()
	ws.EnableWriteCompression(false) // but for what is made once for all
	if b, ok := ws.NetConn().(interface{ SetWriteBuffer(int) error }); ok {
		_ = b.SetWriteBuffer(liveBuffer) // without it the kernel's own bound holds
	}
	c := &liveClient{ws: ws, topics: topics, slots: map[string]*liveFrame{}, wake: make(chan struct{}, 1),
		session: by.Session, signedOut: make(chan struct{})}
	if c.patches = r.URL.Query().Get("changes") == "1"; c.patches {
		h.patched.Add(1)
		defer h.patched.Add(-1)
	}
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
		mine, isOwn := strings.CutPrefix(t, topicOwn)
		switch {
		case isOwn:
			frames = h.ownFrames(frames, mine, snap, now)
		case t == topicOverview:
			frames = h.overview(frames, &snap.Overview, now)
		case t == topicFindings:
			frames = h.messages(frames, findingsMessage(snap.Overview.Findings, now))
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
