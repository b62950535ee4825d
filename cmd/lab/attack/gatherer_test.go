package attack

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/collector/wire/seal"
	"fairway/webui/access"
)

const enrolmentSecret = "the-secret-behind-the-nodes-own-tokens"

// rack is a gatherer that does what it likes.
type rack struct {
	t    *testing.T
	ws   *websocket.Conn
	next uint64
}

func (s *site) rack(t *testing.T) *rack {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+s.addr+"/api/v1/gather?node=rack1",
		http.Header{"Authorization": {"Bearer " + manySecret}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	return &rack{t: t, ws: ws}
}

func (r *rack) say(id uint64, op wire.Op, body []byte) error {
	return r.ws.WriteMessage(websocket.BinaryMessage, wire.AppendRecord(nil, id, op, body))
}

// metric reads one value of the daemon's metrics.
func (s *site) metric(name string) (v float64) {
	s.t.Helper()
	for line := range strings.Lines(s.askLocal("GET", "/metrics", "").body) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(text, &v); err != nil {
				s.t.Error(err)
			}
			return v
		}
	}
	s.t.Errorf("no metric %s", name)
	return 0
}

var errEnough = errors.New("that was it")

// answer waits for the next record of a channel; op 0: the connection ended.
func (r *rack) answer(id uint64) (op wire.Op, body []byte) {
	r.ws.SetReadDeadline(time.Now().Add(time.Minute))
	for op == 0 {
		_, b, err := r.ws.ReadMessage()
		if err != nil {
			return 0, []byte(err.Error())
		}
		_ = wire.Records(b, func(channel uint64, o wire.Op, text []byte) error {
			if channel != id || o == wire.OpCredit {
				return nil
			}
			op, body = o, slices.Clone(text)
			return errEnough
		})
	}
	return op, body
}

// ends waits until the daemon ends a channel.
func (r *rack) ends(id uint64) (why string) {
	for {
		if op, body := r.answer(id); op != wire.OpData {
			return string(body)
		}
	}
}

// victim is a node whose stream goes through the gatherer: what it has sent, as the gatherer sees it.
type victim struct {
	offer    *seal.Offer
	in, out  *seal.Half
	messages [][]byte
}

// begin opens a channel for a node, which says who it is and sends two seconds.
func (r *rack) begin(token string, n topology.NodeID) (id uint64, v *victim) {
	r.t.Helper()
	r.next++
	id, v = r.next, &victim{}
	var err error
	if v.offer, err = seal.NewOffer(token); err != nil {
		r.t.Fatal(err)
	}
	if err := r.say(id, wire.OpOpen, v.offer.Bytes()); err != nil {
		r.t.Fatal(err)
	}
	op, answer := r.answer(id)
	if op != wire.OpData {
		r.t.Fatalf("the daemon answers an honest offer with %d: %s", op, answer)
	}
	if v.in, v.out, err = v.offer.Take(token, answer); err != nil {
		r.t.Fatal(err)
	}
	v.seal(r.t, wire.Hello{Node: n, Role: topology.Compute, FirstSeq: 1, Instance: "one"})
	now := time.Now().Truncate(time.Second)
	for i := range 2 {
		v.seal(r.t, &wire.Frames{Seq: uint64(i + 1),
			Frames: frames(n, topology.Compute, now.Add(time.Duration(i-2)*time.Second).UnixMilli())})
	}
	return id, v
}

func (v *victim) seal(t *testing.T, m wire.Message) {
	msg, err := wire.Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	v.messages = append(v.messages, v.out.Seal(nil, seal.Message, msg))
}

// TestAttackGatherer has a gatherer lie about its nodes, change, repeat, reorder and leave out what they send, play an
// earlier stream again, and open channels without end. Nothing of it is taken, and an honest node goes on beside it.
func TestAttackGatherer(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(enrolmentSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, fmt.Sprintf("[access.enrolment]\nsecret_file = %q\n", secret))
	e := access.Enrolment{Secrets: func() ([]string, error) { return []string{enrolmentSecret}, nil }}
	token := func(n topology.NodeID) string {
		text, err := e.NodeToken(n, time.Now().Add(-time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := s.status("VmRSS")

	var earlier *victim
	for _, a := range []struct {
		name string
		do   func(m [][]byte) [][]byte
	}{
		{"nothing", func(m [][]byte) [][]byte { return m }},
		{"a message twice", func(m [][]byte) [][]byte { return [][]byte{m[0], m[1], m[1]} }},
		{"two messages the other way round", func(m [][]byte) [][]byte { return [][]byte{m[0], m[2], m[1]} }},
		{"a message left out", func(m [][]byte) [][]byte { return [][]byte{m[0], m[2]} }},
		{"a changed bit", func(m [][]byte) [][]byte { m[1][len(m[1])/2] ^= 1; return m[:2] }},
		{"a made up message", func([][]byte) [][]byte { return [][]byte{make([]byte, 200)} }},
		{"an earlier stream again", func([][]byte) [][]byte { return earlier.messages }},
	} {
		r := s.rack(t)
		id, v := r.begin(token("cn2"), "cn2")
		for _, m := range a.do(v.messages) {
			if err := r.say(id, wire.OpData, slices.Clone(m)); err != nil {
				t.Error(a.name, err)
			}
		}
		if a.name == "nothing" { // the same without an attack is acknowledged
			earlier = v
			for acked := false; !acked; {
				op, body := r.answer(id)
				if op != wire.OpData {
					t.Fatalf("an honest stream ends: %s", body)
				}
				_, text, err := v.in.Open(body)
				if err != nil {
					t.Fatal(err)
				}
				m, err := new(wire.Decoder).Decode(text)
				ack, _ := m.(wire.Ack)
				acked = err == nil && ack.Seq == 2
			}
		} else {
			r.ends(id)
		}
		r.ws.Close()
	}
	if got := s.metric("fairway_ingest_gathered_broken_total"); got != 6 {
		t.Errorf("%v of 6 attacks were counted", got)
	}

	// Lies about who a node is.
	r := s.rack(t)
	offer, err := seal.NewOffer(token("cn2"))
	if err != nil {
		t.Fatal(err)
	}
	renamed := []byte(strings.Replace(string(offer.Bytes()), "Y24y", "Y24z", 1)) // cn3
	unknown, err := seal.NewOffer("fwn1.Y243.t8x2k0.made-up")
	if err != nil {
		t.Fatal(err)
	}
	for i, bad := range [][]byte{renamed, unknown.Bytes(), nil, make([]byte, 5000)} {
		if err := r.say(uint64(100+i), wire.OpOpen, bad); err != nil {
			t.Fatal(err)
		}
		if op, why := r.answer(uint64(100 + i)); op != wire.OpClose {
			t.Errorf("lie %d is answered with %d: %s", i, op, why)
		}
	}
	id, v := r.begin(token("cn4"), "cn2") // the node's own lie, sealed
	if err := r.say(id, wire.OpData, v.messages[0]); err != nil {
		t.Fatal(err)
	}
	r.ends(id)

	// A million channels, and one that is opened twice.
	for i := range uint64(1_000_000) {
		if r.say(1000+i, wire.OpOpen, unknown.Bytes()) != nil {
			break
		}
		if i == 999_999 {
			t.Error("the daemon took a million channels")
		}
	}
	r = s.rack(t)
	id, _ = r.begin(token("cn3"), "cn3")
	_ = r.say(id, wire.OpOpen, unknown.Bytes())
	r.ws.SetReadDeadline(time.Now().Add(time.Minute))
	for err == nil {
		_, _, err = r.ws.ReadMessage()
	}
	for _, garbage := range [][]byte{{0xff}, {1, 99, 0}, {1, 2, 0xff, 0xff, 0xff, 0xff, 0x0f}, {1, 4, 0}} {
		r := s.rack(t)
		if err := r.ws.WriteMessage(websocket.BinaryMessage, garbage); err != nil {
			t.Fatal(err)
		}
		r.ws.SetReadDeadline(time.Now().Add(time.Minute))
		for _, _, err = r.ws.ReadMessage(); err == nil; _, _, err = r.ws.ReadMessage() {
		}
	}

	a := s.agent(t, oneSecret, "cn1", topology.Compute)
	if m, err := a.send(frames("cn1", topology.Compute, time.Now().Add(-2*time.Second).UnixMilli()),
		time.Minute); err != nil || m != (wire.Ack{Seq: 1}) {
		t.Errorf("an honest node afterwards: %v, %v", m, err)
	}
	if grown := s.status("VmRSS") - before; grown > 150<<20 {
		t.Errorf("the daemon grew by %d MB", grown>>20)
	}
}
