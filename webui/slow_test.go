package webui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"fairway/remap"
	"fairway/remap/journal"
	"fairway/webui/access"
	"fairway/webui/api"
)

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

// TestSlowPeersAreNotWaitedForForEver sends a body that never ends and leaves an answer unread: both
// requests end by themselves.
func TestSlowPeersAreNotWaitedForForEver(t *testing.T) {
	for _, c := range []struct {
		name, request string
		handle        func(http.ResponseWriter, *http.Request, access.Caller) error
	}{
		{"a body that trickles",
			"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nIdempotency-Key: k\r\n\r\n{",
			func(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
				var v struct{}
				return api.ReadJSON(w, r, &v)
			}},
		{"a body that nobody wants",
			"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nIdempotency-Key: k\r\n\r\n{",
			func(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
				return api.WriteJSON(w, 1)
			}},
		{"an answer that nobody reads",
			"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nIdempotency-Key: k\r\n\r\n",
			func(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
				_, err := w.Write(bytes.Repeat([]byte("x"), 1<<20))
				return err
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate, err := access.NewGate(access.Config{Anonymous: remap.Viewer}, []string{"localhost"})
				if err != nil {
					t.Fatal(err)
				}
				log := slog.New(slog.DiscardHandler)
				s := &Server{log: log, gate: gate, site: access.Site{Log: log, Answered: newServerStats().answered,
					Routes: []access.Route{{Method: http.MethodPost, Path: "/x", Need: remap.Viewer, On: access.TCP,
						Handle: c.handle}}}}
				gone := make(chan struct{})
				server, l := s.HTTP(access.TCP), make(pipes)
				server.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateClosed {
						close(gone)
					}
				}
				go server.Serve(l)
				client, other := net.Pipe()
				l <- other
				if _, err := io.WriteString(client, c.request); err != nil {
					t.Fatal(err)
				}
				select {
				case <-gone:
				case <-time.After(time.Hour):
					t.Error("after an hour the request still holds its connection")
				}
				client.Close()
				<-gone
				close(l)
			})
		})
	}
}

// TestTheAuditEndsWithItsAsker goes away while the journal is read.
func TestTheAuditEndsWithItsAsker(t *testing.T) {
	read := 0
	all := records(func(journal.Wanted) iter.Seq2[*journal.Record, error] {
		return func(yield func(*journal.Record, error) bool) {
			for range 1000 {
				if read++; !yield(&journal.Record{}, nil) {
					return
				}
			}
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	err := all.visit(ctx, journal.Wanted{}, func(*journal.Record) bool {
		if read == 3 {
			leave()
		}
		return true
	})
	if !errors.Is(err, context.Canceled) || read != 4 {
		t.Errorf("%d records were read after the asker had gone at the third: %v", read, err)
	}
}
