package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/lab/conform/manual"
	"fairway/cmd/program"
)

// consoleConf makes a settings file of the console and has the programs use it.
func consoleConf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "console.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAIRWAY_CONSOLE", path)
	return path
}

// command runs one command line and returns what it printed and its exit code.
func command(t *testing.T, args ...string) (string, int) {
	t.Helper()
	out, _, err := manual.Call(t, cli.NewRoot(Add), "", args...)
	if err != nil {
		out += err.Error()
	}
	return out, cli.Code(err)
}

func TestKeysOfAFile(t *testing.T) {
	path := consoleConf(t, "# mine\n[keys]\ncanary = \"K\"\nnext = [\"N\", \"ctrl+n\"]\nexport = []\n")
	out, code := command(t, "keys")
	for _, want := range []string{"# As " + path + " has them.", `canary         = ["K"]`,
		`next           = ["N", "ctrl+n"]`, "export         = [] ", "CHANGES THE MACHINE"} {
		if code != program.Done || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want %q in\n%s", code, want, out)
		}
	}
	// What it prints can be the file.
	consoleConf(t, out)
	again, code := command(t, "keys")
	if _, rest, _ := strings.Cut(again, "\n"); code != program.Done || !strings.HasSuffix(out, rest) {
		t.Errorf("%d, printed again as\n%s", code, again)
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"[keys]\ncanary = \"c\"\n": "console.toml:2: keys.canary: \"c\" is not a capital letter; canary " +
			"changes the machine",
		"[keys]\n\nnext = \"m\"\n":             `console.toml:3: keys.next: "m" is bound twice: it also means metric`,
		"[keys]\nfrobnicate = \"F\"\n":         `console.toml:2: keys.frobnicate: no such action`,
		"[keys]\nnext = 7\n":                   `7 is not a key; want "C" or`,
		"[keys]\nnext = [7]\n":                 `7 is not a key; want "C" or`,
		"[keys]\nnext = \"N\"\nnext = \"M\"\n": "console.toml:3: ",
		"[kees]\nnext = \"N\"\n":               `unknown setting "kees`,
	} {
		consoleConf(t, text)
		for _, cmd := range []string{"keys"} {
			if out, code := command(t, cmd); code != program.Usage || !strings.Contains(out, want) {
				t.Errorf("%q: fairway %s: %d %s, want %q", text, cmd, code, out, want)
			}
		}
	}
	t.Setenv("FAIRWAY_CONSOLE", filepath.Join(t.TempDir(), "none.toml"))
	if out, code := command(t, "keys"); code != program.Usage || !strings.Contains(out, "none.toml") {
		t.Errorf("a file that is named and not there: %d %s", code, out)
	}
	t.Setenv("FAIRWAY_CONSOLE", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if out, code := command(t, "keys"); code != program.Done || !strings.Contains(out, "# The default keys") {
		t.Errorf("without a file: %d %s", code, out)
	}
}
