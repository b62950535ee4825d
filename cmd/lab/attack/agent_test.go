package attack

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

// hostile is a daemon's address at which each connection of an agent meets the next of some behaviours.
type hostile struct {
	t     *testing.T
	url   string
	visit chan func(w http.ResponseWriter, r *http.Request)
}

func newHostile(t *testing.T) *hostile {
	h := &hostile{t: t, visit: make(chan func(http.ResponseWriter, *http.Request))}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case do := <-h.visit:
			do(w, r)
		case <-r.Context().Done(): // the agent has given up
		case <-t.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	h.url = "ws" + strings.TrimPrefix(server.URL, "http")
	return h
}

// meets has the agent's next connection meet a behaviour, and returns when that is over.
func (h *hostile) meets(do func(w http.ResponseWriter, r *http.Request)) {
	h.t.Helper()
	over := make(chan struct{})
	select {
	case h.visit <- func(w http.ResponseWriter, r *http.Request) { defer close(over); do(w, r) }:
	case <-time.After(2 * time.Minute):
		h.t.Fatal("the agent does not come any more")
	}
	<-over
}

// speaks is a behaviour of one who lets the stream begin and acknowledges, so that the agent comes back soon.
func (h *hostile) speaks(do func(ws *websocket.Conn)) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			h.t.Error(err)
			return
		}
		defer ws.Close()
		_ = say(ws, wire.Ack{Seq: 1})
		do(ws)
	}
}

func say(ws *websocket.Conn, m wire.Message) error {
	b, err := wire.Append(nil, m)
	if err != nil {
		return err
	}
	return ws.WriteMessage(websocket.BinaryMessage, b)
}

// until reads what the agent says until it ends the connection, or stop says that this was it.
func until(ws *websocket.Conn, stop func(m wire.Message) bool) {
	ws.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		_, b, err := ws.ReadMessage()
		if err != nil {
			return
		}
		if m, err := new(wire.Decoder).Decode(b); err == nil && stop(m) {
			return
		}
	}
}

func never(wire.Message) bool { return false }

// hostAgent starts a real agent that may be moved, by a proxy, to forwarders on this host.
func hostAgent(t *testing.T, url string) (memory func() int64, ended chan struct{}) {
	t.Helper()
	dir := t.TempDir()
	conf := fmt.Sprintf(
		"node = \"n1\"\n[daemon]\nurl = %q\ntoken_file = %q\n[spool]\ndir = %q\n[orders]\nenabled = true\n"+
			"by = \"tcpproxy\"\nallow = [\"127.0.0.1\"]\n[orders.tcpproxy]\nlisten = \"127.0.0.1:0\"\nforwarder = "+
			"\"fwd1\"\n"+
			"addr = \"127.0.0.1:1\"\n", url, filepath.Join(dir, "token"), filepath.Join(dir, "spool"))
	for name, text := range map[string]string{"agent.toml": conf, "token": "t0ken\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t, "fairway-agent"), "-c", filepath.Join(dir, "agent.toml"))
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		log.Close()
		if t.Failed() {
			t.Logf("the agent's log ends:\n%s", tail(log.Name(), 3000))
		}
	})
	s := &site{t: t}
	s.pid.Store(int64(cmd.Process.Pid))
	return func() int64 { return s.status("VmHWM") }, ended
}

// TestAttackAgent has a real agent meet a daemon that means it harm: it stays small, moves its node nowhere, and goes
// on with an honest daemon afterwards.
func TestAttackAgent(t *testing.T) {
	bigOrders := 300
	if long {
		bigOrders = 2000
	}
	h := newHostile(t)
	memory, ended := hostAgent(t, h.url)
	ack := func(ws *websocket.Conn, m wire.Message) {
		if f, ok := m.(*wire.Frames); ok {
			_ = say(ws, wire.Ack{Seq: f.Seq})
		}
	}
	h.meets(h.speaks(func(ws *websocket.Conn) { // the first second of an honest daemon
		until(ws, func(m wire.Message) bool { ack(ws, m); _, ok := m.(*wire.Frames); return ok })
	}))
	t.Logf("at first: %d MB", memory()>>20)
	for _, a := range []struct {
		name string
		do   func(w http.ResponseWriter, r *http.Request)
	}{
		{"an answer to the handshake without end", func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n")
			line := []byte("X-Filler: " + strings.Repeat("x", 4000) + "\r\n")
			sent := 0
			for err == nil && sent < 2<<30 {
				_, err = c.Write(line)
				sent += len(line)
			}
			if sent > 64<<20 {
				t.Errorf("the agent read %d MB of headers", sent>>20)
			}
		}},
		{"messages of 16 MB", h.speaks(func(ws *websocket.Conn) {
			_ = ws.WriteMessage(websocket.BinaryMessage, make([]byte, 16<<20))
			until(ws, never)
		})},
		{"frames of 60,000 nodes", h.speaks(func(ws *websocket.Conn) {
			_ = say(ws, &wire.Frames{Seq: 1, Frames: frames("x", topology.Compute, make([]int64, 60_000)...)})
			until(ws, never)
		})},
		{"a million refusals of messages that were not sent", h.speaks(func(ws *websocket.Conn) {
			for i := range uint64(1_000_000) {
				if say(ws, wire.Reject{Code: wire.RejectMalformed, Seq: 1_000_000 + i*7, Text: "\x1b[2J"}) != nil {
					return
				}
			}
			t.Error("the agent read a million refusals")
		})},
		{"acknowledgements of what was not sent", h.speaks(func(ws *websocket.Conn) {
			for range 1000 {
				_ = say(ws, wire.Ack{Seq: math.MaxUint64})
			}
		})},
		{fmt.Sprint(bigOrders, " orders of 1 MB each"), h.speaks(func(ws *websocket.Conn) {
			body, _ := json.Marshal(map[string]string{"forwarder": "fwd1",
				"addr": strings.Repeat("x", wire.MaxBodyBytes-64)})
			go until(ws, never)
			for i := range bigOrders {
				kind := []string{wire.OrderRemap, wire.OrderRoute, "shell"}[i%3]
				if say(ws, wire.Order{ID: fmt.Sprint("big", i), Kind: kind, Body: body,
					Deadline: time.Now().Add(time.Hour)}) != nil {
					return
				}
			}
		})},
	} {
		h.meets(a.do)
		t.Logf("%s: %d MB", a.name, memory()>>20)
	}
	refusedOrders(t, h)

	// An honest daemon again: the stream goes on, each message after the one before.
	seconds, newest := 0, uint64(0)
	honest := h.speaks(func(ws *websocket.Conn) {
		until(ws, func(m wire.Message) bool {
			ack(ws, m)
			if f, ok := m.(*wire.Frames); ok {
				if newest > 0 && f.Seq > newest+1 {
					t.Errorf("message %d comes after %d", f.Seq, newest)
				}
				newest = max(newest, f.Seq)
				seconds++
			}
			return seconds >= 3
		})
	})
	for tries := 0; tries < 5 && seconds < 3; tries++ {
		h.meets(honest)
	}
	if seconds < 3 {
		t.Errorf("%d messages came afterwards", seconds)
	}
	select {
	case <-ended:
		t.Error("the agent has ended")
	default:
	}
	if most := memory(); most > 120<<20 {
		t.Errorf("the agent had %d MB", most>>20)
	}
}

// refusedOrders gives orders that a node must not carry out; asked for its route, it is where it was.
func refusedOrders(t *testing.T, h *hostile) {
	orders := map[string]wire.Order{}
	order := func(id, kind, body string, deadline time.Time) {
		orders[id] = wire.Order{ID: id, Kind: kind, Body: json.RawMessage(body), Deadline: deadline}
	}
	soon := time.Now().Add(10 * time.Minute)
	order("another's", wire.OrderRemap, `{"node":"n2","forwarder":"fwd2","addr":"127.0.0.1:2"}`, soon)
	order("anywhere", wire.OrderRemap, `{"node":"n1","forwarder":"fwd2","addr":"203.0.113.9:564"}`, soon)
	order("a file", wire.OrderRemap, `{"node":"n1","forwarder":"fwd2","addr":"unix:/etc/passwd"}`, soon)
	order("two addresses", wire.OrderRemap,
		`{"node":"n1","forwarder":"fwd2","addr":"127.0.0.1:2","ADDR":"203.0.113.9:564"}`, soon)
	order("too late", wire.OrderRemap, `{"node":"n1","forwarder":"fwd2","addr":"127.0.0.1:2"}`,
		time.Now().Add(-time.Hour))
	order("a shell", "exec", `{"node":"n1","command":"id"}`, soon)
	order("no JSON", wire.OrderRemap, `{"node":`, soon)
	order("a table", wire.OrderShare, `{}`, soon)
	order("route", wire.OrderRoute, `{"node":"n1"}`, soon)
	results := map[string]wire.OrderResult{}
	for range 5 { // a connection may be lost on a busy machine; an order that was answered is answered again
		h.meets(h.speaks(func(ws *websocket.Conn) { giveOrders(t, ws, orders, results) }))
		if len(results) == len(orders) {
			break
		}
	}
	for id := range orders {
		r, ok := results[id]
		switch {
		case !ok:
			t.Errorf("order %q was not answered", id)
		case id == "route":
			if !r.OK || !strings.Contains(string(r.Body), `"fwd1"`) {
				t.Errorf("the node's route afterwards: %+v %s", r, r.Body)
			}
		case r.OK:
			t.Errorf("order %q was carried out: %s", id, r.Body)
		}
	}
}

// giveOrders gives orders and notes their results until all have one or the agent ends the connection.
func giveOrders(t *testing.T, ws *websocket.Conn, orders map[string]wire.Order, results map[string]wire.OrderResult) {
	for _, o := range orders {
		if err := say(ws, o); err != nil {
			t.Log(err)
			return
		}
	}
	until(ws, func(m wire.Message) bool {
		if r, ok := m.(wire.OrderResult); ok {
			if _, asked := orders[r.ID]; asked {
				results[r.ID] = r
			}
		}
		return len(results) == len(orders)
	})
}
