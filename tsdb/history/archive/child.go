package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"fairway/tsdb/history/iolog"
)

// asked is what a child process is asked, in JSON.
type asked struct {
	Dir    string
	SQL    string
	Limit  int
	Limits Limits
}

// answered is what it answers; Error with Bad is the asker's mistake.
type answered struct {
	Result iolog.Result
	Error  string `json:",omitempty"`
	Bad    bool   `json:",omitempty"`
}

// askChild has SQL that somebody wrote answered by a process of its own, whose memory the kernel bounds: what DuckDB's
// functions make of long texts is beyond its own limit.
func askChild(ctx context.Context, command []string, q asked) (iolog.Result, error) {
	in, err := json.Marshal(q)
	if err != nil {
		return iolog.Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Stdin = bytes.NewReader(in)
	c.Env = []string{fmt.Sprintf("GOMEMLIMIT=%d", q.Limits.MemoryBytes/4), "GOMAXPROCS=2", "MALLOC_ARENA_MAX=2"}
	pipe, err := c.StdoutPipe()
	if err != nil {
		return iolog.Result{}, err
	}
	if err := c.Start(); err != nil {
		return iolog.Result{}, fmt.Errorf("archive: start a query: %w", err)
	}
	// JSON of a row is at most some times as long as what is counted of it.
	const escaped = 6
	d := json.NewDecoder(io.LimitReader(pipe, escaped*q.Limits.AnswerBytes+1<<20))
	d.UseNumber()
	var a answered
	decoded := d.Decode(&a)
	if decoded != nil {
		cancel()
	}
	ended := c.Wait()
	switch {
	case ctx.Err() != nil && decoded == nil, a.Error != "" && !a.Bad:
		return iolog.Result{}, errors.Join(ctx.Err(), fmt.Errorf("archive: %s", a.Error))
	case a.Bad:
		return iolog.Result{}, &queryError{a.Error}
	case decoded != nil:
		if context.Cause(ctx) == context.DeadlineExceeded {
			return iolog.Result{}, ctx.Err()
		}
		return iolog.Result{},
			fmt.Errorf("%w: it was ended: it needs more than %d MB of memory, or cannot be answered (%v)",
				iolog.ErrQuery, q.Limits.MemoryBytes>>20, ended)
	}
	return a.Result, nil
}

// queryError is a child's words of a mistake in a query.
type queryError struct{ text string }

func (e *queryError) Error() string { return e.text }
func (e *queryError) Unwrap() error { return iolog.ErrQuery }

// Answer is the child's side of a question: it bounds this process, answers one question from in to out, and is done.
func Answer(ctx context.Context, in io.Reader, out io.Writer) error {
	var q asked
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return fmt.Errorf("archive: a question on standard input: %w", err)
	}
	most := uint64(q.Limits.MemoryBytes)
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return fmt.Errorf("archive: bound this process's memory: %w", err)
	}
	q.Limits.MemoryBytes /= 2 // of DuckDB's own; the rest is what it does not count
	q.Limits.Threads = 2
	res, err := Query(WithLimits(ctx, q.Limits), q.Dir, q.SQL, nil, q.Limit)
	a := answered{Result: res}
	if err != nil {
		a = answered{Error: err.Error(), Bad: errors.Is(err, iolog.ErrQuery)}
	}
	return json.NewEncoder(out).Encode(a)
}
