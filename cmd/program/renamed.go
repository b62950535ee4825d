package program

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// underNewNames returns the text of a file with what it has under former names under those of now, or as it is where
// it has none. c is a pointer to the settings, with the defaults in it.
func underNewNames(text []byte, c any) ([]byte, error) {
	names, _ := formerOf(c)
	tree := map[string]any{}
	if _, err := toml.Decode(string(text), &tree); err != nil || len(names) == 0 {
		return text, nil // whoever decodes it into settings says what is wrong
	}
	m := mover{tree: tree, defaults: map[string]reflect.Value{}, from: map[string]string{}}
	walk("", "", reflect.ValueOf(c).Elem(), func(s setting) { m.defaults[s.key] = s.value })
	found := false
	for _, was := range slices.Sorted(maps.Keys(names)) {
		value, had := take(tree, strings.Split(was, "."))
		if !had {
			continue
		}
		found = true
		now, without, _ := strings.Cut(names[was], " without ")
		if s, isText := value.(string); isText && without != "" {
			value = "/" + strings.Trim(strings.TrimSuffix(s, without), "/")
		}
		if err := m.put(was, strings.Split(now, "."), value); err != nil {
			return nil, err
		}
	}
	if !found {
		return text, nil
	}
	var b bytes.Buffer
	err := toml.NewEncoder(&b).Encode(tree)
	return b.Bytes(), err
}

// take takes out what is at a path, and the tables around it that have nothing else.
func take(tree map[string]any, path []string) (value any, had bool) {
	if len(path) > 1 {
		below, isTable := tree[path[0]].(map[string]any)
		if !isTable {
			return nil, false
		}
		if value, had = take(below, path[1:]); len(below) > 0 || !had {
			return value, had
		}
	} else {
		value, had = tree[path[0]]
	}
	delete(tree, path[0])
	return value, had
}

// mover puts the values of former names where those of now are.
type mover struct {
	tree     map[string]any
	defaults map[string]reflect.Value
	from     map[string]string // by name of now, the former one whose value it has
}

// put notes a value. A default gives way to a value, a former name to the one of now, and lists are joined.
func (m *mover) put(was string, path []string, value any) error {
	if table, isTable := value.(map[string]any); isTable {
		for name, v := range table {
			if err := m.put(was+"."+name, append(slices.Clone(path), name), v); err != nil {
				return err
			}
		}
		return nil
	}
	at, key, last := m.tree, strings.Join(path, "."), path[len(path)-1]
	for _, name := range path[:len(path)-1] {
		below, is := at[name].(map[string]any)
		if !is {
			below = map[string]any{}
			at[name] = below
		}
		at = below
	}
	def, known := m.defaults[key]
	list, isList := value.([]any)
	if isList && known && def.Kind() == reflect.String {
		words := make([]string, len(list))
		for i, v := range list {
			words[i] = fmt.Sprint(v)
		}
		delete(at, last) // a list was read in place of the one
		value, isList = strings.Join(words, ","), false
	}
	isDefault := func(v any) bool { return v == "" || known && fmt.Sprint(v) == fmt.Sprint(def.Interface()) }
	old, set := at[last]
	switch {
	case isDefault(value) || set && fmt.Sprint(old) == fmt.Sprint(value):
		return nil
	case set && isList:
		before, _ := old.([]any)
		value = append(before, list...)
	case set && !isDefault(old) && m.from[key] != "":
		return fmt.Errorf("%s and %s are one setting now, and differ: say it once, as %s", m.from[key], was, key)
	case set && !isDefault(old):
		return nil
	}
	at[last], m.from[key] = value, was
	return nil
}
