package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"fairway/collector"
)

// maxAnswer bounds what a command may print: some hundred thousand jobs.
const maxAnswer = 256 << 20

// Ask runs a command that prints jobs (squeue --json, scontrol show job) and returns them. No shell
// reads argv; timeout bounds the run. What cannot be read whole is an error and no list: whoever
// looks for a job in it would take it for gone.
func Ask(ctx context.Context, argv []string, timeout time.Duration, o Options) (jobs []Job, err error) {
	if len(argv) == 0 {
		return nil, errors.New("no command to ask for jobs")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.WaitDelay = time.Second
	out, messages := collector.Output{Most: maxAnswer}, collector.Output{Most: 400}
	c.Stdout, c.Stderr = &out, &messages
	if err = c.Run(); ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s: %w", timeout, ctx.Err())
	}
	switch {
	case err != nil:
	case out.Cut:
		err = fmt.Errorf("it printed more than %d bytes", maxAnswer)
	case len(out.Bytes()) == 0:
		err = errors.New("it printed nothing")
	default:
		err = Read(bytes.NewReader(out.Bytes()), o, func(j *Job) error {
			jobs = append(jobs, *j)
			return nil
		})
	}
	if err == nil {
		return jobs, nil
	}
	if words := messages.String(); words != "" {
		err = fmt.Errorf("%w: %s", err, words)
	}
	return nil, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
}

// Ended says that the job has ended, and so that End is a fact where it is known.
func (j *Job) Ended() bool { return j.ended() }
