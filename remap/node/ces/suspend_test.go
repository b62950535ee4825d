package ces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

// nodes is a cluster of four protocol nodes, of which ces1 is this one.
type nodes struct {
	at    string // of 10.2.3.1
	flags [4]string
	trick string // of suspend and resume: fails, ignores, moves
	ran   []string
}

func (n *nodes) run(_ context.Context, argv ...string) ([]byte, error) {
	line := strings.Join(argv, " ")
	n.ran = append(n.ran, line)
	verb, is := strings.CutPrefix(line, "mmces node ")
	switch {
	case line == "mmces address list":
		return []byte(head + "10.2.3.1       " + n.at + "   none        none\n"), nil
	case verb == "list":
		text := "Node Number   Node Name   Node Groups   Node Flags\n" +
			"------------- ----------- ------------- ----------\n"
		for i, f := range n.flags {
			text += fmt.Sprintf("%-13d ces%-8d %-13s %s\n", i+1, i+1, []string{"", "g1"}[i%2], f)
		}
		return []byte(text), nil
	case is && (verb == "suspend -N ces1.site" || verb == "resume -N ces1.site"):
		switch n.trick {
		case "fails":
			return nil, errors.New("mmces: exit status 1: locked")
		case "ignores":
			return nil, nil
		case "moves":
			n.at = "ces4"
		}
		n.flags[0] = "none"
		if strings.HasPrefix(verb, "suspend") {
			n.flags[0] = "Suspended"
		}
		if n.trick == "otherword" && n.flags[0] != "none" {
			n.flags[0] = "Off"
		}
		return nil, nil
	}
	return nil, errors.New("usage: " + line)
}

func (n *nodes) changes() (out []string) {
	for _, line := range n.ran {
		if !strings.HasSuffix(line, " list") {
			out = append(out, line)
		}
	}
	return out
}

// TestSuspend: a node without an address is suspended and taken back by its own agent, once; what another one has
// suspended is left so; and where others are missing, or addresses are not well, nothing is suspended.
func TestSuspend(t *testing.T) {
	n := &nodes{at: "ces2", flags: [4]string{"none", "none", "none", "none"}}
	m := &Mover{Nodes: map[topology.ForwarderID]string{"gw1": "ces1.site", "gw2": "ces2.site", "gw3": "ces3.site",
		"gw4": "ces4.site"}, Run: n.run, Journal: filepath.Join(t.TempDir(), "suspended.json")}
	order := func(on bool) error {
		b, err := json.Marshal(wire.SuspendOrder{Node: "gw1", Forwarder: "gw1", Plan: "P-1", Suspended: on})
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Handlers()[wire.OrderSuspend](t.Context(), wire.Order{ID: "o", Body: b})
		return err
	}
	noted := func() bool { _, err := os.Stat(m.Journal); return err == nil }
	for range 2 {
		if err := order(true); err != nil || !noted() || n.flags[0] != "Suspended" {
			t.Errorf("%v, noted %v, %v", err, noted(), n.flags)
		}
	}
	for range 2 {
		if err := order(false); err != nil || noted() || n.flags[0] != "none" {
			t.Errorf("%v, noted %v, %v", err, noted(), n.flags)
		}
	}
	if got := strings.Join(n.changes(), "; "); got !=
		"mmces node suspend -N ces1.site; mmces node resume -N ces1.site" {
		t.Error(got)
	}
	for name, c := range map[string]struct {
		at, trick string
		flags     string
		held, on  bool
		want      string // in the error; "": none
		noted     bool   // afterwards
	}{
		"by another one": {"ces2", "", "Suspended none none none", false, true, "not by fairway", false},
		"of another one, back": {"ces2", "", "Failed,Suspended none none none", false, false,
			"not by fairway", false},
		"ended by another one": {"ces2", "", "none none none none", true, false, "", false},
		"another word for it":  {"ces2", "otherword", "none none none none", false, true, "", true},
		"another word, back":   {"ces2", "otherword", "Off none none none", true, false, "", false},
		"it has an address":    {"ces1", "", "none none none none", false, true, "it has 10.2.3.1", false},
		"too few others": {"ces2", "", "none none Suspended Failed", false, true,
			"1 other nodes take", false},
		"an address is not well": {"ces4", "", "none none none Failed", false, true,
			`flags "Failed": mend`, false},
		"an address is nowhere": {"unassigned", "", "none none none none", false, true,
			`10.2.3.1 is at ""`, false},
		"locked": {"ces2", "fails", "none none none none", false, true, "locked", false},
		"nothing happens": {"ces2", "ignores", "none none none none", false, true,
			"reported success, and", false},
		"nothing happens, back": {"ces2", "ignores", "Suspended none none none", true, false,
			"reported success", true},
		"the system moves addresses": {"ces2", "moves", "none none none none", false, true,
			"moved 10.2.3.1 from gw2", true},
	} {
		t.Run(name, func(t *testing.T) {
			n.at, n.trick, n.ran = c.at, c.trick, nil
			copy(n.flags[:], strings.Fields(c.flags))
			plan := ""
			if c.held {
				plan = "P-1"
			}
			if err := m.hold(plan); err != nil {
				t.Fatal(err)
			}
			err := order(c.on)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if noted() != c.noted {
				t.Errorf("noted: %v", noted())
			}
			if n.trick == "" && len(n.changes()) > 0 {
				t.Errorf("ran %q", n.changes())
			}
		})
	}
	if err := os.WriteFile(m.Journal, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := order(false); err == nil || !strings.Contains(err.Error(), "for which plan") {
		t.Error(err)
	}
}

// What mmces prints of nodes, whatever it is, gives no node two flags and no empty name.
func FuzzFlags(f *testing.F) {
	f.Add("Node Number   Node Name   Node Groups   Node Flags\n1 ces1 none\n2 ces2 g1,g2 Suspended,Failed\n")
	f.Add("1 a none\n1 a none\n")
	f.Fuzz(func(t *testing.T, text string) {
		m := &Mover{Nodes: map[topology.ForwarderID]string{"gw1": "ces1.site"},
			Run: func(context.Context, ...string) ([]byte, error) { return []byte(text), nil }}
		flags, err := m.flags(t.Context())
		if (err == nil) != (len(flags) > 0) {
			t.Errorf("%v, %v", flags, err)
		}
		for n, of := range flags {
			if n == "" || strings.ContainsAny(of, " \n\t") {
				t.Errorf("%q %q", n, of)
			}
		}
	})
}
