package stream

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

// link is a WebSocket to the daemon. Its writes and its reads have a goroutine each.
type link struct {
	*websocket.Conn
	url string
	// last is when something of the daemon last came; Unix nanoseconds.
	last atomic.Int64
}

func newLink(conn *websocket.Conn, url string) *link {
	conn.SetReadLimit(maxFromDaemon)
	l := &link{Conn: conn, url: url}
	conn.SetPongHandler(l.alive)
	return l
}

func (l *link) alive(string) error {
	l.last.Store(time.Now().UnixNano())
	return l.SetReadDeadline(time.Now().Add(pongWait))
}

func (l *link) send(b []byte) error {
	if err := l.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return l.WriteMessage(websocket.BinaryMessage, b)
}

func (l *link) read() ([]byte, error) {
	if err := l.alive(""); err != nil {
		return nil, err
	}
	kind, b, err := l.ReadMessage()
	if err != nil {
		return nil, fmt.Errorf("daemon %s: %w", l.url, err)
	}
	if kind != websocket.BinaryMessage {
		return nil, fmt.Errorf("daemon %s sent a text message: not a fairway daemon", l.url)
	}
	return b, nil
}

// ping asks only where nothing of the daemon has come lately.
func (l *link) ping() error {
	if time.Since(time.Unix(0, l.last.Load())) < pingPeriod {
		return nil
	}
	return l.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
}

// bye sends a close message, which distinguishes a stop from a crash.
func (l *link) bye() error {
	text := websocket.FormatCloseMessage(websocket.CloseGoingAway, "agent stops")
	return l.WriteControl(websocket.CloseMessage, text, time.Now().Add(time.Second))
}

// session is one connection. The writer owns the link's write side, sent and the buffers; the reader
// owns the read side, worked and rejected.
type session struct {
	c    *Client
	link *link
	sent uint64 // last sequence number written
	out  []byte
	msg  []byte
	acks chan uint64 // holds a token when the spool was acknowledged

	worked   bool
	rejected map[uint64]bool
}

// write sends Hello, then what is spooled, results of orders and pings, until ctx is done.
func (s *session) write(ctx context.Context) error {
	hello := wire.Hello{Node: s.c.Node, Role: s.c.Role, FirstSeq: s.sent + 1, Instance: s.c.Spool.Instance()}
	if err := s.send(hello); err != nil {
		return err
	}
	s.c.up()
	ping := time.NewTicker(pingPeriod)
	defer ping.Stop()
	for {
		if err := s.sendSpooled(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return s.link.bye()
		case <-s.c.Spool.More():
		case <-s.acks:
		case r := <-s.c.desk.results:
			if err := s.send(r); err != nil {
				return err
			}
		case <-ping.C:
			if err := s.link.ping(); err != nil {
				return err
			}
		}
	}
}

// sendSpooled sends what the spool holds, as far as the daemon keeps up.
func (s *session) sendSpooled(ctx context.Context) error {
	for ctx.Err() == nil && s.sent-min(s.sent, s.c.Spool.Acked()) < maxInFlight {
		seq, msg, ok := s.c.Spool.Next(s.sent, s.msg)
		s.msg = msg[:0]
		if !ok {
			return nil
		}
		if err := s.link.send(msg); err != nil {
			return err
		}
		s.sent = seq
	}
	return nil
}

func (s *session) send(m wire.Message) (err error) {
	if s.out, err = wire.Append(s.out[:0], m); err != nil {
		return err
	}
	return s.link.send(s.out)
}

// read takes acknowledgements, orders and refusals until the connection ends. Orders live as long
// as life, not as the connection that brought them: half a remap is worse than a late answer.
func (s *session) read(life context.Context) error {
	var d wire.Decoder
	for {
		b, err := s.link.read()
		if err != nil {
			return err
		}
		m, err := d.Decode(b)
		if err != nil {
			return fmt.Errorf("daemon %s: %w", s.c.URL, err)
		}
		switch m := m.(type) {
		case wire.Ack:
			s.worked = true
			s.ack(m.Seq)
		case wire.Order:
			s.c.desk.take(life, m)
		case wire.Reject:
			m.Text = topology.Clean(m.Text)
			acked := s.c.Spool.Acked()
			switch {
			case m.Seq == 0:
				return m
			case m.Seq > acked+maxInFlight:
				return fmt.Errorf("daemon %s refuses message %d, which was not sent: not a fairway daemon", s.c.URL,
					m.Seq)
			case m.Seq > acked && !s.rejected[m.Seq]:
				s.c.refused(m)
				s.rejected[m.Seq] = true
				s.ack(acked)
			}
		default:
			return fmt.Errorf("daemon %s sent a message of a kind that only agents send", s.c.URL)
		}
	}
}

// ack moves the spool on, past what was refused too.
func (s *session) ack(seq uint64) {
	for s.rejected[seq+1] {
		seq++
		delete(s.rejected, seq)
	}
	s.c.Spool.Ack(seq)
	select {
	case s.acks <- seq:
	default:
	}
}
