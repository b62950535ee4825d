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
	open    func(cookie string) bool     // whether a session is open
	took    *metrics.PrometheusHistogram // from snapshot to every client's queue
	log     *slog.Logger

	// Of the goroutine that publishes: which exclusions the listeners have, and until when that is enough.
	fedGeneration uint64
	feedAgain     time.Time
	shown         changes // the overview that listeners of changes have
}

// publish turns a snapshot into frames. It runs in the picture's goroutine, once or twice a second.
func (h *feed) publish(snap *live.Snapshot, plansChanged bool) {
	begun := time.Now()
	frames := h.message(api.LiveMessage{Topic: topicBeat, Now: begun.UTC()})
	if plansChanged {
		frames = append(frames, h.message(api.LiveMessage{Topic: topicPlans, Now: begun.UTC()})...)
	}
	for topic := range *h.topics.Load() {
		if topic == topicExclude && !h.excludesAnew(begun) {
			continue
		}
		frames = append(frames, h.framesOf(topic, snap, begun)...)
		if topic == topicOverview {
			frames = h.withChanges(frames, begun)
		}
	}
	h.hub.publish(frames)
	h.took.UpdateDuration(begun)
}

// excludesAnew says that the listeners need the exclusions anew.
func (h *feed) excludesAnew(now time.Time) bool {
	f := h.desk.Feed()
	if f.Generation == h.fedGeneration && !now.After(h.feedAgain) {
		return false
	}
	h.fedGeneration, h.feedAgain = f.Generation, now.Add(f.ValidUntil.Sub(now)/3)
	return true
}

// framesOf makes one topic of a snapshot, one of a user's with what that user may see; none where it has no news.
func (h *feed) framesOf(topic string, snap *live.Snapshot, now time.Time) (made []liveFrame) {
	var mine *own
	of := topic
	if key, isOwn := strings.CutPrefix(topic, topicOwn); isOwn {
		var name string
		name, of, _ = strings.Cut(key, "\x00")
		mine = ownOf(remap.Person{Name: name, Role: user}, snap.Situation)
	}
	id, isForwarder := strings.CutPrefix(of, topicForwarder)
	grid, isGrid := strings.CutPrefix(of, topicGrid)
	message := api.LiveMessage{Topic: of, Now: now.UTC()}
	switch {
	case of == topicOverview:
		made = h.overview(new(mine.overview(snap.Overview)), now)
	case of == topicFindings:
		message.Findings = mine.findings(snap.Overview.Findings)
		made = h.message(message)
	case of == topicExclude:
		message.Exclusions = new(h.desk.Feed())
		made = h.message(message)
	case isForwarder && (mine == nil || mine.forwarders[topology.ForwarderID(id)]):
		// A forwarder that is gone has no news; its page says so when it is loaded again.
		d, err := h.picture.Forwarder(context.Background(), topology.ForwarderID(id), false)
		if err == nil {
			d, err = mine.forwarder(d)
		}
		if err == nil {
			message.Forwarder = &d
			made = h.message(message)
		}
	case isGrid && gridMetric(grid) >= 0:
		made = []liveFrame{{binary: true, whole: h.grids.Frame(snap, gridMetric(grid))}}
	}
	for i := range made {
		made[i].topic = topic
	}
	return made
}

func gridMetric(name string) int {
	return slices.IndexFunc(live.GridMetrics, func(m api.Scale) bool { return m.Name == name })
}

// message is a message, encoded once for everybody. One that cannot be encoded is missing from the feed and in the
// log: a screen must not take the daemon with it.
func (h *feed) message(m api.LiveMessage) []liveFrame {
	b, err := api.Encode(m)
	if err != nil {
		h.unencoded(m.Topic, err)
		return nil
	}
	return []liveFrame{{topic: m.Topic, whole: b}}
}

// overview is the overview, with each client's own name and role. Three JSON objects are encoded apart and joined
// member by member: the message around it, the person (once a connection) and the rest.
func (h *feed) overview(o *api.Overview, now time.Time) []liveFrame {
	around, err := api.Encode(api.LiveMessage{Topic: topicOverview, Now: now.UTC()})
	if err != nil {
		h.unencoded(topicOverview, err)
		return nil
	}
	rest, err := api.Encode(struct {
		*api.Overview
		User string `json:"user,omitempty"` // these two hide the overview's own
		Role string `json:"role,omitempty"`
	}{Overview: o})
	if err != nil {
		h.unencoded(topicOverview, err)
		return nil
	}
	return []liveFrame{{before: append(around[:len(around)-1], `,"overview":{`...), after: append(rest[1:], '}')}}
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
func personMembers(p remap.Person) []byte {
	b, _ := json.Marshal(struct {
		User string     `json:"user"`
		Role remap.Role `json:"role"`
	}{p.Name, p.Role}) // text is always encoded
	return append(b[1:len(b)-1], ',')
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
	c := &liveClient{ws: ws, topics: topics, person: personMembers(by.Person), slots: map[string]*liveFrame{},
		wake: make(chan struct{}, 1), session: by.Session, signedOut: make(chan struct{})}
	if c.patches = r.URL.Query().Get("changes") == "1"; c.patches {
		h.patched.Add(1)
		defer h.patched.Add(-1)
	}
	if r.URL.Query().Get("background") == "1" {
		c.gap = backgroundGap
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
	for _, t := range c.topics {
		if strings.HasPrefix(t, topicForwarder) {
			continue // who listens to it has read the page a moment ago
		}
		for _, f := range h.framesOf(t, snap, now) {
			c.put(&f)
		}
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
