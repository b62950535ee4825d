package ingest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// speaker is a connection of whoever says it is a node.
type speaker struct {
	t  *testing.T
	ws *websocket.Conn
}

func speak(t *testing.T, url string, hello wire.Hello) *speaker {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(url, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	s := &speaker{t, ws}
	s.send(hello)
	return s
}

func (s *speaker) send(m wire.Message) {
	s.t.Helper()
	b, err := wire.Append(nil, m)
	if err == nil {
		err = s.ws.WriteMessage(websocket.BinaryMessage, b)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// next is the next message; reading answers pings. nil when the connection has ended.
func (s *speaker) next() wire.Message {
	s.ws.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, b, err := s.ws.ReadMessage()
	if err != nil {
		return nil
	}
	m, err := new(wire.Decoder).Decode(b)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// acked sends a frame of a node and returns the daemon's answer.
func (s *speaker) acked(seq uint64, n topology.NodeID) wire.Message {
	s.send(&wire.Frames{Seq: seq, Frames: []collector.Frame{{Node: n, Role: topology.Compute,
		TimeMillis: time.Now().UnixMilli(), Samples: []collector.Sample{{Metric: collector.WriteBytes, Value: 1}}}}})
	return s.next()
}

func hubServer(t *testing.T) (*ingest.Hub, string) {
	hub := ingest.New(ingest.Config{Store: nowhere{}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hub.Serve(w, r, ingest.Speaker{Name: "agents", Limits: ingest.DefaultLimits()})
	}))
	t.Cleanup(server.Close)
	t.Cleanup(hub.Close)
	return hub, server.URL
}

// TestSecondSpeakerIsRefused: whoever has the shared token as well says it is cn5, whose agent is connected.
func TestSecondSpeakerIsRefused(t *testing.T) {
	hub, url := hubServer(t)
	begun := time.Now()
	own := speak(t, url, wire.Hello{Node: "cn5", Role: topology.Compute, Instance: "own"})
	if a, ok := own.acked(1, "cn5").(wire.Ack); !ok {
		t.Fatalf("the agent itself was not taken: %v", a)
	}
	received := make(chan wire.Message, 8)
	go func() { // an agent reads, and so answers pings
		for m := own.next(); m != nil; m = own.next() {
			received <- m
		}
		close(received)
	}()
	if len(hub.Intruders(begun)) != 0 {
		t.Errorf("one agent alone: %+v", hub.Intruders(begun))
	}
	second := speak(t, url, wire.Hello{Node: "cn5", Role: topology.Compute, Instance: "another"})
	if r, ok := second.next().(wire.Reject); !ok || r.Code != wire.RejectBusy || !strings.Contains(r.Text, "cn5") {
		t.Errorf("the second speaker got %+v", r)
	}
	among := speak(t, url, wire.Hello{Node: "cn6", Role: topology.Compute, Instance: "six"})
	if r, ok := among.acked(1, "cn5").(wire.Reject); !ok || r.Code != wire.RejectForbidden {
		t.Errorf("frames of cn5 by cn6's agent got %+v", r)
	}
	if a, ok := among.acked(2, "cn7").(wire.Ack); !ok || a.Seq != 2 {
		t.Errorf("frames of a node without an agent got %+v", a)
	}
	list := hub.Intruders(begun)
	if len(list) != 1 || list[0].Node != "cn5" || list[0].Times != 2 || list[0].Token != "agents" ||
		list[0].Remote == "" ||
		list[0].Owner == list[0].Remote {
		t.Errorf("intruders: %+v", list)
	}
	go hub.Order(t.Context(), "cn5", wire.Order{ID: "o-1", Kind: wire.OrderRoute,
		Deadline: time.Now().Add(time.Minute)})
	if o, ok := (<-received).(wire.Order); !ok || o.ID != "o-1" {
		t.Errorf("the node's own agent got %+v, want the order", o)
	}
	// The same agent again, after a break that the daemon has not noticed.
	again := speak(t, url, wire.Hello{Node: "cn5", Role: topology.Compute, Instance: "own"})
	if a, ok := again.acked(2, "cn5").(wire.Ack); !ok {
		t.Errorf("the agent came back and got %+v", a)
	}
	if _, open := <-received; open {
		t.Error("its first connection is still open")
	}
	// Nobody reads for this connection, as when its node has lost power: another instance takes its place.
	if a, ok := speak(t, url, wire.Hello{Node: "cn5", Role: topology.Compute, Instance: "after a new start"}).acked(1,
		"cn5").(wire.Ack); !ok {
		t.Errorf("the node started anew and got %+v", a)
	}
}

// TestTheLastMessageIsAnswered: whatever waits to be answered with others is, when no others come.
func TestTheLastMessageIsAnswered(t *testing.T) {
	_, url := hubServer(t)
	s := speak(t, url, wire.Hello{Node: "cn1", FirstSeq: 1, Instance: "a"})
	const last = 40 // more than are answered one by one
	second := time.Now().Add(-time.Minute).UnixMilli()
	for seq := range uint64(last) {
		s.send(&wire.Frames{Seq: seq + 1,
			Frames: []collector.Frame{{Node: "cn1", TimeMillis: second + int64(seq)*1000}}})
	}
	for {
		a, ok := s.next().(wire.Ack)
		if !ok {
			t.Fatal("the message was not acknowledged")
		}
		if a.Seq == last {
			break
		}
	}
}
