package console

import (
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
	dir := env("XDG_STATE_HOME")
	if dir == "" {
		dir = filepath.Join(env("HOME"), ".local", "state")
	}
	return filepath.Join(dir, "fairway", "lists.json")
}

// Keep opens lists as the file says that they were left, and keeps there how they are left from now on.
func (m *Model) Keep(file string) {
	m.lists = lists{map[string]screen.Kept{}, file}
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &m.lists.left) != nil {
		m.lists.left = map[string]screen.Kept{} // another version's
	}
	for _, p := range m.screens {
		m.restore(p, screen.Address{Filter: p.Address(m.state).Filter})
	}
}

// restore has a list as it was left, unless the address says how it is to be.
func (m *Model) restore(p screen.Screen, at screen.Address) {
	k, ok := p.(screen.Keeper)
	if left, known := m.lists.left[p.Name()]; ok && known && at.Filter == "" && at.Sort == "" {
		k.Restore(left)
	}
}

// keepList keeps how the list on top is left, if a key has changed that since before.
func (m *Model) keepList(p screen.Screen, before screen.Kept) {
	now := p.(screen.Keeper).Left()
	if reflect.DeepEqual(now, before) {
		return
	}
	if m.lists.left == nil {
		m.lists.left = map[string]screen.Kept{}
	}
	m.lists.left[p.Name()] = now
	if m.lists.file == "" {
		return
	}
	b, err := json.Marshal(m.lists.left)
	if err == nil {
		if err = os.MkdirAll(filepath.Dir(m.lists.file), 0o700); err == nil {
			err = os.WriteFile(m.lists.file, b, 0o600)
		}
	}
	if err != nil {
		m.state.Note = "how lists are left is not kept: " + chart.Clean(err.Error())
	}
}
