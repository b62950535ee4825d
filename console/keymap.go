package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"fairway/console/chart"
	"fairway/console/screen"
)

// Keys are the keys of one console: the key table, and that of a replay, with what a person changed.
type Keys struct{ table, replay []binding }

// DefaultKeys are the keys as they are without any wish.
func DefaultKeys() *Keys {
	return &Keys{table: slices.Clone(keyTable), replay: slices.Clone(replayTable)}
}

// KeyError says why an action cannot have the keys that it was given.
type KeyError struct{ Action, Why string }

func (e *KeyError) Error() string { return e.Action + ": " + e.Why }

// Remap gives actions, by their names, other keys than the default ones, on every page where the
// action is; an empty list takes its keys away. What cannot be is refused, each as a KeyError and all
// of them joined: an unknown action or key, a key that means two things on one page, and
// for an action that changes the machine anything but a capital letter.
func Remap(wishes map[string][]string) (*Keys, error) {
	k := DefaultKeys()
	var bad []error
	refuse := func(action, format string, args ...any) {
		bad = append(bad, &KeyError{action, fmt.Sprintf(format, args...)})
	}
	for _, name := range slices.Sorted(maps.Keys(wishes)) {
		keys := make([]string, len(wishes[name]))
		for i, one := range wishes[name] {
			var ok bool
			if keys[i], ok = keyNamed(one); !ok {
				refuse(name, "%q is not a key; a key is one letter or sign, or one of %s, or ctrl+ and a letter", one,
					strings.Join(slices.Sorted(maps.Keys(namedKeys)), " "))
			}
			if keys[i] == quitKey && screen.Action(name) != screen.ActQuit {
				refuse(name, "ctrl+c always quits and cannot mean anything else")
			}
		}
		if screen.Action(name) == screen.ActQuit && !slices.Contains(keys, quitKey) {
			keys = append(keys, quitKey)
		}
		if !k.set(screen.Action(name), keys) {
			refuse(name, "no such action; fairway keys lists them")
			continue
		}
		if i := slices.IndexFunc(keys, func(key string) bool { return !capital(key) }); i >= 0 &&
			changesMachine(screen.Action(name)) {
			refuse(name, "%q is not a capital letter; %s changes the machine, and no lower-case key ever does",
				wishes[name][i], name)
		}
	}
	bad = append(bad, k.clashes(wishes)...)
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	return k, nil
}

// quitKey always quits, so that nobody is shut in.
const quitKey = "ctrl+c"

// set gives an action its keys wherever it is bound; false: no such action.
func (k *Keys) set(a screen.Action, keys []string) (found bool) {
	for _, table := range [][]binding{k.table, k.replay} {
		for i := range table {
			if b := &table[i]; b.act == a {
				found = true
				b.keys, b.show = keys, shown(keys)
			}
		}
	}
	return found
}

// clashes names the keys that mean two things on one page, where a wish has part in it. A replay's
// keys come before a page's own: only what clashes by default may.
func (k *Keys) clashes(wishes map[string][]string) (bad []error) {
	type pair struct{ a, b screen.Action }
	meant := map[pair]bool{}
	twice(keyTable, replayTable, func(_ string, x, y *binding) { meant[pair{x.act, y.act}] = true })
	named := map[pair]bool{}
	twice(k.table, k.replay, func(key string, x, y *binding) {
		p := pair{x.act, y.act}
		if meant[p] || named[p] {
			return
		}
		named[p] = true
		who, other := x, y
		if _, wished := wishes[string(x.act)]; !wished {
			who, other = y, x
		}
		bad = append(bad, &KeyError{string(who.act),
			fmt.Sprintf("%q is bound twice: it also means %s (%s)%s; give one of them another key",
				key, other.act, other.does, where(x, y))})
	})
	return bad
}

// where names a page on which two bindings meet.
func where(x, y *binding) string {
	for _, on := range onEvery {
		if x.works(on) && y.works(on) {
			return " on the page " + on
		}
	}
	return ""
}

// twice visits every two bindings of other actions that share a key on a page, or in a replay.
func twice(table, replay []binding, visit func(key string, x, y *binding)) {
	shared := func(x, y *binding) {
		for _, key := range x.keys {
			if slices.Contains(y.keys, key) {
				visit(key, x, y)
			}
		}
	}
	for i := range table {
		x := &table[i]
		for j := i + 1; j < len(table); j++ {
			if y := &table[j]; x.act != y.act && where(x, y) != "" {
				shared(x, y)
			}
		}
		for j := range replay {
			if y := &replay[j]; x.act != y.act {
				shared(x, y)
			}
		}
	}
	for i := range replay {
		for j := i + 1; j < len(replay); j++ {
			shared(&replay[i], &replay[j])
		}
	}
}

// changesMachine says whether an action changes the machine.
func changesMachine(a screen.Action) bool {
	return slices.ContainsFunc(keyTable, func(b binding) bool { return b.act == a && b.changes })
}

// capital says that a key is one capital letter.
func capital(key string) bool {
	r, n := utf8.DecodeRuneInString(key)
	return n == len(key) && unicode.IsUpper(r)
}

// namedKeys are the keys that are no single sign, as people write them, and as bubbletea does.
var namedKeys = map[string]string{"space": " ", "enter": "enter", "tab": "tab", "shift+tab": "shift+tab",
	"backspace": "backspace", "esc": "esc", "delete": "delete",
	"insert": "insert", "up": "up", "down": "down", "left": "left", "right": "right", "home": "home", "end": "end",
	"page-up": "pgup", "page-down": "pgdown",
	"shift+up": "shift+up", "shift+down": "shift+down", "shift+left": "shift+left", "shift+right": "shift+right",
	"f1": "f1", "f2": "f2", "f3": "f3", "f4": "f4", "f5": "f5", "f6": "f6", "f7": "f7", "f8": "f8", "f9": "f9",
	"f10": "f10", "f11": "f11", "f12": "f12"}

// keyNamed is a key as bubbletea names it; false for an unknown key.
func keyNamed(text string) (string, bool) {
	if key, ok := namedKeys[text]; ok {
		return key, true
	}
	if letter, ok := strings.CutPrefix(text, "ctrl+"); ok {
		// The others arrive under another name: ctrl+i is tab, ctrl+m enter.
		return text, len(letter) == 1 && letter >= "a" && letter <= "z" && letter != "i" && letter != "m"
	}
	r, n := utf8.DecodeRuneInString(text)
	return text, n > 0 && n == len(text) && r != utf8.RuneError && unicode.IsGraphic(r) && r != ' '
}

// shown is how people name keys.
func shown(keys []string) string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = keyName(key)
	}
	return strings.Join(names, " ")
}

// keyName is the name of a key in the settings and on the screen.
func keyName(key string) string {
	for name, k := range namedKeys {
		if k == key {
			return name
		}
	}
	return key
}

// actionOf finds what a key means on a page; "" when it means nothing there.
func (k *Keys) actionOf(page, key string) screen.Action {
	for i := range k.table {
		if b := &k.table[i]; b.works(page) && slices.Contains(b.keys, key) {
			return b.act
		}
	}
	return ""
}

// shownOn is how a line's keys are called on a page: without those that an earlier line has there.
func (k *Keys) shownOn(page string, b *binding) string {
	left := slices.DeleteFunc(slices.Clone(b.keys), func(key string) bool { return k.actionOf(page, key) != b.act })
	if len(left) == len(b.keys) {
		return b.show
	}
	return shown(left)
}

// inReplay finds what a key means in a replay, on every page; "" where it is the page's own.
func (k *Keys) inReplay(key string) screen.Action {
	for i := range k.replay {
		if b := &k.replay[i]; slices.Contains(b.keys, key) {
			return b.act
		}
	}
	return ""
}

// name is how the first key of an action is called on a page, or on any page that has it.
func (k *Keys) name(page string, a screen.Action) string {
	text := ""
	for i := range k.table {
		if b := &k.table[i]; b.act == a && len(b.keys) > 0 {
			if name := keyName(b.keys[0]); b.works(page) {
				return name
			} else if text == "" {
				text = name
			}
		}
	}
	return cmp.Or(text, k.replayName(a))
}

// replayName is how an action's key is called in a replay, the shortest where it has several.
func (k *Keys) replayName(a screen.Action) string {
	short := ""
	for i := range k.replay {
		if b := &k.replay[i]; b.act == a {
			for _, key := range b.keys {
				if name := keyName(key); short == "" || len(name) < len(short) {
					short = name
				}
			}
		}
	}
	return cmp.Or(short, chart.Missing)
}

// KeyRow is what one action's keys are.
type KeyRow struct {
	Action string   `json:"action"`
	Keys   []string `json:"keys"` // as settings name them
	Does   string   `json:"does"`
	On     []string `json:"on"` // pages; empty: every page
	// Changes says that it changes the machine: only a capital letter may do that.
	Changes bool `json:"changes"`
	Replay  bool `json:"replay"` // in a replay
}

// Rows lists every action with its keys, in the order of the help; what it does is by the first page
// that has it.
func (k *Keys) Rows() []KeyRow {
	var out []KeyRow
	add := func(table []binding, replay bool) {
		for i := range table {
			b := &table[i]
			at := slices.IndexFunc(out, func(r KeyRow) bool { return r.Action == string(b.act) })
			if at < 0 {
				at = len(out)
				out = append(out, KeyRow{Action: string(b.act), Does: b.does, Changes: b.changes, Replay: replay,
					On: slices.Clone(b.on)})
			}
			r := &out[at]
			for _, on := range b.on {
				if len(r.On) > 0 && !slices.Contains(r.On, on) {
					r.On = append(r.On, on)
				}
			}
			if b.on == nil {
				r.On = nil
			}
			for _, key := range b.keys {
				if name := keyName(key); !slices.Contains(r.Keys, name) {
					r.Keys = append(r.Keys, name)
				}
			}
		}
	}
	add(k.table, false)
	add(k.replay, true)
	return out
}
