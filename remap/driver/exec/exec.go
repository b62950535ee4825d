// Package exec moves compute nodes by a command of the site's own, run beside fairwayd. The command
// is a list of arguments, no shell reads it; the request comes as JSON on its standard
// input, and it answers with one JSON object a line on its standard output.
//
//	in:   {"verb":"apply","plan":"P-000001","moves":[{"node":"cn1","from":"fwd1","to":"fwd2"}]}
//	out:  {"node":"cn1","ok":true}
//	      {"node":"cn2","error":"no answer"}
//
// The verbs are preview, apply, restore (moves are turned around already) and observe (moves have
// nodes only; each line answers with the forwarder). Apply and restore must be safe to repeat.
package exec

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"fairway/collector"
	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/driver"
)

// Driver runs the command.
type Driver struct {
	argv []string
	fan  driver.Fan // Tries, Backoff and Timeout; one run of the command does many moves
}

var _ remap.Driver = (*Driver)(nil)

// New returns a driver over a command, whose first element is an absolute path or found in PATH.
func New(argv []string, fan driver.Fan) (*Driver, error) {
	if len(argv) == 0 {
		return nil, errors.New("the exec driver has no command (set driver.command)")
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil, fmt.Errorf("the exec driver's command: %w", err)
	}
	return &Driver{argv: argv, fan: fan}, nil
}

// request is the command's standard input.
type request struct {
	Verb  string       `json:"verb"`
	Plan  string       `json:"plan,omitempty"`
	Force bool         `json:"force,omitempty"`
	Moves []remap.Move `json:"moves"`
}

// answer is one line of its standard output.
type answer struct {
	Node      topology.NodeID      `json:"node"`
	OK        bool                 `json:"ok"`
	Error     string               `json:"error"`
	Forwarder topology.ForwarderID `json:"forwarder"`
	Text      string               `json:"text"` // of a preview
}

// maxLine and maxErrors bound the command's words.
const (
	maxLine   = 64 << 10
	maxErrors = 4 << 10
)

// run runs the command once and shows every line. The error ends with its standard error.
func (d *Driver) run(ctx context.Context, q request, visit func(answer)) error {
	in, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if d.fan.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.fan.Timeout)
		defer cancel()
	}
	c := exec.CommandContext(ctx, d.argv[0], d.argv[1:]...)
	c.WaitDelay = time.Second
	// What the command has started ends with it: a child that goes on would move nodes behind the desk's back.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.Stdin = bytes.NewReader(in)
	errs := collector.Output{Most: maxErrors}
	c.Stderr = &errs
	pipe, out := io.Pipe()
	c.Stdout = out
	var read sync.WaitGroup
	var bad error
	read.Go(func() { bad = lines(pipe, visit) })
	err = c.Run()
	_ = out.Close()
	read.Wait()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("cut off: %w", ctx.Err())
	case err == nil:
		err = bad
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s %s: %w", d.argv[0], q.Verb, err)
	if words := errs.String(); words != "" {
		err = fmt.Errorf("%w: %s", err, words)
	}
	return err
}

// lines reads answers to the end, so that the command never waits; it returns the first bad line.
func lines(in io.Reader, visit func(answer)) (bad error) {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 4<<10), maxLine)
	for s.Scan() {
		if len(bytes.TrimSpace(s.Bytes())) == 0 {
			continue
		}
		var a answer
		if err := json.Unmarshal(s.Bytes(), &a); err != nil {
			if bad == nil {
				bad = fmt.Errorf("answer %.80q: %w", s.Bytes(), err)
			}
			continue
		}
		visit(a)
	}
	if err := s.Err(); err != nil && bad == nil {
		bad = fmt.Errorf("answer: %w", err)
	}
	_, _ = io.Copy(io.Discard, in)
	return bad
}

// Preview asks the command; a line with an error names what cannot be done.
func (d *Driver) Preview(ctx context.Context, p remap.Plan) (texts []string, err error) {
	for _, m := range p.Moves {
		if m.Spread != "" {
			return nil, fmt.Errorf("%s: it spreads its traffic over %s, which the command could not give back", m.Node,
				m.Spread)
		}
	}
	var cannot error
	err = d.run(ctx, request{Verb: "preview", Plan: p.ID, Force: p.Force, Moves: p.Moves}, func(a answer) {
		if a.Error != "" && cannot == nil {
			cannot = fmt.Errorf("%s: %s", a.Node, a.Error)
		}
		if a.Text != "" {
			texts = append(texts, a.Text)
		}
	})
	return texts, errors.Join(err, cannot)
}

// Apply has every move of p made.
func (d *Driver) Apply(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	return d.moveAll(ctx, request{Verb: "apply", Plan: p.ID, Force: p.Force, Moves: p.Moves}, report)
}

// Restore has every move of p taken back.
func (d *Driver) Restore(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	return d.moveAll(ctx, request{Verb: "restore", Plan: p.ID, Force: p.Force, Moves: driver.Back(p.Moves)}, report)
}

// moveAll runs the command, and again for the moves that were not made, with back-off. A move of
// which the last run has no result has failed.
func (d *Driver) moveAll(ctx context.Context, q request, report func(remap.Result)) error {
	begun, wait := time.Now(), d.fan.Backoff
	for try := 1; len(q.Moves) > 0; try++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		open := make(map[topology.NodeID]string, len(q.Moves)) // and why
		for _, m := range q.Moves {
			open[m.Node] = "the command reported no result"
		}
		result := func(n topology.NodeID, why string) {
			report(remap.Result{Node: n, OK: why == "", Tries: try, Error: why, At: time.Now(),
				Took: time.Since(begun)})
		}
		err := d.run(ctx, q, func(a answer) {
			switch _, asked := open[a.Node]; {
			case !asked:
			case a.OK:
				delete(open, a.Node)
				result(a.Node, "")
			case a.Error != "":
				open[a.Node] = a.Error
			}
		})
		var left []remap.Move
		for _, m := range q.Moves {
			if _, is := open[m.Node]; is {
				left = append(left, m)
			}
		}
		if q.Moves = left; len(left) == 0 {
			return nil
		}
		if try >= d.fan.Tries || ctx.Err() != nil {
			for _, m := range left {
				why := open[m.Node]
				if err != nil {
					why = err.Error()
				}
				result(m.Node, why)
			}
			return nil
		}
		pace.Wait(ctx, wait)
		wait *= 2
	}
	return nil
}

// Observe asks the command which forwarder the nodes use.
func (d *Driver) Observe(ctx context.Context, nodes []topology.NodeID) (topology.Mapping, error) {
	q := request{Verb: "observe", Moves: remap.MoveAll(nodes, "")}
	found := topology.Mapping{}
	var cannot error
	err := d.run(ctx, q, func(a answer) {
		if a.Forwarder != "" {
			found[a.Node] = a.Forwarder
		} else if cannot == nil {
			cannot = fmt.Errorf("%s: %s", a.Node, a.Error)
		}
	})
	return found, errors.Join(err, cannot)
}
