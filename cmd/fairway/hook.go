package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/collector/logs/slurm"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/remap/policy/dfra"
	"fairway/webui/client"
)

const (
	// hookWithin is how long a job may wait for its decision; a batch system's own limit is far above it.
	hookWithin = 2 * time.Second
	// hookGrace is what the process may take beyond that before it ends itself, whatever hangs.
	hookGrace = 200 * time.Millisecond
	// hookAsks is how often a plan under way is looked at.
	hookAsks = 20 * time.Millisecond
)

// newHook is what Slurm calls: PrologSlurmctld and EpilogSlurmctld.
func newHook(o *options) *cobra.Command {
	var within time.Duration
	c := &cobra.Command{
		Use: "hook", Short: "Report a job's start and end, as Slurm's PrologSlurmctld and EpilogSlurmctld",
		Long: "Both hooks read the job from SLURM_* variables, end within --within, and always exit with 0: Slurm\n" +
			"would requeue the job otherwise. Whatever happens to fairwayd, the job starts, on its default mapping.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return program.BadUsage(errors.New("hook needs a verb: dispatch or end"))
		},
	}
	c.PersistentFlags().DurationVar(&within, "within", hookWithin, "longest that the job waits")
	verb := func(name, short string, report func(context.Context, *client.Client, func(string) string,
		io.Writer) error) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				hang := time.AfterFunc(within+hookGrace, func() { os.Exit(program.Done) })
				defer hang.Stop()
				ctx, cancel := context.WithTimeout(c.Context(), within)
				defer cancel()
				if err := o.report(ctx, report, c.OutOrStdout()); err != nil {
					fmt.Fprintf(c.ErrOrStderr(), "fairway hook %s: %v (the job goes on without it)\n", name, err)
				}
				return nil
			}}
	}
	c.AddCommand(
		verb("dispatch", "A job is about to start: have its forwarders decided, and wait until its nodes have moved",
			o.dispatch),
		verb("end", "A job has ended: have its nodes moved back", o.end),
	)
	return c
}

// isHook says whether a command line asks for a hook.
func isHook(root *cobra.Command, args []string) bool {
	c, _, _ := root.Find(args)
	for ; c != nil; c = c.Parent() {
		if c.Name() == "hook" {
			return true
		}
	}
	return false
}

func (o *options) report(ctx context.Context, report func(context.Context, *client.Client, func(string) string,
	io.Writer) error, out io.Writer) error {
	cl, err := o.connect()
	if err != nil {
		return err
	}
	defer cl.Close()
	return report(ctx, cl, os.Getenv, out)
}

// slurmJob reads the job that Slurm's controller put into the environment of its prolog. The
// application is the job's name, or what "app=..." in its comment says.
func slurmJob(env func(string) string) (r dispatch.Request, err error) {
	r = dispatch.Request{Job: topology.JobID(env("SLURM_JOB_ID")), User: env("SLURM_JOB_USER"),
		App: slurm.Application(env("SLURM_JOB_NAME"), env("SLURM_JOB_COMMENT")), Project: env("SLURM_JOB_ACCOUNT")}
	if r.Project == "(null)" { // as Slurm writes a job without an account
		r.Project = ""
	}
	if r.Job == "" {
		return r, errors.New("SLURM_JOB_ID is not set: this is not Slurm's environment")
	}
	if r.Nodes, err = topology.ParseHostList(env("SLURM_JOB_NODELIST")); err != nil {
		return r, fmt.Errorf("SLURM_JOB_NODELIST: %w", err)
	}
	return r, nil
}

// dispatch has a job decided and waits while its nodes are being moved.
func (o *options) dispatch(ctx context.Context, cl *client.Client, env func(string) string, out io.Writer) error {
	r, err := slurmJob(env)
	if err != nil {
		return err
	}
	begun := time.Now()
	a, err := cl.Dispatch(ctx, r)
	for err == nil && slices.Contains([]remap.PlanState{remap.Approved, remap.Applying}, a.State) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("job %s: plan %s is still %s", r.Job, a.Plan, a.State)
		case <-time.After(hookAsks):
		}
		a, err = cl.Dispatch(ctx, r)
	}
	if err != nil {
		return fmt.Errorf("job %s: %w", r.Job, err)
	}
	if o.json {
		return printJSON(out, a)
	}
	_, err = fmt.Fprintf(out, "fairway: job %s: %s, %.0f ms\n", r.Job, decided(&a), time.Since(begun).Seconds()*1000)
	return err
}

// decided is the answer in a line of the controller's log.
func decided(a *dispatch.Answer) string {
	switch {
	case a.Refused != "":
		return "no plan: " + a.Refused
	case a.Plan == "":
		return "keeps its default forwarders"
	case a.Decision.Action == dfra.Default:
		return fmt.Sprintf("away from slow forwarders, plan %s %s", a.Plan, a.State)
	}
	return fmt.Sprintf("%s on %d forwarders, plan %s %s", a.Decision.Action, a.Decision.Count, a.Plan, a.State)
}

// end has a job's mapping taken back.
func (o *options) end(ctx context.Context, cl *client.Client, env func(string) string, out io.Writer) error {
	id := topology.JobID(env("SLURM_JOB_ID"))
	if id == "" {
		return errors.New("SLURM_JOB_ID is not set: this is not Slurm's environment")
	}
	e, err := cl.EndJob(ctx, id)
	if err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	if o.json {
		return printJSON(out, e)
	}
	_, err = fmt.Fprintf(out, "fairway: job %s has ended; plans taken back: %d\n", id, len(e.Plans))
	for _, f := range e.Failed {
		_, err = fmt.Fprintf(out, "fairway: job %s: %s\n", id, f)
	}
	return err
}
