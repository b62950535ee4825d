package program

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
)

// ErrSettings is wrapped by every error about a program's settings; it is a usage error.
var ErrSettings = BadUsage(errors.New("configuration"))

// File is a program's settings file: what is read where none is named, if that exists, and how.
type File[C any] struct {
	Path     string // its last part is the program's name with .toml
	Defaults func() C
	// Check sets what the others or the host say, and refuses what cannot work.
	Check func(*C) error
}

// Parse reads the settings of a text over the defaults.
func (f File[C]) Parse(path string, text []byte) (c C, meta toml.MetaData, err error) {
	c = f.Defaults()
	list := strings.TrimSuffix(filepath.Base(f.Path), ".toml") + " config"
	if meta, err = ParseSettings(path, text, &c, KnownSettings(&c), list); err != nil {
		return c, meta, err
	}
	if err := f.Check(&c); err != nil {
		return c, meta, fmt.Errorf("%w: %s: %w", ErrSettings, path, err)
	}
	return c, meta, nil
}

// Flag adds the flag that names another file.
func (f File[C]) Flag(root *cobra.Command) (path *string) {
	return root.PersistentFlags().StringP("config", "c", "", "configuration file (default "+f.Path+" if it exists)")
}

// Load reads the file at path over the defaults, and says on the error output which names of it are settings no more.
func (f File[C]) Load(path string) (c C, err error) {
	path, text, err := ReadSettings(path, f.Path)
	if err != nil {
		return c, err
	}
	c, _, err = f.Parse(path, text)
	if err == nil {
		for _, line := range Retirements(path, text, &c) {
			fmt.Fprintln(os.Stderr, line)
		}
	}
	return c, err
}

// With makes what a command does of what it does with the settings.
func (f File[C]) With(path *string, do func(c *cobra.Command, args []string, conf *C) error) func(*cobra.Command,
	[]string) error {
	return func(c *cobra.Command, args []string) error {
		conf, err := f.Load(*path)
		if err != nil {
			return err
		}
		return do(c, args, &conf)
	}
}

// Command prints the settings.
func (f File[C]) Command(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration, every setting explained",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			file, text, err := ReadSettings(*path, f.Path)
			if err != nil {
				return err
			}
			conf, meta, err := f.Parse(file, text)
			if err != nil {
				return err
			}
			def := f.Defaults()
			return PrintSettings(c.OutOrStdout(), &conf, &def, text, meta)
		},
	}
}

// Level is the least of what is logged.
type Level string

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(text []byte) error {
	*l = Level(text)
	if new(slog.Level).UnmarshalText(text) != nil {
		return fmt.Errorf("log_level = %q: want debug, info, warn or error", text)
	}
	return nil
}

// Log writes to w what is at least of a level.
func Log(w io.Writer, level Level) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // the settings were read
	return slog.New(newFewLines(slog.NewTextHandler(Raw(w), &slog.HandlerOptions{Level: l})))
}

// ReadSettings reads the text of the settings file at path; without a path, of the one at fallback if
// that exists. It returns the path that was read.
func ReadSettings(path, fallback string) (string, []byte, error) {
	given := path != ""
	if !given {
		path = fallback
	}
	text, err := os.ReadFile(path)
	if err != nil && (given || !errors.Is(err, fs.ErrNotExist)) {
		return path, nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return path, text, nil
}

// Former is implemented by settings that a site's file may name as they were.
type Former interface {
	// Renamed has by former key, which may be a table, the one of now, after which " without " may name what the former
	// value ends with and that of now does not.
	Renamed() map[string]string
	// Retired has by key, which may be a table, why that is a constant now.
	Retired() map[string]string
}

func formerOf(c any) (renamed, retired map[string]string) {
	if f, ok := c.(Former); ok {
		return f.Renamed(), f.Retired()
	}
	return nil, nil
}

// Retirements are the lines about the settings of a file that went, without which it works, or have another name.
func Retirements(path string, text []byte, c any) (lines []string) {
	meta, err := toml.Decode(string(text), new(map[string]any))
	if err != nil {
		return nil
	}
	renamed, retired := formerOf(c)
	seen := map[string]bool{}
	for _, key := range meta.Keys() {
		name, why := entryOf(retired, key.String())
		line := fmt.Sprintf("the setting %s went and is left out: %s; take it out of the file", name, why)
		if name == "" {
			name, why = entryOf(renamed, key.String())
			line = fmt.Sprintf("the setting %s is read as %s, its name now; rename it in the file", name, why)
		}
		if name != "" && !seen[name] {
			seen[name] = true
			lines = append(lines, fmt.Sprintf("%s:%d: %s", path, LineOf(text, key), line))
		}
	}
	return lines
}

// entryOf returns the entry of names that a key falls under: its own, or that of a table around it.
func entryOf(names map[string]string, key string) (name, value string) {
	for name, value := range names {
		if rest, ok := strings.CutPrefix(key, name); ok && (rest == "" || rest[0] == '.') {
			return name, value
		}
	}
	return "", ""
}

// ParseSettings reads TOML over the defaults in c, a pointer to a struct. A key that c has no field for
// is an error with its line, and with the known setting that is spelt nearly so; list is the command
// that prints the known ones.
func ParseSettings(path string, text []byte, c any, known []string, list string) (toml.MetaData, error) {
	now, err := underNewNames(text, c)
	if err != nil {
		return toml.MetaData{}, fmt.Errorf("%w: %s: %w", ErrSettings, path, err)
	}
	meta, err := toml.Decode(string(now), c)
	if err != nil {
		return meta, tomlError(path, err)
	}
	var unknown []error
	_, retired := formerOf(c)
	for _, key := range meta.Undecoded() {
		if name, _ := entryOf(retired, key.String()); name != "" {
			continue
		}
		hint := fmt.Sprintf("%s lists the known ones", list)
		if near := nearest(key.String(), known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		unknown = append(unknown, fmt.Errorf("%w: %s:%d: unknown setting %q (%s)", ErrSettings, path, LineOf(text, key),
			key, hint))
	}
	return meta, errors.Join(unknown...)
}

// LineOf finds the line of a settings file on which a key or its table stands, from 1; 0 if it is
// written in a way this does not know.
func LineOf(text []byte, key toml.Key) int {
	table := ""
	want := key.String()
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(line[:strings.LastIndex(line+"]", "]")], "[] ")
			if table == want {
				return i + 1
			}
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		name = strings.Trim(strings.TrimSpace(name), `"'`)
		if table != "" {
			name = table + "." + name
		}
		if ok && (name == want || strings.HasPrefix(want, name+".")) {
			return i + 1
		}
	}
	return 0
}

// nearest is the known name that is at most three letters away from a wrong one; empty if all are further away.
func nearest(wrong string, known []string) string {
	best, least := "", 4
	for _, k := range known {
		if d := distance(wrong, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost = 1 + min(last, row[j], row[j+1])
			}
			last, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
