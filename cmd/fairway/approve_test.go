package main

import (
	"strings"
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/cmd/program"
	"fairway/webui/api"
	"fairway/webui/client"
)

// On a terminal an approval shows the plan and asks; what is not a yes leaves it as it is.
func TestApproveAsksOnATerminal(t *testing.T) {
	s := daemon(t, simsite.Options{})
	ada, err := client.New("http://"+s.TCP, simsite.AdminSecret)
	if err != nil {
		t.Fatal(err)
	}
	defer ada.Close()
	p, err := ada.Propose(t.Context(), api.ManualRemap{Nodes: s.Machine.Topo.Default.Clients("fwd001")[:1],
		To: "fwd000", Reason: "fwd001 is slow today"})
	if err != nil {
		t.Fatal(err)
	}
	flags := s.Flags(simsite.OperatorSecret)
	for _, answer := range []string{"\r", "n\r"} {
		x := startTerminal(t, flags, "plan", "approve", p.ID, "--reason", "fwd001 is slow")
		x.sees(`because "fwd001 is slow"? [y/N]`)
		x.press(answer)
		x.sees("was not approved; nothing was moved")
	}
	x := startTerminal(t, flags, "plan", "approve", p.ID, "--reason", "fwd001 is slow")
	x.sees("[y/N]")
	x.press("y\r")
	x.sees("done 1 of 1")

	// What was done last is taken back after a yes; a script says so beforehand.
	back := "roll back " + p.ID + ": its nodes go back to where they were"
	x = startTerminal(t, flags, "undo")
	x.sees("You approved " + p.ID + ". " + back + "? [y/N]")
	x.press("\r")
	x.sees("nothing was undone")
	if out, code := command(t, append(flags, "undo")...); code != program.Usage || !strings.Contains(out, "--yes") {
		t.Errorf("without a terminal: %d %q", code, out)
	}
	if out, code := command(t, append(flags, "undo", "--yes")...); code != program.Done || out != "done: "+back+"\n" {
		t.Errorf("with --yes: %d %q", code, out)
	}
	if out, code := command(t, append(flags, "undo", "--yes")...); code != program.Changed ||
		!strings.Contains(out, "you rolled back "+p.ID+"; no key takes that back") {
		t.Errorf("once more: %d %q", code, out)
	}
}
