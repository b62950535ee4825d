package tbf

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares argument lists, one a line, arguments between bars.
func golden(t *testing.T, name string, commands [][]string) {
	t.Helper()
	var b strings.Builder
	for _, c := range commands {
		b.WriteString(strings.Join(c, " | ") + "\n")
	}
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s: got\n%swant\n%s", name, b.String(), want)
	}
}

func rates(t *testing.T, s Server, shares map[string]float64) map[string]Rule {
	t.Helper()
	rules, err := s.Rates(shares)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func TestCommands(t *testing.T) {
	s := Server{RPCsPerSec: 4000, Partitions: 2}
	// Job 1000 has four nodes, 1001 one: size-fair.
	first := rates(t, s, map[string]float64{"1000": .8, "1001": .2, "idle": 0})
	golden(t, "start", append([][]string{s.Enable()}, s.Commands(nil, first)...))
	// 1001 ends; an array job and a job named by program and user come.
	second := rates(t, s, map[string]float64{"1000": .5, "1002_7": .3, "cp2k.psmp.20017": .2})
	golden(t, "change", s.Commands(first, second))
	golden(t, "stop", append(s.Commands(second, nil), s.Disable()))
	if c := s.Commands(second, second); len(c) != 0 {
		t.Errorf("nothing changed, and yet: %v", c)
	}
}

// A rule of ours that holds another job is begun anew: a change would leave its list as it is.
func TestANameOfAnotherJob(t *testing.T) {
	s := Server{RPCsPerSec: 100}
	golden(t, "another", s.Commands(map[string]Rule{"fw_7": {"8", 100}}, rates(t, s, map[string]float64{"7": 1})))
}

const listing = `ost.OSS.ost_io.nrs_tbf_rule=
regular_requests:
CPT 0:
fw_1000 {1000} 1600, ref 0
site {cp.*} 50, ref 3
default {*} 10000, ref 0
CPT 1:
fw_1000 {1000} 1600, ref 0
site {cp.*} 50, ref 0
default {*} 10000, ref 0
high_priority_requests:
CPT 0:
fw_9 {9} 1, ref 0
default {*} 10000, ref 0
`

func TestRulesAreReadBack(t *testing.T) {
	have, err := Rules(listing)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Rule{"fw_1000": {"1000", 1600}, "site": {"cp.*", 50}, "default": {"*", 10000}}
	if !maps.Equal(have, want) {
		t.Errorf("read %v, want %v", have, want)
	}
	// The site's own rules stay as they are.
	s := Server{RPCsPerSec: 2000}
	golden(t, "readback", s.Commands(have, rates(t, s, map[string]float64{"1000": .5, "1001": .5})))
	for _, bad := range []string{"fw_1 {1 5, ref 0", "fw_1 {1} x, ref 0",
		"fw_1 5", "fw_1 {1} -5, ref 1", "something else"} {
		if r, err := Rules("CPT 0:\n" + bad); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q gave %v, %v", bad, r, err)
		}
	}
}

func TestRates(t *testing.T) {
	s := Server{RPCsPerSec: 1e9, Partitions: 4}
	r := rates(t, s, map[string]float64{"1": 1e-12, "2": 1})
	if r["fw_1"].Rate != 1 || r["fw_2"].Rate != maxRate {
		t.Errorf("rates are %v, want 1 and the most Lustre takes", r)
	}
	for _, bad := range []string{"", "a b", "*", "a{b", "x\ny", "a,b", "ä"} {
		if r, err := s.Rates(map[string]float64{bad: 1}); err == nil {
			t.Errorf("job %q has rules %v", bad, r)
		}
	}
	if _, err := (Server{}).Rates(map[string]float64{"1": 1}); err == nil {
		t.Error("a server that does nothing is shared")
	}
	for name := range rates(t, s, map[string]float64{"12345678901234567890": 1, "1_2": 1, "a-b": 1, "a.b": 1}) {
		if len(name) > maxName {
			t.Errorf("rule name %q is longer than Lustre takes", name)
		}
	}
}

// Whatever a server prints: no panic, and what was read can be written about.
func FuzzRules(f *testing.F) {
	f.Add(listing)
	f.Fuzz(func(t *testing.T, text string) {
		have, err := Rules(text)
		if err != nil {
			return
		}
		for _, c := range (Server{RPCsPerSec: 1}).Commands(have, nil) {
			if len(c) != 3 {
				t.Fatalf("%q", c)
			}
		}
	})
}
