package ces

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

const head = "Address        Node     Ces Group   Attributes\n-------------- -------- ----------- ------------\n"

// cluster answers as mmces and mmlscluster do.
type cluster struct {
	at     string // of 10.2.3.1
	policy string
	lies   bool
	fails  string
	ran    []string
}

func (c *cluster) run(_ context.Context, argv ...string) ([]byte, error) {
	line := strings.Join(argv, " ")
	c.ran = append(c.ran, line)
	switch {
	case c.fails != "" && strings.HasPrefix(line, c.fails):
		return nil, errors.New(c.fails + ": exit status 1: locked")
	case line == "mmces address list":
		return []byte(head + "10.2.3.1       " + c.at + "   none        none\n10.2.3.9  unassigned none none\n"), nil
	case line == "mmlscluster --ces":
		return []byte("  Log level:                            0\n" + c.policy), nil
	case strings.HasPrefix(line, "mmces address move --ces-ip 10.2.3.1 --ces-node "):
		if !c.lies {
			c.at = argv[6]
		}
		return nil, nil
	}
	return nil, errors.New("usage: " + line)
}

func newMover(c *cluster) *Mover {
	return &Mover{Nodes: map[topology.ForwarderID]string{"gw1": "ces1.site", "gw2": "ces2.site"}, Run: c.run}
}

// TestMove: an address is moved once, and only the table afterwards says that it was.
func TestMove(t *testing.T) {
	c := &cluster{at: "ces1", policy: "  Address distribution policy:          even-coverage\n"}
	m := newMover(c)
	ask := func(kind string, body any) (a wire.AddressesAnswer, err error) {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := m.Handlers()[kind](t.Context(), wire.Order{ID: "o", Kind: kind, Body: b})
		if err == nil {
			err = json.Unmarshal(answer, &a)
		}
		return a, err
	}
	a, err := ask(wire.OrderAddresses, struct{}{})
	if err != nil || a.Policy != "even-coverage" || len(a.At) != 2 || a.At["10.2.3.1"] != "gw1" ||
		a.At["10.2.3.9"] != "" {
		t.Errorf("%+v, %v", a, err)
	}
	order := wire.MoveAddressOrder{Address: "10.2.3.1", Forwarder: "gw2"}
	for range 2 {
		if a, err = ask(wire.OrderMoveAddress, order); err != nil || a.At["10.2.3.1"] != "gw2" {
			t.Errorf("%+v, %v", a, err)
		}
	}
	moves := 0
	for _, line := range c.ran {
		if strings.Contains(line, " move ") {
			moves++
			if line != "mmces address move --ces-ip 10.2.3.1 --ces-node ces2.site" {
				t.Error(line)
			}
		}
	}
	if moves != 1 {
		t.Errorf("%d moves: %q", moves, c.ran)
	}
	c.lies, order.Forwarder = true, "gw1"
	for _, bad := range []struct {
		change func()
		order  wire.MoveAddressOrder
		want   string
	}{{func() {}, order, `reported that 10.2.3.1 has moved to gw1, and lists it at "gw2"`},
		{func() { c.fails = "mmces address move" }, order, "locked"},
		{func() { c.fails = "mmces address list" }, order, "locked"},
		{func() { c.fails = "" }, wire.MoveAddressOrder{Address: "10.2.3.1", Forwarder: "gw7"}, "no name of gw7"},
		{func() {}, wire.MoveAddressOrder{Address: "-x", Forwarder: "gw1"}, `"-x" is not an address of CES`}} {
		bad.change()
		if _, err := ask(wire.OrderMoveAddress, bad.order); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %q", err, bad.want)
		}
	}
}

// TestLooksAreShared: those who ask within 2 s have one look's answer; after a move the cluster is asked again.
func TestLooksAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{at: "ces1", policy: "Address distribution policy: none\n"}
		orders := newMover(c).Handlers()
		look := func(commands int, at topology.ForwarderID) {
			t.Helper()
			c.ran = nil
			b, err := orders[wire.OrderAddresses](t.Context(), wire.Order{})
			var a wire.AddressesAnswer
			if err == nil {
				err = json.Unmarshal(b, &a)
			}
			if err != nil || a.At["10.2.3.1"] != at || len(c.ran) != commands {
				t.Errorf("%+v, %v, ran %q, want %s after %d", a, err, c.ran, at, commands)
			}
		}
		look(3, "gw1")
		c.at = "ces2" // by another hand
		look(0, "gw1")
		time.Sleep(lookedFor)
		look(3, "gw2")
		b := []byte(`{"address":"10.2.3.1","forwarder":"gw1"}`)
		if _, err := orders[wire.OrderMoveAddress](t.Context(), wire.Order{Body: b}); err != nil {
			t.Fatal(err)
		}
		look(3, "gw1")
	})
}

// What is not such a table, or does not name the policy, is an error and no table.
func TestLookNamesWhatIsWrong(t *testing.T) {
	c := &cluster{at: "other.site"}
	m := newMover(c)
	if a, err := m.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "Address distribution policy") ||
		a.At["10.2.3.1"] != "other.site" {
		t.Errorf("%+v, %v", a, err)
	}
	c.at = "ces1 none none\n10.2.3.1 ces2"
	if _, err := m.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "10.2.3.1 is listed twice") {
		t.Error(err)
	}
	m.Run = func(context.Context, ...string) ([]byte, error) { return []byte(head), nil }
	if _, err := m.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "no address in") {
		t.Error(err)
	}
}
