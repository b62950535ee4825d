package cluster

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"fairway/remap/journal"
)

// Every connection between daemons begins with a hello in both directions: each proves that it has the secret, and
// says where its journal ends, so that a daemon with another journal's history is refused before Raft hears of it.

const (
	helloLine    = "fairway-cluster 1 "
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
	Name string `json:"name"`
	Use  string `json:"use,omitempty"`
	// Nonce and MAC prove the secret: MAC is over both nonces.
	Nonce string       `json:"nonce,omitempty"`
	MAC   string       `json:"mac"`
	Head  journal.Head `json:"head"`
	At    time.Time    `json:"at,omitzero"` // by its clock
	// Founded says that its journal is the cluster's, Founder that it will be.
	Founded bool   `json:"founded,omitempty"`
	Founder bool   `json:"founder,omitempty"`
	Refused string `json:"refused,omitempty"`
}

// peers takes and makes the connections between daemons.
type peers struct {
	listener net.Listener
	client   *tls.Config // nil: clear text
	server   *tls.Config
	secret   []byte
	self     func() hello
	known    func(name string) bool
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

// welcome hears who has come and hands the connection on.
func (d *peers) welcome(c net.Conn) {
	if d.server != nil {
		c = tls.Server(c, d.server)
	}
	use, err := d.answer(c)
	if err != nil {
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

func (d *peers) mac(words ...string) string {
	h := hmac.New(sha256.New, d.secret)
	h.Write([]byte(strings.Join(words, "\n")))
	return hex.EncodeToString(h.Sum(nil))
}

func nonce() string { return rand.Text() }

// answer is the hello of the end that was called.
func (d *peers) answer(c net.Conn) (use string, err error) {
	if err := c.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return "", err
	}
	mine := nonce()
	if _, err := io.WriteString(c, helloLine+mine+"\n"); err != nil {
		return "", err
	}
	var h hello
	if err := readHello(c, &h); err != nil {
		return "", err
	}
	back := d.self()
	if !hmac.Equal([]byte(h.MAC), []byte(d.mac("call", mine, h.Nonce, h.Name, h.Use))) {
		back = hello{Name: back.Name, Refused: "the secrets differ (cluster.secret_file)"}
		err = errors.New(back.Refused)
	} else {
		back.MAC = d.mac("answer", h.Nonce, mine, back.Name)
		err = d.judge(&h)
		if err != nil {
			back.Refused = err.Error()
		}
	}
	if werr := writeHello(c, &back); err == nil {
		err = werr
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	return h.Use, err
}

// judge says why another daemon, which has proved the secret, is refused; nil where it is not.
func (d *peers) judge(h *hello) error {
	err := fmt.Errorf("%q is not in the list of daemons here", h.Name)
	if d.known(h.Name) {
		err = d.fits(h)
	}
	d.noted(h.Name, err)
	return err
}

// dial is the hello of the end that calls.
func (d *peers) dial(ctx context.Context, address, use string) (_ net.Conn, back hello, err error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, back, err
	}
	raw := c
	defer func() {
		if err != nil {
			raw.Close()
		}
	}()
	deadline := time.Now().Add(helloTimeout)
	if at, ok := ctx.Deadline(); ok && at.Before(deadline) {
		deadline = at
	}
	if err := c.SetDeadline(deadline); err != nil {
		return nil, back, err
	}
	if d.client != nil {
		conf := d.client.Clone()
		if host, _, err := net.SplitHostPort(address); err == nil && conf.ServerName == "" {
			conf.ServerName = host
		}
		c = tls.Client(c, conf)
	}
	line, err := readLine(c)
	if err != nil {
		return nil, back, fmt.Errorf("daemon at %s: %w", address, err)
	}
	theirs, ok := strings.CutPrefix(line, helloLine)
	if !ok {
		return nil, back, fmt.Errorf("daemon at %s: %.40q is not a fairway daemon's hello", address, line)
	}
	h := d.self()
	h.Use, h.Nonce = use, nonce()
	h.MAC = d.mac("call", theirs, h.Nonce, h.Name, h.Use)
	if err := writeHello(c, &h); err != nil {
		return nil, back, err
	}
	if err := readHello(c, &back); err != nil {
		return nil, back, fmt.Errorf("daemon at %s: %w", address, err)
	}
	switch {
	case back.Refused != "" && d.known(back.Name):
		err = fmt.Errorf("%s refuses this daemon: %s", back.Name, back.Refused)
		d.noted(back.Name, err)
	case !hmac.Equal([]byte(back.MAC), []byte(d.mac("answer", h.Nonce, theirs, back.Name))):
		err = errors.New("the secrets differ (cluster.secret_file)")
	default:
		err = d.judge(&back)
	}
	if err != nil {
		return nil, back, fmt.Errorf("daemon at %s: %w", address, err)
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
