package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/lab/conform/manual"
	"fairway/cmd/lab/simsite"
	"fairway/cmd/program"
	"fairway/remap/desk"
	"fairway/remap/window"
)

// periodicSet are two applications that write by turns.
const periodicSet = `{"procs":200,"b":0.01,"B":1,"kprime":2,"eps":0.01,"apps":[{"name":"a","w":10,"vol":10,` +
	`"beta":100},{"name":"b","w":10,"vol":10,"beta":100}]}`

const (
	always    = "answers in JSON without --json"
	changes   = "changes something"
	opens     = "opens the terminal"
	batch     = "speaks to the batch system or a shell"
	elsewhere = "its --json has a test with the files that it reads"
)

// withoutJSON are the commands that are not asked for JSON here, and why.
var withoutJSON = map[string]string{
	"fairway accept": "a page for people", "fairway plan complete": "acts", "fairway record": "writes a directory",
	"fairway": opens, "fairway top": opens, "fairway open": opens, "fairway tour": opens,
	"fairway replay":        opens,
	"fairway hook dispatch": batch, "fairway hook end": batch, "fairway hook env": batch,
	"fairway window wait":  "says nothing: it waits",
	"fairway sign-in-link": "gives a right, on the unix socket alone",
	"fairway decide":       always, "fairway filedomain": always, "fairway rootcause": always, "fairway shares": always,
	"fairway darshan": always, "fairway lmt": always, "fairway lustre": always, "fairway lwfs": always,
	"fairway sacct":    always,
	"fairway backtest": elsewhere, "fairway detect": elsewhere, "fairway look": elsewhere, "fairway import": changes,
	"fairway findings export": "writes the incident's file",
	"fairway sessions end":    changes, "fairway plan approve": changes, "fairway plan reject": changes,
	"fairway undo": changes, "fairway plan rollback": changes, "fairway plan stop": changes,
	"fairway remap": changes, "fairway limit": changes,
	"fairway drain": changes, "fairway return": changes, "fairway canary": changes, "fairway alerts test": changes,
	"fairway findings ack": changes, "fairway findings dismiss": changes, "fairway findings silence": changes,
	"fairway findings note":  changes,
	"fairway standing allow": changes, "fairway standing revoke": changes,
}

// jsonOf is how each other command is asked; {dir} has a journal and a case.
var jsonOf = map[string]string{
	"fairway alerts": "", "fairway audit": "", "fairway audit verify": "{dir}/journal", "fairway doctor": "",
	"fairway exclusions": "", "fairway findings": "", "fairway job": "8", "fairway jobs": "",
	"fairway keys": "",
	"fairway node": "fwd001", "fairway nodes": "", "fairway occupancy": "", "fairway periodic": "{dir}/set.json",
	"fairway plan show": "P-000001", "fairway plans": "", "fairway query": "", "fairway report": "",
	"fairway rules": "", "fairway rules test": "",
	"fairway sessions": "", "fairway sites": "", "fairway standing": "", "fairway version": "", "fairway why": "9",
	"fairway window show": "",
}

// command runs one command line and returns what it printed and its exit code.
func command(t *testing.T, args ...string) (string, int) {
	t.Helper()
	out, _, err := manual.Call(t, newRoot(), "", args...)
	if err != nil {
		out += err.Error()
	}
	return out, cli.Code(err)
}

// TestEveryReadingCommandAnswersInJSON walks all commands.
func TestEveryReadingCommandAnswersInJSON(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(5)
	s.StartTwo()
	if _, code := command(t, append(s.Flags(simsite.OperatorSecret), "remap", "c00000", "--to", "fwd003", "--reason",
		"to have a plan")...); code != program.Done {
		t.Fatal("no plan was made")
	}
	dir := t.TempDir()
	d, _, err := desk.Open(desk.Config{Settings: desk.DefaultSettings(), Path: filepath.Join(dir, "journal"),
		Situation: s.Situation})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	for name, text := range map[string]string{"sites.toml": "[site.a]\naddr = \"http://a\"\n",
		"set.json": periodicSet} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(window.Env, (&window.Window{From: time.Now(), Every: time.Minute,
		Open: []window.Span{{Start: 0, End: 10 * time.Second}}}).String())
	t.Setenv("FAIRWAY_SITES", filepath.Join(dir, "sites.toml"))
	fill := strings.NewReplacer("{dir}", dir)
	asked := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		path := c.CommandPath()
		asked[path] = true
		line, ok := jsonOf[path]
		if !ok && c.HasSubCommands() || c.Hidden || c.Name() == "help" ||
			strings.HasPrefix(path, "fairway completion") || withoutJSON[path] != "" {
			return
		}
		if !ok {
			t.Errorf("%s: neither asked for JSON nor is there a reason why not", path)
			return
		}
		args := append(s.Flags(simsite.OperatorSecret), "--json")
		args = append(args, strings.Fields(strings.TrimPrefix(path, "fairway "))...)
		out, code := command(t, append(args, strings.Fields(fill.Replace(line))...)...)
		d := json.NewDecoder(bytes.NewReader([]byte(out)))
		n := 0
		var err error
		for ; err == nil; n++ {
			err = d.Decode(new(any))
		}
		if code != program.Done || !errors.Is(err, io.EOF) || n < 2 {
			t.Errorf("%s %s: exit %d, %v:\n%.300s", path, line, code, err, out)
		}
	}
	walk(newRoot())
	for path := range withoutJSON {
		if !asked[path] {
			t.Errorf("%s is in the table and no command", path)
		}
	}
}
