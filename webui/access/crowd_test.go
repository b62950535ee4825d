package access

import (
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"fairway/remap"
)

// TestConnectionsAreBounded: one address does not take the places of all, nor all those of the daemon's own user;
// who has gone gives his place back.
func TestConnectionsAreBounded(t *testing.T) {
	gate, err := NewGate(Config{Anonymous: remap.Viewer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := gate.Crowd(32, slog.New(slog.DiscardHandler))
	most := func(who func(i int) (string, bool)) (n int) {
		for c.places.Enter(who(n)) {
			n++
		}
		return n
	}
	one := func(int) (string, bool) { return "192.0.2.1", false }
	if n := most(one); n != 24 {
		t.Errorf("one address has %d connections, want 24", n)
	}
	if n := most(func(i int) (string, bool) { return fmt.Sprint("192.0.2.", i+2), false }); n != 6 {
		t.Errorf("others have %d more, want 6", n)
	}
	if n := most(func(int) (string, bool) { return "uid0", true }); n != 2 {
		t.Errorf("root has %d more, want 2", n)
	}
	for range 4 {
		c.places.Leave("192.0.2.1")
	}
	if n := most(one); n != 2 {
		t.Errorf("of 4 places that are free again one address has %d, want those 2 that are not kept", n)
	}
}

// TestClosedConnectionsGiveTheirPlace takes the only place of an address, by TCP and by the unix socket.
func TestClosedConnectionsGiveTheirPlace(t *testing.T) {
	gate, err := NewGate(Config{Anonymous: remap.Viewer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for network, addr := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		c := gate.Crowd(1, slog.New(slog.DiscardHandler))
		inner, err := net.Listen(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer inner.Close()
		l := c.Bound(inner)
		dial := func() net.Conn {
			conn, err := net.Dial(network, inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
		accepted := make(chan net.Conn)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- conn
			}
		}()
		dial()
		first := <-accepted
		if b, ok := first.(interface{ SetWriteBuffer(int) error }); !ok || b.SetWriteBuffer(1<<16) != nil {
			t.Errorf("%s: what the kernel keeps for a feed's reader is not bounded", network)
		}
		if n, err := dial().Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("%s: a second connection was let in", network)
		}
		if WithPeer(t.Context(), first).Value(peerKey{}) == nil && network == "unix" {
			t.Error("who is at the other end of the unix socket is not known")
		}
		first.Close()
		first.Close()
		dial()
		<-accepted
	}
}
