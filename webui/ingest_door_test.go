package webui_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"

	"github.com/gorilla/websocket"

	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/webui/access"
)

// agentConn speaks the agents' language by hand.
type agentConn struct {
	t  *testing.T
	ws *websocket.Conn
}

func dialIngest(t *testing.T, s *simsite.Site, node topology.NodeID) *agentConn {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+s.TCP+"/api/v1/ingest",
		http.Header{"Authorization": {"Bearer " + simsite.AgentSecret}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	a := &agentConn{t, ws}
	a.send(wire.Hello{Node: node, Role: topology.Forwarder, FirstSeq: 1, Instance: string(node)}, 0)
	return a
}

// send writes a message without its last cut bytes.
func (a *agentConn) send(m wire.Message, cut int) {
	a.t.Helper()
	b, err := wire.Append(nil, m)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := a.ws.WriteMessage(websocket.BinaryMessage, b[:len(b)-cut]); err != nil {
		a.t.Fatal(err)
	}
}

// next is the next message, or the error that ended the connection.
func (a *agentConn) next() (wire.Message, error) {
	a.t.Helper()
	a.ws.SetReadDeadline(time.Now().Add(90 * time.Second))
	_, b, err := a.ws.ReadMessage()
	if err != nil {
		return nil, err
	}
	var d wire.Decoder
	return d.Decode(b)
}

func second(node topology.NodeID, seq uint64) *wire.Frames {
	return &wire.Frames{Seq: seq, Frames: []collector.Frame{{Node: node, Role: topology.Forwarder,
		TimeMillis: time.Now().Truncate(time.Second).UnixMilli(),
		Samples:    []collector.Sample{{Metric: collector.ReadBytes, Value: 12.5}}}}}
}

// A truncated frame ends its own connection, with a reason that names the field; the neighbour's
// seconds are taken as before.
func TestATruncatedFrameEndsItsConnectionAlone(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	bad, good := dialIngest(t, s, "fwd001"), dialIngest(t, s, "fwd002")
	bad.send(second("fwd001", 1), 3)
	var reject *wire.Reject
	for reject == nil {
		m, err := bad.next()
		if err != nil {
			t.Fatalf("the connection ended without a word: %v", err)
		}
		if r, ok := m.(wire.Reject); ok {
			reject = &r
		}
	}
	if reject.Code != wire.RejectMalformed || !strings.Contains(reject.Text, "sample") {
		t.Errorf("refused with %d %q, want a malformed sample", reject.Code, reject.Text)
	}
	var closed *websocket.CloseError
	if _, err := bad.next(); !errors.As(err, &closed) {
		t.Errorf("after the refusal: %v, want a close", err)
	}
	good.send(second("fwd002", 1), 0)
	if m, err := good.next(); err != nil || m != (wire.Ack{Seq: 1}) {
		t.Errorf("the neighbour got %v, %v, want its acknowledgement", m, err)
	}
}

func TestAWrongTokenIsNamed(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	_, res, err := websocket.DefaultDialer.Dial("ws://"+s.TCP+"/api/v1/ingest",
		http.Header{"Authorization": {"Bearer wrong"}})
	if err == nil || res == nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong token: %v, %v", res, err)
	}
}

// A token for some nodes does not say where the others are: a false route would verify a plan.
func TestAnAgentSpeaksForItsOwnRoutes(t *testing.T) {
	s := simsite.New(t, simsite.Options{Access: func(a *access.Config) {
		a.Tokens[0].Nodes = []string{"c00001",
			"fwd000"}
	}})
	a := dialIngest(t, s, "c00001")
	for i, c := range []struct {
		role  topology.Role
		route collector.Route
		taken bool
	}{
		{topology.Compute, collector.Route{Client: "c00001", Forwarder: "fwd003"}, true},
		{topology.Compute, collector.Route{Client: "c00002", Forwarder: "fwd003"}, false},
		{topology.Forwarder, collector.Route{Client: "c00002", Forwarder: "fwd003"}, false},
		{topology.Forwarder, collector.Route{Client: "c00002", Forwarder: "fwd000"}, true},
	} {
		m := second("c00001", uint64(i+1))
		m.Frames[0].Role, m.Frames[0].Routes = c.role, []collector.Route{c.route}
		a.send(m, 0)
		got, err := a.next()
		if err != nil {
			t.Fatal(err)
		}
		if _, taken := got.(wire.Ack); taken != c.taken {
			t.Errorf("%s says that %s uses %s: answered %+v", c.role, c.route.Client, c.route.Forwarder, got)
		}
	}
}

// A token's limits hold for all of its connections together.
func TestLimitsArePerToken(t *testing.T) {
	limits := ingest.DefaultLimits()
	limits.Nodes, limits.FramesPerSec, limits.BurstSeconds = 3, 1, 10
	s := simsite.New(t, simsite.Options{Access: func(a *access.Config) { a.Tokens[0].Limits = limits }})
	one, two := dialIngest(t, s, "fwd001"), dialIngest(t, s, "fwd002")
	say := func(a *agentConn, nodes ...topology.NodeID) wire.Message {
		t.Helper()
		m := second(nodes[0], 1)
		for _, n := range nodes[1:] {
			f := m.Frames[0]
			f.Node = n
			m.Frames = append(m.Frames, f)
		}
		a.send(m, 0)
		got, err := a.next()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := say(one, "fwd001", "fwd003"); got != (wire.Ack{Seq: 1}) {
		t.Fatalf("%+v", got)
	}
	if r, ok := say(two, "fwd004").(wire.Reject); !ok || r.Code != wire.RejectLimit || r.Seq != 1 ||
		!strings.Contains(r.Text, "3 nodes already") {
		t.Errorf("a fourth node over another connection: %+v", r)
	}
	if r, ok := say(two, slices.Repeat([]topology.NodeID{"fwd002"}, 40)...).(wire.Reject); !ok ||
		r.Code != wire.RejectBusy || !strings.Contains(r.Text, "over all that use it") {
		t.Errorf("far too many frames: %+v", r)
	}
}
