package program

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// KnownSettings lists the dotted names of the settings of c, a pointer to a struct, in the order of its fields: a
// field with a toml tag is a setting, or a table of them.
func KnownSettings(c any) (names []string) {
	walk("", "", reflect.ValueOf(c).Elem(), func(s setting) { names = append(names, s.key) })
	return names
}

// PrintSettings writes c, a pointer to a struct, as a file that could be its source: each setting below what its
// help tag says of it and, where the file with that text set it, behind it the line and the default.
func PrintSettings(w io.Writer, c, defaults any, text []byte, meta toml.MetaData) error {
	was := map[string]reflect.Value{}
	walk("", "", reflect.ValueOf(defaults).Elem(), func(s setting) { was[s.key] = s.value })
	var b bytes.Buffer
	var failed error
	table := ""
	walk("", "", reflect.ValueOf(c).Elem(), func(s setting) {
		at := max(0, strings.LastIndexByte(s.key, '.'))
		b.WriteByte('\n')
		if head := s.key[:at]; !s.isTable() && head != table {
			table = head
			if s.table != "" {
				fmt.Fprintf(&b, "# %s\n", s.table)
			}
			fmt.Fprintf(&b, "[%s]\n", table)
		}
		for _, line := range wrap(s.help, 100) {
			fmt.Fprintf(&b, "# %s\n", line)
		}
		for _, line := range s.entryHelp() {
			fmt.Fprintf(&b, "#   %s\n", line)
		}
		if s.isTable() {
			failed = errors.Join(failed, printTable(&b, s.key, s.value))
			return
		}
		fmt.Fprintf(&b, "%s = %s", strings.TrimPrefix(s.key[at:], "."), literal(s.value))
		if key := strings.Split(s.key, "."); meta.IsDefined(key...) {
			fmt.Fprintf(&b, " # line %d; default %s", LineOf(text, key), literal(was[s.key]))
		}
		b.WriteByte('\n')
	})
	if failed != nil {
		return failed
	}
	_, err := w.Write(b.Bytes())
	return err
}

// setting is one key with its value.
type setting struct {
	key, help string
	table     string // help of the table that it is in
	value     reflect.Value
}

// isTable says whether the setting's keys or entries are the site's own: a map, or a list of structs.
func (s *setting) isTable() bool {
	t := s.value.Type()
	return t.Kind() == reflect.Map || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// entryHelp has a line for each field of an entry, where the setting is a list of structs.
func (s *setting) entryHelp() (lines []string) {
	t := s.value.Type()
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t.Elem()) {
		if help := f.Tag.Get("help"); help != "" {
			name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
			lines = append(lines, name+": "+help)
			if f.Type.Kind() == reflect.Pointer { // a table in the entry
				keys := KnownSettings(reflect.New(f.Type.Elem()).Interface())
				lines[len(lines)-1] += " Keys: " + strings.Join(keys, ", ") + "."
			}
		}
	}
	return lines
}

// walk visits the settings of a struct: its own, then those of its tables, and last what is the site's.
func walk(table, help string, v reflect.Value, visit func(setting)) {
	var tables, sites []func()
	for _, f := range reflect.VisibleFields(v.Type()) {
		name := f.Tag.Get("toml")
		if name == "" || name == "-" {
			continue
		}
		key := strings.TrimPrefix(table+"."+name, ".")
		s := setting{key: key, help: f.Tag.Get("help"), table: help, value: v.FieldByIndex(f.Index)}
		switch {
		case s.isTable():
			sites = append(sites, func() { visit(s) })
		case f.Type.Kind() == reflect.Struct:
			tables = append(tables, func() { walk(s.key, s.help, s.value, visit) })
		default:
			visit(s)
		}
	}
	for _, visitTable := range slices.Concat(tables, sites) {
		visitTable()
	}
}

// printTable writes the entries of a map or of a list of structs.
func printTable(w io.Writer, key string, v reflect.Value) error {
	if v.Len() == 0 {
		_, err := fmt.Fprintf(w, "# [%s] has no entry\n", key)
		return err
	}
	tree := v.Interface()
	parts := strings.Split(key, ".")
	for _, part := range slices.Backward(parts) {
		tree = map[string]any{part: tree}
	}
	var out bytes.Buffer
	e := toml.NewEncoder(&out)
	e.Indent = ""
	if err := e.Encode(tree); err != nil {
		return fmt.Errorf("print %s: %w", key, err)
	}
	// The tables around it were opened before, and may be opened only once.
	text := out.String()
	for i := range parts[1:] {
		text = strings.TrimPrefix(text, "["+strings.Join(parts[:i+1], ".")+"]\n")
	}
	_, err := io.WriteString(w, strings.TrimLeft(text, "\n"))
	return err
}

// literal writes a value as TOML.
func literal(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return fmt.Sprintf("%q", x.String())
	case []string:
		quoted := make([]string, len(x))
		for i, s := range x {
			quoted[i] = fmt.Sprintf("%q", s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case float64:
		if text := fmt.Sprint(x); strings.ContainsAny(text, ".e") {
			return text
		}
		return fmt.Sprintf("%.1f", x)
	}
	if v.Kind() == reflect.String {
		return fmt.Sprintf("%q", v.String())
	}
	return fmt.Sprint(v.Interface())
}

// wrap breaks text into lines of at most width bytes.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
