package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func missingTools(names ...string) (missing []string) {
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			missing = append(missing, n)
		}
	}
	return missing
}

// terminal is a person's terminal of 120 x 36 with a shell in it.
type terminal struct {
	t      *testing.T
	server string // tmux's socket
	output string // the file of everything that was ever written to the terminal
}

// openTerminal opens a terminal; env is set for what runs in it.
func openTerminal(t *testing.T, env ...string) *terminal {
	t.Helper()
	dir := t.TempDir()
	x := &terminal{t: t, server: filepath.Join(dir, "tmux"), output: filepath.Join(dir, "output")}
	args := []string{"-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "36"}
	for _, e := range env {
		args = append(args, "-e", e)
	}
	x.tmux(append(args, "sh")...)
	t.Cleanup(x.close)
	x.tmux("pipe-pane", "cat >"+x.output)
	return x
}

// tmux gives an order to the terminal's server; a server that is gone answers nothing.
func (x *terminal) tmux(args ...string) string {
	out, _ := exec.Command("tmux", append([]string{"-S", x.server}, args...)...).CombinedOutput()
	return string(out)
}

// close ends the terminal and what still runs in it, gently.
func (x *terminal) close() {
	x.tmux("send-keys", "C-c")
	for range 100 {
		if !strings.Contains(x.tmux("list-panes", "-F", "#{pane_current_command}"), "fairwayd") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	shell := filepath.Join("/proc", strings.TrimSpace(x.tmux("display-message", "-p", "#{pane_pid}")))
	x.tmux("kill-server")
	for range 100 { // the shell dies of the hang-up a moment after its server's answer
		if _, err := os.Stat(shell); err != nil || shell == "/proc" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (x *terminal) run(line string)  { x.types(line); x.keys("Enter") }
func (x *terminal) types(s string)   { x.tmux("send-keys", "-l", s) }
func (x *terminal) screen() string   { return x.tmux("capture-pane", "-p") }
func (x *terminal) keys(k ...string) { x.tmux(append([]string{"send-keys"}, k...)...) }

// await looks again and again until see is content, and fails with the screen when that never is.
func (x *terminal) await(what string, see func() bool) {
	x.t.Helper()
	for end := time.Now().Add(patience); !see(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatalf("the terminal never shows %s:\n%s", what, x.screen())
		}
	}
}

// shows waits until the screen holds all of the words at once.
func (x *terminal) shows(words ...string) {
	x.t.Helper()
	x.await(strings.Join(words, " and "), func() bool {
		s := x.screen()
		for _, w := range words {
			if !strings.Contains(s, w) {
				return false
			}
		}
		return true
	})
}

// match waits until the screen matches.
func (x *terminal) match(re *regexp.Regexp) (found []string) {
	x.t.Helper()
	x.await(re.String(), func() bool { found = re.FindStringSubmatch(x.screen()); return found != nil })
	return found
}

// log waits until what was ever written to the terminal matches.
func (x *terminal) log(re *regexp.Regexp) (found []string) {
	x.t.Helper()
	x.await(re.String(), func() bool {
		b, _ := os.ReadFile(x.output)
		found = re.FindStringSubmatch(string(b))
		return found != nil
	})
	return found
}

// forwarderName begins a forwarder's row of a list.
var forwarderName = regexp.MustCompile(`^\W*(fwd\d+)`)

// moved reads the column MB/s of a list of forwarders: of a screen, where it stands under its title, or of a page's
// text, where tabs part the cells.
func moved(text string) map[string]string {
	out, cell, end := map[string]string{}, -1, -1
	text = strings.ReplaceAll(text, "\t\n\t", "\t\t") // a cell with a drawing is a line of its own
	for _, line := range strings.Split(text, "\n") {
		cells, runes := strings.Split(line, "\t"), []rune(line)
		if at := strings.Index(line, "MB/s"); at >= 0 && strings.Contains(line[:at], "NODE") {
			cell, end = slices.Index(cells, "MB/s"), len([]rune(line[:at]))+len("MB/s")
			continue
		}
		m := forwarderName.FindStringSubmatch(line)
		switch {
		case m == nil:
		case cell >= 0 && cell < len(cells):
			out[m[1]] = strings.TrimSpace(cells[cell])
		case cell < 0 && end > 0 && end <= len(runes):
			if words := strings.Fields(string(runes[:end])); len(words) > 1 {
				out[m[1]] = words[len(words)-1]
			}
		}
	}
	return out
}

// seesBandwidth waits until so many forwarders are listed with numbers and each of the busy ones has
// been seen moving data.
func (x *terminal) seesBandwidth(listed int, busy ...string) {
	x.t.Helper()
	seen := map[string]bool{}
	x.await("the bandwidth of "+strings.Join(busy, " "), func() bool {
		return bandwidth(moved(x.screen()), listed, seen, busy)
	})
}

// bandwidth adds the forwarders that move data to seen and reports whether all busy ones, at least one, are
// there.
func bandwidth(moved map[string]string, listed int, seen map[string]bool, busy []string) bool {
	known := 0
	for id, rate := range moved {
		if rate == "-" {
			continue
		}
		known++
		if rate != "0" {
			seen[id] = true
		}
	}
	for _, id := range busy {
		if !seen[id] {
			return false
		}
	}
	return known == listed && len(seen) > 0
}
