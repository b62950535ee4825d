package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/console"
)

// consoleFile is what a person may set of the console: FAIRWAY_CONSOLE names the file, else it is
// fairway/console.toml in the person's configuration directory, else siteConsole.
type consoleFile struct {
	Keys map[string]keyList `toml:"keys"`
}

// siteConsole is read where a person has no file.
const siteConsole = "/etc/fairway/console.toml"

// keyList is one key, or several.
type keyList []string

// UnmarshalTOML reads "C" as well as ["C", "f5"].
func (k *keyList) UnmarshalTOML(v any) error {
	*k = keyList{}
	switch v := v.(type) {
	case string:
		*k = keyList{v}
		return nil
	case []any:
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return fmt.Errorf("%v is not a key; want \"C\" or [\"C\", \"f5\"]", one)
			}
			*k = append(*k, text)
		}
		return nil
	}
	return fmt.Errorf("%v is not a key; want \"C\" or [\"C\", \"f5\"]", v)
}

// consolePath is the file that is read, and whether somebody named it.
func consolePath() (path string, named bool) {
	if path := os.Getenv("FAIRWAY_CONSOLE"); path != "" {
		return path, true
	}
	if dir, err := os.UserConfigDir(); err == nil {
		own := filepath.Join(dir, "fairway", "console.toml")
		if _, err := os.Stat(own); err == nil {
			return own, true
		}
	}
	return siteConsole, false
}

// readKeys reads the console's keys; it returns the file that they are from, "" for none.
func readKeys() (*console.Keys, string, error) {
	path, named := consolePath()
	given := path
	if !named {
		given = ""
	}
	path, text, err := program.ReadSettings(given, path)
	if err != nil {
		return nil, path, err
	}
	if text == nil {
		return console.DefaultKeys(), "", nil
	}
	k, err := parseKeys(path, text)
	return k, path, err
}

func parseKeys(path string, text []byte) (*console.Keys, error) {
	var c consoleFile
	if _, err := program.ParseSettings(path, text, &c, []string{"keys"}, "fairway keys"); err != nil {
		return nil, err
	}
	wishes := map[string][]string{}
	for action, keys := range c.Keys {
		wishes[action] = keys
	}
	k, err := console.Remap(wishes)
	if err == nil {
		return k, nil
	}
	var all []error
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil, fmt.Errorf("%w: %s: %w", program.ErrSettings, path, err)
	}
	for _, one := range joined.Unwrap() {
		var bad *console.KeyError
		if !errors.As(one, &bad) {
			bad = &console.KeyError{Why: one.Error()}
		}
		all = append(all, fmt.Errorf("%w: %s:%d: keys.%s: %s", program.ErrSettings, path,
			program.LineOf(text, toml.Key{"keys", bad.Action}), bad.Action, bad.Why))
	}
	return nil, errors.Join(all...)
}

func newKeys(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "keys",
		Short: "Print the console's keys as its settings file has them, every action with what it does",
		Long: "Prints every action of the terminal console with its keys, as the table [keys] of its settings file:\n" +
			"the file that FAIRWAY_CONSOLE names, else fairway/console.toml in your configuration directory\n" +
			"(~/.config), else " + siteConsole + ". Errors in the file are reported with their line.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			k, path, err := readKeys()
			if err != nil {
				return err
			}
			if o.JSON {
				return cli.PrintJSON(c.OutOrStdout(), k.Rows())
			}
			return printKeys(c.OutOrStdout(), k, path)
		},
	}
}

func printKeys(w io.Writer, k *console.Keys, path string) error {
	from := "# The default keys; no settings file changes them."
	if path != "" {
		from = "# As " + path + " has them."
	}
	lines := []string{from,
		"# One key or several: \"C\", [\"C\", \"f5\"]; [] takes them away. An action that changes the machine has " +
			"capital letters only.", "[keys]"}
	for _, r := range k.Rows() {
		quoted := make([]string, len(r.Keys))
		for i, key := range r.Keys {
			quoted[i] = fmt.Sprintf("%q", key)
		}
		about := r.Does
		if r.Replay {
			about = "in a replay: " + about
		}
		if r.Changes {
			about += "; CHANGES THE MACHINE"
		}
		lines = append(lines, fmt.Sprintf("%-14s = %-24s # %s", r.Action, "["+strings.Join(quoted, ", ")+"]", about))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
