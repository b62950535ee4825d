package program

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
)

func TestCharactersMayArriveInParts(t *testing.T) {
	var out bytes.Buffer
	p := Plain(&out)
	for _, b := range []byte("ä\u009b\tb\xff\n") {
		if n, err := p.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if out.String() != "ä?\tb?\n" {
		t.Errorf("%q", out.String())
	}
}

// TestWhatAProgramPrintsIsPlain: no command of any program writes an order to a terminal, but JSON stays as it is.
func TestWhatAProgramPrintsIsPlain(t *testing.T) {
	const hostile = "a\x1b]0;b\a\u202ec"
	var out, errs bytes.Buffer
	root := &cobra.Command{Use: "tool", SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error {
			fmt.Fprintln(c.OutOrStdout(), hostile)
			fmt.Fprintln(Raw(c.OutOrStdout()), "\u00a0")
			return errors.New(hostile)
		}}
	root.SetOut(&out)
	root.SetErr(&errs)
	if err := Run(t.Context(), root, nil); err == nil {
		t.Error("the command did not fail")
	}
	if out.String() != "a?]0;b??c\n\u00a0\n" || errs.String() != "tool: a?]0;b??c\n" {
		t.Errorf("%q and %q", out.String(), errs.String())
	}
}
