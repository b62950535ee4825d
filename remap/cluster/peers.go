package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"fairway/remap/journal"
)

// Every connection between daemons is TLS in which both ends prove their names, beyond this host and on it. It begins
// with a hello in both directions: each says where its journal ends, so that a daemon with another journal's history is
// refused before Raft hears of it.

const (
	maxHello     = 4 << 10
	helloTimeout = 5 * time.Second
)

// What a connection is for.
const (
	forRaft = "raft"
	forHTTP = "http"
)

// hello is what each end says of itself.
type hello struct {
	Name string       `json:"name"`
	Use  string       `json:"use,omitempty"`
	Head journal.Head `json:"head"`
	At   time.Time    `json:"at,omitzero"` // by its clock
	// Founded says that its journal is the cluster's, Founder that it will be.
	Founded bool   `json:"founded,omitempty"`
	Founder bool   `json:"founder,omitempty"`
	Refused string `json:"refused,omitempty"`
}

// peers takes and makes the connections between daemons.
type peers struct {
	listener net.Listener
	log      *slog.Logger
	identity *identity
	self     func() hello
	known    func(name string) bool
	nameAt   func(address string) string // the daemon that is listed there
	// fits says why another daemon's journal does not fit this one; nil where it does.
	fits  func(h *hello) error
	noted func(name string, err error)

	raft, http chan net.Conn
	done       chan struct{}
	once       sync.Once
	wait       sync.WaitGroup
}

// Accept implements raft.StreamLayer.
func (d *peers) Accept() (net.Conn, error) { return d.take(d.raft) }

func (d *peers) take(from chan net.Conn) (net.Conn, error) {
	select {
	case c := <-from:
		return c, nil
	case <-d.done:
		return nil, net.ErrClosed
	}
}

// Close implements raft.StreamLayer.
func (d *peers) Close() (err error) {
	d.once.Do(func() {
		close(d.done)
		err = d.listener.Close()
		d.wait.Wait()
	})
	return err
}

// Addr implements raft.StreamLayer.
func (d *peers) Addr() net.Addr { return d.listener.Addr() }

// Dial implements raft.StreamLayer.
func (d *peers) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, _, err := d.dial(ctx, string(address), forRaft)
	return c, err
}

// httpListener takes HTTP requests from the other daemons.
type httpListener struct{ *peers }

func (l httpListener) Accept() (net.Conn, error) { return l.take(l.http) }
func (l httpListener) Close() error              { return nil } // the listener is closed by its owner

// run accepts until the listener is closed.
func (d *peers) run() {
	for {
		c, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-time.After(50 * time.Millisecond): // out of descriptors: tried again
				continue
			case <-d.done:
				return
			}
		}
		d.wait.Go(func() { d.welcome(c) })
	}
}

// welcome hears who has come and hands the connection on. Of one that proves nothing no word is shown: it is logged.
func (d *peers) welcome(raw net.Conn) {
	c := d.identity.server(raw)
	use, err := d.answer(c)
	if err != nil {
		d.log.Warn("a connection to the cluster's port was refused", "from", raw.RemoteAddr().String(), "err", err)
		c.Close()
		return
	}
	to := d.raft
	if use == forHTTP {
		to = d.http
	}
	select {
	case to <- c:
	case <-d.done:
		c.Close()
	}
}

// answer is the hello of the end that was called.
func (d *peers) answer(c *tls.Conn) (use string, err error) {
	if err := c.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return "", err
	}
	if err := c.Handshake(); err != nil {
		return "", err
	}
	var h hello
	if err := readHello(c, &h); err != nil {
		return "", err
	}
	back := d.self()
	if err = d.judge(c, &h); err != nil {
		back.Refused = err.Error()
	}
	if werr := writeHello(c, &back); err == nil {
		err = werr
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	return h.Use, err
}

// judge says why another daemon, which has proved its name, is refused; nil where it is not.
func (d *peers) judge(c *tls.Conn, h *hello) error {
	name, err := nameOf(c)
	switch {
	case err != nil:
		return err
	case name != h.Name:
		return fmt.Errorf("%q calls itself %q", name, h.Name)
	case !d.known(name):
		return fmt.Errorf("%q is not in the list of daemons here", name)
	}
	err = d.fits(h)
	d.noted(name, err)
	return err
}

// dial is the hello of the end that calls.
func (d *peers) dial(ctx context.Context, address, use string) (_ net.Conn, back hello, err error) {
	name := d.nameAt(address)
	failed := func(err error) error { return fmt.Errorf("daemon %s at %s: %w", name, address, err) }
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, back, err
	}
	defer func() {
		if err != nil {
			raw.Close()
		}
	}()
	deadline := time.Now().Add(helloTimeout)
	if at, ok := ctx.Deadline(); ok && at.Before(deadline) {
		deadline = at
	}
	if err := raw.SetDeadline(deadline); err != nil {
		return nil, back, err
	}
	c := d.identity.client(raw, name)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, back, failed(fmt.Errorf("%w (cluster.secret_file must be the same everywhere, and all daemons of "+
			"one version)", err))
	}
	h := d.self()
	h.Use = use
	if err := writeHello(c, &h); err != nil {
		return nil, back, failed(err)
	}
	if err := readHello(c, &back); err != nil {
		return nil, back, failed(err)
	}
	if back.Refused != "" {
		err = fmt.Errorf("%s refuses this daemon: %s", name, back.Refused)
		d.noted(name, err)
	} else {
		err = d.judge(c, &back)
	}
	if err != nil {
		return nil, back, failed(err)
	}
	return c, back, c.SetDeadline(time.Time{})
}

func writeHello(c net.Conn, h *hello) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = c.Write(append(b, '\n'))
	return err
}

func readHello(c net.Conn, h *hello) error {
	line, err := readLine(c)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(line), h)
}

// readLine reads no byte behind the line: what follows is another protocol's.
func readLine(c net.Conn) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < maxHello {
		if _, err := io.ReadFull(c, one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
	return "", errors.New("a hello without an end")
}
