// Package hook reports jobs that start and end, as batch systems call it, and keeps a job to its I/O window.
package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/collector/pace"
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

// Add adds the room's commands.
func Add(root *cobra.Command, o *cli.Options) { root.AddCommand(newHook(o), newWindow(o)) }

// newHook is what batch systems call when a job starts and ends.
func newHook(o *cli.Options) *cobra.Command {
	var within time.Duration
	var g given
	c := &cobra.Command{
		Use: "hook", Short: "Report a job's start and end, from a batch system's prologue and epilogue",
		Long: "Both hooks read the job from the environment that the batch system of --system gives them " +
			"(docs/slurm.md), or\n" +
			"from their flags; nothing else of the environment counts, for a job's user may have written it.\n" +
			"They end within --within and always exit with 0: the batch system would requeue the " +
			"job\n" +
			"otherwise. Whatever happens to fairwayd, the job starts, on its default mapping.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return program.BadUsage(errors.New("hook needs a verb: dispatch or end"))
		},
	}
	f := c.PersistentFlags()
	f.DurationVar(&within, "within", hookWithin, "longest that the job waits")
	f.StringVar(&g.system, "system", "", "whose environment it is: slurm, pbs, lsf or flux; none is read without it")
	f.StringVar(&g.job, "job", "", "the job's ID; the environment's without it")
	f.StringVar(&g.caFile, "ca-file", "", "certificates (PEM) to trust over HTTPS; the host's without it")
	verb := func(name, short string, act hookVerb) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				env, err := withoutEnvironment(o, c, &g)
				if err != nil {
					goOn(c, err)
					return nil
				}
				hang := time.AfterFunc(within+hookGrace, func() { giveUp(c, within) })
				defer hang.Stop()
				ctx, cancel := context.WithTimeout(c.Context(), within)
				defer cancel()
				if err := report(ctx, o, env, act, &g, c.OutOrStdout()); err != nil {
					goOn(c, err)
				}
				return nil
			}}
	}
	start := verb("dispatch",
		"A job is about to start: have its forwarders decided, and wait until its nodes have moved",
		dispatchJob)
	f = start.Flags()
	f.StringVar(&g.user, "user", "", "its user; the environment's without it")
	f.StringVar(&g.name, "name", "", "its name; the environment's without it")
	f.StringVar(&g.account, "account", "", "its account or project; the environment's without it")
	f.StringVar(&g.nodes, "nodes", "", "its nodes, such as cn[001-004],cn007; the environment's without it")
	f.StringVar(&g.envDir, "env-dir", "",
		"folder that the nodes see, too: what a job's environment is to have is written there, for hook env")
	f.BoolVar(&g.hints, "hints", false,
		"its user asks for ROMIO hints; with Slurm the word hints=romio in the job's comment does so")
	end := verb("end", "A job has ended: have its nodes moved back", endJob)
	end.Flags().StringVar(&g.envDir, "env-dir", "", "folder of hook dispatch: what is there of the job is removed")
	c.AddCommand(start, end, newHookEnv(&g))
	return c
}

// goOn says what failed, which costs the job nothing but that.
func goOn(c *cobra.Command, err error) {
	fmt.Fprintf(c.ErrOrStderr(), "%s: %s (the job goes on without it)\n", c.CommandPath(), program.Wording(err))
}

// giveUp ends the process, and says so unless it is the output that hangs.
func giveUp(c *cobra.Command, within time.Duration) {
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		goOn(c, fmt.Errorf("it hung for longer than --within %s, and was ended", within))
	}()
	select {
	case <-printed:
	case <-time.After(hookGrace):
	}
	os.Exit(program.Done)
}

// Is says whether a command line asks for a hook.
func Is(root *cobra.Command, args []string) bool {
	c, _, _ := root.Find(args)
	for ; c != nil; c = c.Parent() {
		if c.Name() == "hook" {
			return true
		}
	}
	return false
}

// environment is what a batch system's variables say.
type environment = func(name string) string

// hookVerb is what a hook does with a job.
type hookVerb func(context.Context, *cli.Options, *client.Client, environment, *given, io.Writer) error

// withoutEnvironment takes the environment away, but for what the batch system's variables say, with the words on the
// daemon, its token and whose certificates to trust.
func withoutEnvironment(o *cli.Options, c *cobra.Command, g *given) (environment, error) {
	kept := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		kept[name] = value
	}
	os.Clearenv()
	for flag, to := range map[string]*string{"addr": &o.Addr, "token-file": &o.TokenFile, "site": &o.Site} {
		if !c.Flags().Changed(flag) {
			*to = map[string]string{"addr": cli.DefaultAddr}[flag]
		}
	}
	err := os.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin") // for getent
	if g.caFile != "" {
		err = errors.Join(err, os.Setenv("SSL_CERT_FILE", g.caFile))
	}
	return func(name string) string { return kept[name] }, err
}

// report has act done for the job that the environment or the command line names.
func report(ctx context.Context, o *cli.Options, env environment, act hookVerb, g *given, out io.Writer) error {
	// What lies there of an earlier job of this number must not reach this one, whatever happens to fairwayd.
	var old error
	if r, _, err := knownJob(env, g); err == nil {
		old = g.removeEnv(r.Job)
	}
	cl, err := o.Connect()
	if err != nil {
		return errors.Join(old, err)
	}
	defer cl.Close()
	return errors.Join(old, act(ctx, o, cl, env, g, out))
}

// dispatchJob has a job decided and waits while its nodes are being moved.
func dispatchJob(ctx context.Context, o *cli.Options, cl *client.Client, env environment, g *given,
	out io.Writer) error {
	r, err := jobOfHook(env, g)
	if err != nil {
		return err
	}
	begun := time.Now()
	a, err := cl.Dispatch(ctx, r)
	for err == nil && slices.Contains([]remap.PlanState{remap.Approved, remap.Applying}, a.State) {
		plan, state := a.Plan, a.State
		if pace.Wait(ctx, hookAsks) {
			a, err = cl.Dispatch(ctx, r)
		}
		if ctx.Err() != nil && (err != nil || a.State == state) { // the last known state is the answer
			return fmt.Errorf("job %s: plan %s is still %s", r.Job, plan, state)
		}
	}
	if err != nil {
		return fmt.Errorf("job %s: %w", r.Job, err)
	}
	if err := errors.Join(g.writeEnv(&a), g.writeWindows(a.Windows)); err != nil {
		return err
	}
	if o.JSON {
		return cli.PrintJSON(out, a)
	}
	for _, words := range a.Given {
		fmt.Fprintf(out, "fairway: job %s: %s\n", r.Job, words)
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
		return fmt.Sprintf("off forwarders that may not carry it, plan %s %s", a.Plan, a.State)
	}
	return fmt.Sprintf("%s on %d forwarders, plan %s %s", a.Decision.Action, a.Decision.Count, a.Plan, a.State)
}

// endJob has a job's mapping taken back.
func endJob(ctx context.Context, o *cli.Options, cl *client.Client, env environment, g *given, out io.Writer) error {
	r, _, err := knownJob(env, g)
	if err != nil {
		return err
	}
	id := r.Job
	e, err := cl.EndJob(ctx, id)
	if err = errors.Join(err, g.writeWindows(e.Windows)); err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	if o.JSON {
		return cli.PrintJSON(out, e)
	}
	_, err = fmt.Fprintf(out, "fairway: job %s has ended; plans taken back: %d\n", id, len(e.Plans))
	for _, f := range e.Failed {
		_, err = fmt.Fprintf(out, "fairway: job %s: %s\n", id, f)
	}
	return err
}
