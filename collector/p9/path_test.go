package p9

import (
	"net"
	"testing"
)

// loopback is both ends of a TCP connection.
func loopback(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Skipf("skipped: no TCP on the loopback address: %v", err)
	}
	defer l.Close()
	near, err = net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// TestPathCountsSegments: the kernel counts what a TCP connection carries, and nothing of a pipe.
func TestPathCountsSegments(t *testing.T) {
	near, far := loopback(t)
	buf := make([]byte, 1000)
	for range 10 {
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			if _, err := way[0].Write(buf); err != nil {
				t.Fatal(err)
			}
			if _, err := way[1].Read(buf); err != nil {
				t.Fatal(err)
			}
		}
	}
	p, ok := (&Client{conn: near}).Path()
	if !ok || p.Sent < 10 || p.Received < 10 || p.Resent > p.Sent || p.Disordered > p.Received {
		t.Errorf("%+v, %v", p, ok)
	}
	near.Close()
	if p, ok := (&Client{conn: near}).Path(); ok {
		t.Errorf("a closed connection counts %+v", p)
	}
	pipe, other := net.Pipe()
	defer other.Close()
	defer pipe.Close()
	if p, ok := (&Client{conn: pipe}).Path(); ok {
		t.Errorf("a pipe counts %+v", p)
	}
}
