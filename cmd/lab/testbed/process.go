package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"fairway/cmd/lab/leash"
)

// readyWithin bounds how long a started program may take to answer.
const readyWithin = 20 * time.Second

// launch starts a program on a node, with its output in a file of the log directory. It outlives every request's
// context: Close ends it.
func (tb *Testbed) launch(n *node, program string, argv ...string) (*leash.Process, error) {
	cmd, err := n.command(context.Background(), argv...)
	if err != nil {
		return nil, fmt.Errorf("start %s on %s: %w", program, n.id, err)
	}
	return leash.Launch(fmt.Sprintf("%s on %s", program, n.id),
		filepath.Join(tb.LogDir(), fmt.Sprintf("%s.%s.log", program, n.id)), cmd.Cmd, cmd.Start)
}

// exec runs a command on the node and returns its standard output.
func (n *node) exec(ctx context.Context, argv ...string) ([]byte, error) {
	return n.execInput(ctx, "", argv...)
}

// execInput is exec with something on standard input.
func (n *node) execInput(ctx context.Context, input string, argv ...string) ([]byte, error) {
	cmd, err := n.command(ctx, argv...)
	if err != nil {
		return nil, err
	}
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errOut
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return out.Bytes(), fmt.Errorf("%s on %s: %w: %s", strings.Join(argv, " "), n.id, err,
			leash.TailOf(errOut.Bytes()))
	}
	return out.Bytes(), nil
}
