package leash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	pollEvery = 20 * time.Millisecond
	// endWithin is how long a program may take to end when asked to.
	endWithin = 10 * time.Second
	// tailBytes of a program's log are quoted in an error.
	tailBytes = 800
)

// Process is one long-running program with its output in a file.
type Process struct {
	Ended chan struct{} // closed when it has ended

	what string // "diod on fwd000"
	cmd  *exec.Cmd
	log  string
	err  error // how it ended; valid once Ended is closed
}

// Launch has start start a command, whose output goes to the end of a file. Whoever launches it ends it.
func Launch(what, log string, cmd *exec.Cmd, start func() error) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", what, err)
	}
	p := &Process{Ended: make(chan struct{}), what: what, cmd: cmd, log: log}
	go func() { // ends with the program
		p.err = cmd.Wait()
		close(p.Ended)
	}()
	return p, nil
}

// PID is the program's process as this process sees it.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Err is the error of a program that ended by itself, with the end of its log.
func (p *Process) Err() error {
	return fmt.Errorf("%s ended by itself (%v); its log %s ends:\n%s", p.what, p.err, p.log, p.Tail())
}

// AwaitReady polls check until it succeeds. The program's end or a while ends the wait; the error quotes its log.
func (p *Process) AwaitReady(ctx context.Context, within time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Ended:
			return p.Err()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w): %w; its log %s ends:\n%s", p.what, ctx.Err(), err, p.log, p.Tail())
		case <-time.After(pollEvery):
		}
	}
}

// Signal sends a signal; a program that has ended gets none, without an error.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", s, p.what, err)
	}
	return nil
}

// Kill ends the program at once, even a stopped one, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.Ended
}

// Terminate asks the program to end, and kills it when it does not within a while.
func (p *Process) Terminate() error {
	err := p.Signal(syscall.SIGTERM)
	select {
	case <-p.Ended:
	case <-time.After(endWithin):
		p.Kill()
	}
	return err
}

// Tail is the end of the program's log, or why that cannot be read.
func (p *Process) Tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return TailOf(b)
}

// TailOf is the end of a program's output, in whole lines.
func TailOf(b []byte) string {
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

// Look finds a program on PATH or in the administrator's folders, which a user's PATH may lack.
func Look(name string) (string, error) {
	for _, dir := range []string{"", "/usr/sbin/", "/sbin/", "/usr/local/sbin/"} {
		if p, err := exec.LookPath(dir + name); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("program %s not found", name)
}

// ShellWords writes an argv so that a shell reads it back.
func ShellWords(argv ...string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// FreeAddr is an address of a host, HOST:PORT, that nobody listens at.
func FreeAddr(host string) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
