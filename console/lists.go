package console

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"

	"fairway/console/chart"
	"fairway/console/screen"
)

// lists are how a person left the lists, by their screens, and the file that keeps it; "" keeps it for this visit.
type lists struct {
	left map[string]screen.Kept
	file string
}

// listsFile is where a person's lists are kept.
func listsFile(env func(string) string) string {
	dir := cmp.Or(env("XDG_STATE_HOME"), filepath.Join(env("HOME"), ".local", "state"))
	return filepath.Join(dir, "fairway", "lists.json")
}

// Keep opens lists as the file says that they were left, and keeps there how they are left from now on.
func Keep(m *Model, file string) {
	m.lists = lists{map[string]screen.Kept{}, file}
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &m.lists.left) != nil {
		m.lists.left = map[string]screen.Kept{} // another version's
	}
	for _, p := range m.screens {
		m.lists.restore(p, screen.Address{Filter: p.Address(m.state).Filter})
	}
}

// restore has a list as it was left, unless the address says how it is to be.
func (l *lists) restore(p screen.Screen, at screen.Address) {
	k, ok := p.(screen.Keeper)
	if left, known := l.left[p.Name()]; ok && known && at.Filter == "" && at.Sort == "" {
		k.Restore(left)
	}
}

// keep keeps how a list is left, if a key has changed that since before.
func (l *lists) keep(s *screen.State, p screen.Screen, before screen.Kept) {
	now := p.(screen.Keeper).Left()
	if reflect.DeepEqual(now, before) {
		return
	}
	if l.left == nil {
		l.left = map[string]screen.Kept{}
	}
	l.left[p.Name()] = now
	if l.file == "" {
		return
	}
	b, err := json.Marshal(l.left)
	if err == nil {
		if err = os.MkdirAll(filepath.Dir(l.file), 0o700); err == nil {
			err = os.WriteFile(l.file, b, 0o600)
		}
	}
	if err != nil {
		s.Note = "how lists are left is not kept: " + chart.Clean(err.Error())
	}
}
