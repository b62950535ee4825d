package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// TestConnectionsOfNeighboursAreBounded: idle connections from one address take three quarters of the places, another
// one is answered meanwhile; no connection stays open after an answer.
func TestConnectionsOfNeighboursAreBounded(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close()
	c := Config{Node: "rack1", Gather: Gather{Listen: at, MaxNodes: 8}, Daemon: Daemon{URL: "ws://127.0.0.1:1"}}
	_, stop, err := startGatherer(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	dial := func(from string) net.Conn {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := d.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	closed := make(chan error, 20)
	for range 20 {
		conn := dial("127.0.6.1")
		go func() {
			_, err := conn.Read(make([]byte, 1))
			closed <- err
		}()
	}
	for i := range 20 - 12 { // of 16 places
		if err := <-closed; !errors.Is(err, io.EOF) && !strings.Contains(fmt.Sprint(err), "reset") {
			t.Errorf("connection %d beyond the bound: %v", i, err)
		}
	}
	conn := dial("127.0.6.2")
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: rack1\r\n\r\n")
	// Read to the connection's end; where it stays open, the deadline says so.
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	text, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 404") {
		t.Errorf("another address is answered %q, %v", text, err)
	}
	if n := len(closed); n > 0 {
		t.Errorf("%d further connections of the first address were closed", n)
	}
}
