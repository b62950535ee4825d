package tcpproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/conform/drivertest"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/remap/driver/agent"
	"fairway/remap/node"
)

// service is a file service that says its name and then echoes.
func service(t *testing.T, name string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer c.Close()
				fmt.Fprintln(c, name)
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wait.Wait() })
	return l.Addr().String()
}

func start(t *testing.T, f topology.ForwarderID, addr string) *Proxy {
	t.Helper()
	r, err := Start(Options{Listen: "127.0.0.1:0", Forwarder: f, Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// passing counts the connections that are passed on now.
func (r *Proxy) passing() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pairs)
}

// client connects to a proxy and returns who answers.
func client(t *testing.T, r *Proxy) (net.Conn, *bufio.Reader, string) {
	t.Helper()
	c, err := net.Dial("tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	in := bufio.NewReader(c)
	name, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return c, in, strings.TrimSpace(name)
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		addrs := map[topology.ForwarderID]string{"fwd1": service(t, "fwd1"), "fwd2": service(t, "fwd2")}
		proxys, handlers := map[topology.NodeID]*Proxy{}, map[topology.NodeID]map[string]stream.OrderHandler{}
		var moves []remap.Move
		for i := range 12 {
			n := topology.NodeID(fmt.Sprintf("cn%d", i))
			proxys[n] = start(t, "fwd1", addrs["fwd1"])
			handlers[n] = node.Handlers(proxys[n], true)
			moves = append(moves, remap.Move{Node: n, From: "fwd1", To: "fwd2"})
		}
		agents := drivertest.NewAgents(handlers)
		addr := func(f topology.ForwarderID) (string, bool) { a, ok := addrs[f]; return a, ok }
		return drivertest.Subject{
			Driver: agent.New(agents, addr, driver.Fan{Parallel: 8, Tries: 2, Backoff: time.Millisecond,
				Timeout: 5 * time.Second}),
			Moves: moves,
			// Whom a client of the node is really answered by.
			At: func(t *testing.T) topology.Mapping {
				at := topology.Mapping{}
				for n, r := range proxys {
					c, _, name := client(t, r)
					c.Close()
					at[n] = topology.ForwarderID(name)
				}
				return at
			},
			Changes: func() (n int) {
				for _, r := range proxys {
					a, _ := r.Route(t.Context())
					n += int(a.Generation) - 1
				}
				return n
			},
			Break: agents.Break, Mend: agents.Mend, Hang: agents.Hang,
		}
	})
}

func TestAMoveDropsOldConnectionsAndServesNewOnes(t *testing.T) {
	a, b := service(t, "fwd1"), service(t, "fwd2")
	r := start(t, "fwd1", a)
	c, in, name := client(t, r)
	fmt.Fprintln(c, "hello")
	if line, err := in.ReadString('\n'); err != nil || line != "hello\n" || name != "fwd1" {
		t.Fatalf("%q from %s, %v", line, name, err)
	}
	if _, err := r.Move(t.Context(), wire.RemapOrder{Forwarder: "fwd9", Addr: "127.0.0.1:1"}); err == nil {
		t.Error("a move to a forwarder that does not answer succeeds")
	}
	if _, err := fmt.Fprintln(c, "still"); err != nil {
		t.Error(err)
	}
	if line, err := in.ReadString('\n'); err != nil || line != "still\n" {
		t.Errorf("after a refused move: %q, %v", line, err)
	}
	if got, err := r.Move(t.Context(), wire.RemapOrder{Forwarder: "fwd2", Addr: b}); err != nil ||
		got.Forwarder != "fwd2" || got.Generation != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := in.ReadString('\n'); err == nil {
		t.Error("the old connection lives on")
	}
	if _, _, name := client(t, r); name != "fwd2" {
		t.Errorf("a new connection is answered by %s", name)
	}
}

func TestOneSidesEndIsPassedOn(t *testing.T) {
	r := start(t, "fwd1", service(t, "fwd1"))
	c, in, _ := client(t, r)
	fmt.Fprint(c, "last words")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(in)
	if err != nil || string(rest) != "last words" {
		t.Errorf("%q, %v", rest, err)
	}
	for end := time.Now().Add(time.Minute); r.passing() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the connection is kept")
		}
	}
}

func TestCloseEndsWhatIsOpen(t *testing.T) {
	r := start(t, "fwd1", service(t, "fwd1"))
	_, in, _ := client(t, r)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := in.ReadByte(); err == nil {
		t.Error("a client is still connected")
	}
}
