package socket

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// served starts a set and returns the server's ends of the connections that dial makes.
func served(t *testing.T, s Settings) (dial func() (*websocket.Conn, *Conn)) {
	set := NewSet(s)
	ends := make(chan *Conn, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := set.Upgrade(w, r)
		if err != nil {
			t.Error(err)
		}
		ends <- c
	}))
	t.Cleanup(server.Close)
	t.Cleanup(set.Close)
	return func() (*websocket.Conn, *Conn) {
		ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ws.Close() })
		return ws, <-ends
	}
}

func patient() Settings { return Settings{SilentAfter: time.Hour, PingEvery: time.Hour} }

// TestMessagesGoBothWays sends small and large ones, and a last word before the end.
func TestMessagesGoBothWays(t *testing.T) {
	dial := served(t, patient())
	ws, c := dial()
	for _, size := range []int{1, 100, readBuffer, 3 * keepBuffer} {
		msg := bytes.Repeat([]byte{7}, size)
		if err := ws.WriteMessage(websocket.BinaryMessage, msg); err != nil {
			t.Fatal(err)
		}
		got, err := c.Read()
		if err != nil || !bytes.Equal(got, msg) {
			t.Fatalf("%d bytes came as %d, %v", size, len(got), err)
		}
		if !c.Send(bytes.Clone(got)) {
			t.Fatal("the message was not queued")
		}
		if _, back, err := ws.ReadMessage(); err != nil || !bytes.Equal(back, msg) {
			t.Fatalf("%d bytes came back as %d, %v", size, len(back), err)
		}
	}
	if c.Lives() != 4 {
		t.Errorf("%d signs of life", c.Lives())
	}
	c.Send([]byte("the last word"))
	c.Finish()
	if _, word, err := ws.ReadMessage(); err != nil || string(word) != "the last word" {
		t.Errorf("%q, %v", word, err)
	}
	if _, _, err := ws.ReadMessage(); err == nil {
		t.Error("the connection goes on after its end")
	}
	if c.Send([]byte("more")) {
		t.Error("an ended connection takes a message")
	}
}

func TestBadMessagesAreNamed(t *testing.T) {
	dial := served(t, patient())
	ws, c := dial()
	c.SetLimit(10)
	if err := ws.WriteMessage(websocket.BinaryMessage, make([]byte, 11)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a message over the limit: %v", err)
	}
	ws, c = dial()
	if err := ws.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(); !errors.Is(err, ErrText) {
		t.Errorf("a text: %v", err)
	}
}

// TestLargeMessagesAreAskedFor: before most of a large message is read, and once; a refusal ends the connection.
func TestLargeMessagesAreAskedFor(t *testing.T) {
	dial := served(t, patient())
	ws, c := dial()
	asked := 0
	c.Large = func() error { asked++; return nil }
	for i, size := range []int{keepBuffer / 4, 10 * keepBuffer, keepBuffer / 4, 3 * keepBuffer} {
		if err := ws.WriteMessage(websocket.BinaryMessage, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Read(); err != nil || len(got) != size || asked != (i+1)/2 {
			t.Fatalf("%d bytes: %d, %v; asked %d times", size, len(got), err, asked)
		}
	}
	no := errors.New("no room")
	c.Large = func() error { return no }
	if err := ws.WriteMessage(websocket.BinaryMessage, make([]byte, 10*keepBuffer)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(); !errors.Is(err, no) {
		t.Error(err)
	}
}

// pipes is a listener whose connections a test hands in.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// TestLargeMessagesKeepUp: who trickles a large message is sent away after seconds, however steadily he does; one that
// comes as slowly as it may is read, and the connection is as patient afterwards as before.
func TestLargeMessagesKeepUp(t *testing.T) {
	const least = keepBuffer / 2 // of a large message
	for _, c := range []struct {
		name               string
		size, first, piece int // bytes in all, at once, and each second
		want               error
		takes              time.Duration
	}{
		{"nothing more", 8 * keepBuffer, keepBuffer, 0, ErrSlow, largeBegins + time.Second},
		{"a byte a second", 8 * keepBuffer, keepBuffer, 1, ErrSlow, largeBegins + time.Second},
		{"half of the rate", 10 * largeRate, 0, largeRate / 2, ErrSlow, 2*largeBegins + time.Second},
		{"the rate", 40 * largeRate, 0, largeRate, nil, 41 * time.Second},
		{"a small one, slowly", least - 1, 0, least / 100, nil, 101 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set, l, ends := NewSet(patient()), make(pipes), make(chan *Conn, 1)
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					end, err := set.Upgrade(w, r)
					if err != nil {
						t.Error(err)
					}
					ends <- end
				})}
				go server.Serve(l)
				client, other := net.Pipe()
				l <- other
				d := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return client, nil }}
				if _, _, err := d.Dial("ws://x", nil); err != nil {
					t.Fatal(err)
				}
				end := <-ends
				end.Large = func() error { return nil }
				go trickle(client, c.size, c.first, c.piece)
				begun := time.Now()
				msg, err := end.Read()
				took := time.Since(begun)
				if !errors.Is(err, c.want) || err == nil && len(msg) != c.size || took > c.takes {
					t.Errorf("after %s: %d bytes, %v", took, len(msg), err)
				}
				if c.want == nil {
					if msg, err := end.Read(); err != nil || len(msg) != 1 {
						t.Errorf("half an hour later: %d bytes, %v", len(msg), err)
					}
				}
				client.Close()
				end.Close()
				set.Close()
				close(l)
				time.Sleep(2 * time.Hour) // who trickles has ended
			})
		})
	}
}

// trickle sends a message, and half an hour later one of a byte.
func trickle(to io.Writer, size, first, piece int) {
	send := func(n int) bool { _, err := to.Write(make([]byte, n)); return err == nil }
	begin := func(size int) { // a masked frame whose key is 0
		head := binary.BigEndian.AppendUint64([]byte{0x82, 0x80 | 127}, uint64(size))
		_, _ = to.Write(append(head, 0, 0, 0, 0))
	}
	begin(size)
	for n := max(first, piece); size > 0; n = piece {
		n = min(n, size)
		if n == 0 || !send(n) {
			return
		}
		size -= n
		time.Sleep(time.Second)
	}
	time.Sleep(30 * time.Minute)
	to.Write([]byte{0x82, 0x80 | 1, 0, 0, 0, 0, 0})
}

// TestSlowPeersSlowNobody: many peers read nothing of what is sent to them.
func TestSlowPeersSlowNobody(t *testing.T) {
	dial := served(t, patient())
	for range 8 {
		_, c := dial()
		c.SetLimit(0)
		c.Send(make([]byte, 64<<20))
	}
	ws, c := dial()
	if !c.Send([]byte("past them")) {
		t.Fatal("the message was not queued")
	}
	if _, m, err := ws.ReadMessage(); err != nil || string(m) != "past them" {
		t.Errorf("%q, %v", m, err)
	}
}

// TestSilentPeersAreGone: nobody reads for the first one, so nothing answers; the second one's proof ends.
func TestSilentPeersAreGone(t *testing.T) {
	dial := served(t, Settings{SilentAfter: 2 * time.Second, PingEvery: time.Second})
	_, silent := dial()
	if _, err := silent.Read(); err == nil {
		t.Error("a silent peer sent something")
	}
	_, invalid := dial()
	invalid.SetSilent(time.Hour)
	invalid.SetValid(func() bool { return false })
	if _, err := invalid.Read(); err == nil {
		t.Error("a peer that may not stay sent something")
	}
}
