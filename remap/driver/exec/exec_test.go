package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/cmd/lab/conform/drivertest"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/driver"
)

// TestMain lets the test's own binary be the site's command: with FAIRWAY_EXEC_DIR it acts on a
// directory with one file a node, as a site's script would on its machine.
func TestMain(m *testing.M) {
	if dir := os.Getenv("FAIRWAY_EXEC_DIR"); dir != "" {
		siteCommand(dir)
		return
	}
	os.Exit(m.Run())
}

func siteCommand(dir string) {
	var q request
	if err := json.NewDecoder(os.Stdin).Decode(&q); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	exists := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	if exists("garbage") {
		fmt.Println("not JSON")
	}
	if exists("fail") {
		fmt.Fprintln(os.Stderr, "the switch is locked")
		os.Exit(3)
	}
	say := func(a answer) { _ = json.NewEncoder(os.Stdout).Encode(a) }
	for _, m := range q.Moves {
		file := filepath.Join(dir, string(m.Node))
		at, err := os.ReadFile(file)
		if exists("hang." + string(m.Node)) {
			time.Sleep(time.Minute)
		}
		switch {
		case exists("mute." + string(m.Node)):
		case err != nil || exists("break."+string(m.Node)):
			say(answer{Node: m.Node, Error: "no answer from the node"})
		case q.Verb == "preview" && !strings.HasPrefix(string(m.To), "fwd"):
			say(answer{Node: m.Node, Error: "no such forwarder " + string(m.To)})
		case q.Verb == "observe":
			say(answer{Node: m.Node, Forwarder: topology.ForwarderID(at)})
		case q.Verb == "apply" || q.Verb == "restore":
			if string(at) != string(m.To) {
				if err := errors.Join(os.WriteFile(file, []byte(m.To), 0o600),
					os.WriteFile(file+".changed", nil, 0o600)); err != nil {
					say(answer{Node: m.Node, Error: err.Error()})
					continue
				}
			}
			say(answer{Node: m.Node, OK: true})
		}
	}
}

// site makes a machine of files and the driver over it.
func site(t *testing.T, nodes int) (dir string, d *Driver, moves []remap.Move) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("FAIRWAY_EXEC_DIR", dir)
	for i := range nodes {
		n := topology.NodeID(fmt.Sprintf("cn%d", i))
		touch(t, dir, string(n), "fwd1")
		moves = append(moves, remap.Move{Node: n, From: "fwd1", To: "fwd2"})
	}
	d, err := New([]string{os.Args[0]}, driver.Fan{Tries: 2, Backoff: time.Millisecond, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return dir, d, moves
}

func touch(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		dir, d, moves := site(t, 6)
		return drivertest.Subject{
			Driver: d, Moves: moves,
			At: func(t *testing.T) topology.Mapping {
				at := topology.Mapping{}
				for _, m := range moves {
					b, err := os.ReadFile(filepath.Join(dir, string(m.Node)))
					if err != nil {
						t.Error(err)
					}
					at[m.Node] = topology.ForwarderID(b)
				}
				return at
			},
			Changes: func() int { all, _ := filepath.Glob(filepath.Join(dir, "*.changed")); return len(all) },
			Break:   func(t *testing.T, n topology.NodeID) { touch(t, dir, "break."+string(n), "") },
			Hang:    func(t *testing.T, n topology.NodeID) { touch(t, dir, "hang."+string(n), "") },
			Mend: func(_ *testing.T, n topology.NodeID) {
				os.Remove(filepath.Join(dir, "break."+string(n)))
				os.Remove(filepath.Join(dir, "hang."+string(n)))
			},
		}
	})
}

func TestEveryMoveIsAccountedFor(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"mute.cn1", "the command reported no result"},
		{"break.cn1", "no answer from the node"},
	} {
		dir, d, moves := site(t, 3)
		touch(t, dir, c.file, "")
		got := map[topology.NodeID]remap.Result{}
		err := d.Apply(t.Context(), remap.Plan{ID: "P-1", Moves: moves}, func(r remap.Result) { got[r.Node] = r })
		if err != nil || len(got) != 3 || !got["cn0"].OK || !got["cn2"].OK || got["cn1"].OK || got["cn1"].Tries != 2 ||
			got["cn1"].Error != c.want {
			t.Errorf("%s: %+v, %v", c.file, got, err)
		}
	}
}

func TestAFailingCommandIsNamedWithItsWords(t *testing.T) {
	dir, d, moves := site(t, 2)
	touch(t, dir, "fail", "")
	var got []remap.Result
	err := d.Apply(t.Context(), remap.Plan{Moves: moves}, func(r remap.Result) { got = append(got, r) })
	if err != nil || len(got) != 2 || !strings.Contains(got[0].Error, "exit status 3") ||
		!strings.Contains(got[0].Error, "the switch is locked") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := d.Observe(t.Context(), []topology.NodeID{"cn0"}); err == nil ||
		!strings.Contains(err.Error(), "observe: exit status 3: the switch is locked") {
		t.Errorf("%v", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "fail")), os.WriteFile(filepath.Join(dir, "garbage"), nil,
		0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Preview(t.Context(), remap.Plan{Moves: moves}); err == nil ||
		!strings.Contains(err.Error(), `answer "not JSON"`) {
		t.Errorf("%v", err)
	}
}

// TestAHangingCommandIsCutOff cuts off a command that hangs at its second node, once its first is moved: what
// it did before counts.
func TestAHangingCommandIsCutOff(t *testing.T) {
	dir, d, moves := site(t, 2)
	touch(t, dir, "hang.cn1", "")
	d.fan = driver.Fan{Tries: 1}
	ctx, stop := context.WithCancel(t.Context())
	got := map[topology.NodeID]remap.Result{}
	err := d.Apply(ctx, remap.Plan{Moves: moves}, func(r remap.Result) {
		got[r.Node] = r
		stop()
	})
	if err != nil || !got["cn0"].OK || got["cn1"].OK ||
		!strings.HasSuffix(got["cn1"].Error, "cut off: context canceled") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestWhatTheCommandStartedIsCutOffToo has the site's command leave its work to a child: the child is gone
// when the order is cut off.
func TestWhatTheCommandStartedIsCutOffToo(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh on this machine")
	}
	pipe := filepath.Join(t.TempDir(), "alive") // ends when the last process that holds it open is gone
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := New([]string{sh, "-c", `sleep 600 >"$0" & wait`, pipe}, driver.Fan{Tries: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	applied := make(chan error, 1)
	go func() {
		applied <- d.Apply(ctx, remap.Plan{Moves: []remap.Move{{Node: "cn0", From: "fwd1", To: "fwd2"}}},
			func(remap.Result) {})
	}()
	held, err := os.Open(pipe) // waits for the child
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	stop()
	if err := <-applied; err != nil {
		t.Error(err)
	}
	if err := held.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the child goes on: %v", err)
	}
}

func TestTheTimeLimitCutsTheCommandOff(t *testing.T) {
	dir, d, moves := site(t, 1)
	touch(t, dir, "hang.cn0", "")
	d.fan = driver.Fan{Tries: 1, Timeout: 100 * time.Millisecond}
	var got remap.Result
	err := d.Apply(t.Context(), remap.Plan{Moves: moves}, func(r remap.Result) { got = r })
	if err != nil || got.OK || !strings.HasSuffix(got.Error, "cut off: context deadline exceeded") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTheCommandMustExist(t *testing.T) {
	if _, err := New(nil, driver.Fan{}); err == nil {
		t.Error("no command is taken")
	}
	if _, err := New([]string{"/nonexistent/remap"}, driver.Fan{}); err == nil ||
		!strings.Contains(err.Error(), "/nonexistent/remap") {
		t.Errorf("%v", err)
	}
}
