package program_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	"fairway/cmd/program"
)

func TestHowAProgramEnds(t *testing.T) {
	outcome := map[string]error{
		"well":   nil,
		"badly":  errors.New("no space left"),
		"wrong":  fmt.Errorf("line 3: %w", program.BadUsage(errors.New("no such field"))),
		"lonely": fmt.Errorf("asking: %w", program.NoAnswer(errors.New("connection refused"))),
		"none":   fmt.Errorf("nothing to replay: %w", fs.ErrNotExist),
	}
	_, err := os.Open("/nope/x")
	outcome["file"] = fmt.Errorf("token: %w", err)
	_, err = net.Dial("tcp", "127.0.0.1:1")
	outcome["dial"] = fmt.Errorf("asking 127.0.0.1:1: %w", err)
	_, outcome["fetch"] = http.Get("http://127.0.0.1:1/x")
	_, _, outcome["addr"] = net.SplitHostPort("a")
	_, outcome["port"] = net.Dial("tcp", "127.0.0.1:99999")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"well"}, program.Done, ""},
		{[]string{"badly"}, program.Failed, "tool: no space left\n"},
		{[]string{"wrong"}, program.Usage, "tool: line 3: no such field\n"},
		{[]string{"lonely"}, program.Unreachable, "tool: asking: connection refused\n"},
		{[]string{"well", "more"}, program.Usage,
			"tool: 'tool well' takes no arguments, and got \"more\" (see 'tool well --help')\n"},
		{[]string{"two", "one"}, program.Usage,
			"tool: want 'tool two FROM TO', got 1 arguments (see 'tool two --help')\n"},
		{[]string{"well", "--colour"}, program.Usage, "tool: unknown flag: --colour (see 'tool well --help')\n"},
		{[]string{"needy"}, program.Usage, "tool: 'tool needy' needs --to (see 'tool needy --help')\n"},
		{[]string{"needy", "--to", "a", "--for", "4"}, program.Usage, "tool: --for \"4\": want a time with its unit, " +
			"such as 500ms, 30s or 2h (see 'tool needy --help')\n"},
		{[]string{"needy", "--to", "a", "--peak", "10GB"}, program.Usage, "tool: --peak \"10GB\": want a number " +
			"(see 'tool needy --help')\n"},
		{[]string{"welll"}, program.Usage, "tool: 'tool' has no command \"welll\"; did you mean 'tool well'? " +
			"(see 'tool --help')\n"},
		{[]string{"x"}, program.Usage, "tool: 'tool' has no command \"x\" (see 'tool --help')\n"},
		{[]string{"needi", "--for", "4"}, program.Usage, "tool: 'tool' has no command \"needi\"; did you mean " +
			"'tool needy'? (see 'tool --help')\n"},
		{[]string{"file"}, program.Failed, "tool: token: /nope/x: no such file or directory\n"},
		{[]string{"dial"}, program.Failed, "tool: asking 127.0.0.1:1: connection refused\n"},
		{[]string{"fetch"}, program.Failed, "tool: http://127.0.0.1:1/x: 127.0.0.1:1: connection refused\n"},
		{[]string{"addr"}, program.Failed, "tool: a: want HOST:PORT\n"},
		{[]string{"port"}, program.Failed, "tool: 99999: want a port of 1 to 65535\n"},
		{[]string{"none"}, program.Failed, "tool: nothing to replay\n"},
	} {
		root := &cobra.Command{Use: "tool", Args: cobra.NoArgs}
		for name, err := range outcome {
			root.AddCommand(&cobra.Command{Use: name, Args: cobra.NoArgs,
				RunE: func(*cobra.Command, []string) error { return err }})
		}
		needy := &cobra.Command{Use: "needy", Run: func(*cobra.Command, []string) {}}
		needy.Flags().String("to", "", "")
		needy.Flags().Duration("for", 0, "")
		needy.Flags().Float64("peak", 0, "")
		if err := needy.MarkFlagRequired("to"); err != nil {
			t.Fatal(err)
		}
		root.AddCommand(needy, &cobra.Command{Use: "two FROM TO", Args: cobra.ExactArgs(2),
			Run: func(*cobra.Command, []string) {}})
		var errs bytes.Buffer
		root.SetErr(&errs)
		if code := program.Code(program.Run(t.Context(), program.Strict(root), c.args)); code != c.code ||
			errs.String() != c.says {
			t.Errorf("%q ends with %d and %q, want %d and %q", c.args, code, errs.String(), c.code, c.says)
		}
	}
}

type conf struct {
	Name  string
	Store struct {
		Keep int
		Wait time.Duration
	}
}

func TestSettingsNameTheLine(t *testing.T) {
	known := []string{"name", "store.keep"}
	for text, want := range map[string]string{
		"name = \"a\"\n[store]\nkep = 3\n": "configuration: f.toml:3: unknown setting \"store.kep\" (did you " +
			"mean \"store.keep\"?)",
		"\nentirely_different = 1\n": "configuration: f.toml:2: unknown setting \"entirely_different\" " +
			"(tool config lists the known ones)",
		"name = \"a\"\n[store]\nkeep = \"x\"\n": `configuration: f.toml:3: store.keep: want a whole number, ` +
			`got text in quotes`,
		"name = 5\n":                    `configuration: f.toml:1: name: want text in quotes, got a whole number`,
		"name = [\"a\"]\n":              `configuration: f.toml:1: name: want text in quotes, got a list in brackets`,
		"store = 5\n":                   `configuration: f.toml:1: store: want a table, got a whole number`,
		"[store]\nwait = \"30 days\"\n": `configuration: f.toml:2: store.wait = "30 days": want a time with its unit`,
		"name = \n":                     "configuration: f.toml:1: ",
		"[other]\nx = 1\n":              `configuration: f.toml:`,
	} {
		var c conf
		_, err := program.ParseSettings("f.toml", []byte(text), &c, known, "tool config")
		if err == nil || !strings.HasPrefix(err.Error(), want) || program.Code(err) != program.Usage {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	c := conf{Name: "default"}
	meta, err := program.ParseSettings("f.toml", []byte("[store]\nkeep = 3\n"), &c, known, "tool config")
	if err != nil || c.Name != "default" || c.Store.Keep != 3 || !meta.IsDefined("store", "keep") ||
		meta.IsDefined("name") {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestSettingsThatAreNotThere(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "f.toml")
	if path, text, err := program.ReadSettings("", missing); path != missing || text != nil || err != nil {
		t.Errorf("the file nobody named: %q, %q, %v", path, text, err)
	}
	if _, _, err := program.ReadSettings(missing, ""); !errors.Is(err, program.ErrSettings) ||
		!errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file that was named: %v", err)
	}
}

func FuzzLineOf(f *testing.F) {
	f.Add([]byte("[desk\nx"))
	f.Add([]byte("a.b.c = 1\n[]\n[a]\nb=1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if n := program.LineOf(text, toml.Key{"a", "b"}); n < 0 || n > bytes.Count(text, []byte("\n"))+1 {
			t.Errorf("line %d of %q", n, text)
		}
	})
}
