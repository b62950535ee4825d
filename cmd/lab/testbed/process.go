package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// readyWithin bounds how long a started program may take to answer.
	readyWithin = 20 * time.Second
	pollEvery   = 20 * time.Millisecond
	// endWithin is how long a program may take to end when asked to.
	endWithin = 2 * time.Second
	// tailBytes of a program's log are quoted in an error.
	tailBytes = 800
)

// process is one long-running program of the testbed.
type process struct {
	what string // "diod on fwd000"
	cmd  *NodeCommand
	log  string
	done chan struct{} // closed when it has ended
	err  error         // why; valid once done is closed
}

// launch starts a program on a node, with its output in a file of the log directory.
func (tb *Testbed) launch(n *node, program string, argv ...string) (*process, error) {
	p := &process{
		what: fmt.Sprintf("%s on %s", program, n.id), done: make(chan struct{}),
		log: filepath.Join(tb.LogDir(), fmt.Sprintf("%s.%s.log", program, n.id)),
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	// The program outlives every request's context: Close ends it.
	if p.cmd, err = n.command(context.Background(), argv...); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.what, err)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.what, err)
	}
	go func() { // ends with the program, which kill and the node's end both bring about
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// pid is the program's process as this process sees it.
func (p *process) pid() int { return p.cmd.Process.Pid }

// awaitReady polls check until it succeeds; the program's death or readyWithin ends the wait with
// an error that quotes its log.
func (p *process) awaitReady(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready (%v); its log %s ends:\n%s", p.what, p.err, p.log,
				tail(p.log))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w): %w; its log %s ends:\n%s", p.what, ctx.Err(), err, p.log,
				tail(p.log))
		case <-time.After(pollEvery):
		}
	}
}

// signal sends a signal; a program that has ended gets none, without an error.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", s, p.what, err)
	}
	return nil
}

// kill ends the program at once, even a stopped one, and waits until it is gone.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL)
	<-p.done
}

// terminate asks the program to end, and kills it when it does not within endWithin.
func (p *process) terminate() error {
	err := p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(endWithin):
		p.kill()
	}
	return err
}

// tail returns the end of a log file, or why it cannot.
func tail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return tailOf(b)
}

func tailOf(b []byte) string {
	b = bytes.TrimSpace(b)
	if len(b) > tailBytes {
		b = b[len(b)-tailBytes:]
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	if len(b) == 0 {
		return "(empty)"
	}
	return string(b)
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
		return out.Bytes(), fmt.Errorf("%s on %s: %w: %s", strings.Join(argv, " "), n.id, err, tailOf(errOut.Bytes()))
	}
	return out.Bytes(), nil
}
