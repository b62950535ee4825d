package console_test

import (
	"errors"
	"strings"
	"testing"

	"fairway/console"
)

func remapped(t *testing.T, wishes map[string][]string) *console.Keys {
	t.Helper()
	k, err := console.Remap(wishes)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// withKeys is an operator in front of a console that answers to other keys.
func withKeys(t *testing.T, wishes map[string][]string) *script {
	s := newScript(t, 8, 120, 36)
	s.model.(*console.Model).Use(remapped(t, wishes))
	return s
}

func TestWhatCannotBeRemapped(t *testing.T) {
	for _, c := range []struct {
		wishes map[string][]string
		action string
		says   string
	}{
		{map[string][]string{"frobnicate": {"F"}}, "frobnicate", "no such action"},
		{map[string][]string{"next": {"blah"}}, "next", `"blah" is not a key`},
		{map[string][]string{"next": {""}}, "next", `"" is not a key`},
		{map[string][]string{"next": {"ctrl+i"}}, "next", `"ctrl+i" is not a key`},
		{map[string][]string{"next": {"ctrl+c"}}, "next", "ctrl+c always quits"},
		{map[string][]string{"next": {"m"}}, "next", `"m" is bound twice: it also means metric`},
		{map[string][]string{"why": {"p"}}, "why",
			"\"p\" is bound twice: it also means propose (propose another forwarder for the selected " +
				"client, or for all of a forwarder) on the page forwarder"},
		{map[string][]string{"next": {"N"}, "copy": {"N"}}, "next", `"N" is bound twice: it also means copy`},
		{map[string][]string{"propose": {"{"}}, "propose", `"{" is bound twice: it also means minute-back`},
		{map[string][]string{"faster": {"?"}}, "faster", `"?" is bound twice: it also means help`},
		{map[string][]string{"approve": {"a"}}, "approve", `"a" is not a capital letter; approve changes the machine`},
		{map[string][]string{"canary": {"C", "c"}}, "canary", `"c" is not a capital letter`},
		{map[string][]string{"roll-back": {"f5"}}, "roll-back", `"f5" is not a capital letter`},
		{map[string][]string{"approve": {"enter"}}, "approve", `"enter" is not a capital letter`},
	} {
		_, err := console.Remap(c.wishes)
		var bad *console.KeyError
		if !errors.As(err, &bad) || bad.Action != c.action || !strings.Contains(bad.Why, c.says) {
			t.Errorf("%v: %v, want %s: %s", c.wishes, err, c.action, c.says)
		}
	}
	if _, err := console.Remap(map[string][]string{"next": {"m"}, "approve": {"v"}}); strings.Count(err.Error(),
		"\n") != 1 {
		t.Errorf("not every fault is named: %v", err)
	}
}

// What `fairway keys` prints can be used as it is, and changes nothing.
func TestTheDefaultKeysAreAWish(t *testing.T) {
	wishes := map[string][]string{}
	for _, r := range console.DefaultKeys().Rows() {
		wishes[r.Action] = r.Keys
	}
	again := remapped(t, wishes)
	for i, r := range console.DefaultKeys().Rows() {
		if got := again.Rows()[i]; got.Action != r.Action || strings.Join(got.Keys, " ") != strings.Join(r.Keys, " ") {
			t.Errorf("%s has %q, had %q", r.Action, got.Keys, r.Keys)
		}
	}
}

func TestRemappedKeysActAndAreShown(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := withKeys(t, map[string][]string{"canary": {"K"}, "approve": {"Y"}, "panel": {"tab", "f2"}, "next": {"N"},
			"help": {"f1", "?"}, "go": {"G"}, "metric": {}})
		s.accuse()
		s.sees("f1 ? help", "N next", "vSLOW")
		if strings.Contains(s.screen(), "m metric") || strings.Contains(s.screen(), ": go") {
			t.Errorf("keys that are gone are shown:\n%s", s.screen())
		}
		s.press("m", "n", ":")
		s.sees("vSLOW")
		s.press("G", "fwd002", "enter", "C", "wait", "C")
		s.asked()
		s.sees("K canary")
		s.press("K")
		s.sees("K again does it")
		s.press("wait", "K")
		s.asked("canary fwd002")
		s.press("?")
		s.sees(" K           canary:", "change the machine: each asks once", "f1 ?")
		s.press("esc", "G", "canary")
		s.sees("canary", " K      fairway canary fwd002")
		s.press("esc", "N")
		s.sees(" F-0001 ")
	})
}

// A remapped console keeps what the default one promises: an approval asks once, by its own key.
func TestARemappedApprovalAsksOnce(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := withKeys(t, map[string][]string{"approve": {"Y"}, "reject": {"n"}, "next": {"N"}})
		s.second()
		s.propose("fwd004")
		s.look()
		s.press("4", "enter", "tab", "because it is slow", "enter")
		s.sees("Y approve (shift)", "n reject")
		s.press("A", "wait", "A")
		s.asked()
		s.press("Y")
		s.sees("Y again does it")
		s.press("wait", "Y")
		s.asked("approve P-000001")
	})
}

// Whatever a person wishes, no lower-case key changes the machine: every letter as every action.
func TestNoWishMakesALowerCaseKeyChangeTheMachine(t *testing.T) {
	for _, r := range console.DefaultKeys().Rows() {
		if !r.Changes {
			continue
		}
		for k := 'a'; k <= 'z'; k++ {
			if _, err := console.Remap(map[string][]string{r.Action: {string(k)}}); err == nil {
				t.Errorf("%s may be %q", r.Action, k)
			}
		}
		if _, err := console.Remap(map[string][]string{r.Action: {"V"}}); err != nil {
			t.Errorf("%s may not be V: %v", r.Action, err)
		}
	}
}
