package gateways

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/sitefiles"
)

func newCES(t *testing.T) *Site {
	t.Helper()
	s, err := New(GPFS, 5, t.TempDir(), false, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a program on gw1 and returns what it printed, or its error.
func (s *Site) run(line string) string {
	a := s.Tool("gw1", strings.Fields(line))
	if a.Hang {
		return "hangs"
	}
	return a.Out + a.Err
}

// at is which gateway has each address, as the kernels say it.
func (s *Site) at() (out []string) {
	for _, a := range s.model.ces.addresses {
		name := "-"
		if a.at != nil {
			name = a.at.Name
		}
		out = append(out, name)
	}
	return out
}

// TestCESKeepsItsRules: an address moves by hand under every policy, stays until something happens to a node, and then
// goes where the policy has it; a suspended node takes none.
func TestCESKeepsItsRules(t *testing.T) {
	s := newCES(t)
	for _, c := range []struct{ line, says, at string }{
		{"mmces address list", "10.2.3.2         gw2.model", "gw1 gw2 gw3 gw4"},
		{"mmlscluster --ces", "Address distribution policy:          even-coverage", "gw1 gw2 gw3 gw4"},
		{"mmces address move --ces-ip 10.2.3.2 --ces-node gw3.model", "", "gw1 gw3 gw3 gw4"},
		{"mmces node suspend -N gw4.model", "", "gw1 gw3 gw3 gw2"}, // gw2 had none
		{"mmces node list", "4             gw4.model                 Suspended", "gw1 gw3 gw3 gw2"},
		{"mmces address move --ces-ip 10.2.3.1 --ces-node gw4.model", "does not take addresses", "gw1 gw3 gw3 gw2"},
		{"mmces node resume -N gw4.model", "", "gw1 gw3 gw4 gw2"},
		{"mmces address policy none", "", "gw1 gw3 gw4 gw2"},
		{"mmces address move --ces-ip 10.2.3.4 --ces-node gw1.model", "", "gw1 gw3 gw4 gw1"},
		{"mmces node suspend -N gw3.model", "", "gw1 - gw4 gw1"},
		{"mmces node resume -N gw3.model", "", "gw1 - gw4 gw1"},
		{"mmces address list", "10.2.3.2         unassigned", "gw1 - gw4 gw1"},
		{"mmces address move --ces-ip 10.2.3.2 --ces-node gw9.model", "gw9.model is not a CES node", "gw1 - gw4 gw1"},
		{"mmces address move --ces-ip 10.9.9.9 --ces-node gw1.model", "10.9.9.9 is not a CES address", "gw1 - gw4 gw1"},
		{"mmces address policy fair", `no policy "fair"`, "gw1 - gw4 gw1"},
		{"mmces what", "usage", "gw1 - gw4 gw1"},
		{"mmdiag --waiters", "=== mmdiag: waiters ===", "gw1 - gw4 gw1"},
		{"mmpmon", "_fs_io_s_ _n_ 10.2.0.1 _nn_ gw1.model _rc_ 0 ", "gw1 - gw4 gw1"},
	} {
		got := s.run(c.line)
		if at := strings.Join(s.at(), " "); !strings.Contains(got, c.says) || c.says == "" && got != "" || at != c.at {
			t.Errorf("%s: %q, want %q; the addresses are at %s, want %s", c.line, got, c.says, at, c.at)
		}
	}
}

// An address takes its clients along: they wait for the grace, and then ask its new gateway; their mounts go on.
func TestAnAddressTakesItsClients(t *testing.T) {
	s := newCES(t)
	m := s.model
	cn2, gw2, gw3 := m.client("cn2"), m.Gateways[1], m.Gateways[2]
	m.Run(10 * time.Second)
	before, mount := gw2.bytesOf["cn2"], cn2.mount[Read].n
	if before == 0 || gw3.bytesOf["cn2"] != 0 || mount == 0 {
		t.Fatalf("cn2 moved %d bytes over gw2 and %d over gw3", before, gw3.bytesOf["cn2"])
	}
	s.run("mmces address move --ces-ip 10.2.3.2 --ces-node gw3.model")
	m.Run(10*time.Second + grace - time.Millisecond)
	if n := gw3.bytesOf["cn2"]; n != 0 {
		t.Errorf("%d bytes crossed gw3 within the grace", n)
	}
	under := gw2.bytesOf["cn2"]
	m.Run(20 * time.Second)
	if gw2.bytesOf["cn2"] != under || gw3.bytesOf["cn2"] < before/4 || cn2.mount[Read].n <= mount {
		t.Errorf("after the move %d bytes over gw2, %d over gw3, %d reads of the mount", gw2.bytesOf["cn2"]-under,
			gw3.bytesOf["cn2"], cn2.mount[Read].n)
	}
	for i, g := range m.Gateways {
		want := []string{fmt.Sprintf("10.2.3.%d", i+1)}
		if g == gw2 {
			want = nil
		} else if g == gw3 {
			want = []string{"10.2.3.2", "10.2.3.3"}
		}
		if got := m.floating(g); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", g.Name, got, want)
		}
	}
}

// What a trick makes of mmces changes no address, and ends with it.
func TestTricksOfMmces(t *testing.T) {
	s := newCES(t)
	const move = "mmces address move --ces-ip 10.2.3.2 --ces-node gw3.model"
	was := s.at()
	for mode, says := range map[string]string{sitefiles.TrickBusy: "locked", sitefiles.TrickHang: "hangs",
		sitefiles.TrickIgnore: "", sitefiles.TrickLie: ""} {
		if err := s.Trick(sitefiles.Trick{Mode: mode, Command: "address move"}); err != nil {
			t.Fatal(err)
		}
		if got := s.run(move); !strings.Contains(got, says) || says == "" && got != "" {
			t.Errorf("%s: %q", mode, got)
		}
		lists := strings.Contains(s.run("mmces address list"), "10.2.3.2         gw3.model")
		if !slices.Equal(s.at(), was) || lists != (mode == sitefiles.TrickLie) {
			t.Errorf("%s: the addresses are at %v; gw3 is listed: %v", mode, s.at(), lists)
		}
		if err := s.Trick(sitefiles.Trick{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Trick(sitefiles.Trick{Mode: "sleep"}); err == nil {
		t.Error("a trick that does not exist is taken")
	}
	if got := s.run(move); got != "" || s.at()[1] != "gw3" {
		t.Errorf("honest again: %q, at %v", got, s.at())
	}
}
