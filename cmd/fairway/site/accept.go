package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/anomaly"
	"fairway/cmd/fairway/cli"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/client"
)

// acceptance is what a site's acceptance walks through.
type acceptance struct {
	on, breaks, mends string // commands of the site's, for sh
	move              string
	to, faulty        topology.ForwarderID
	long, wait        time.Duration
	out               io.Writer
	failed            bool
}

// errNotAccepted is what the acceptance's exit code 1 stands for.
var errNotAccepted = errors.New("not all of it held, see above")

func newAccept(o *cli.Options) *cobra.Command {
	a := acceptance{}
	c := &cobra.Command{
		Use:   "accept",
		Short: "Walk through what a site can check by itself, and print a page with what held",
		Long: "Walks through what a site can check by itself, and prints a page with what held: doctor's checks;\n" +
			"with --on the forwarders' bytes beside those of the node's own counters; with --move a move of an idle\n" +
			"node and back, which another person approves meanwhile; with --break a fault that the site makes on an\n" +
			"idle forwarder and ends with --mend.",
		Example: "  fairway accept --on 'ssh $NODE' --move cn12 --to gw2\n" +
			"  fairway accept --faulty gw4 --break 'ssh gw4 systemctl stop nfs-server' \\\n" +
			"    --mend 'ssh gw4 systemctl start nfs-server'",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := o.Ask(c)
			if err != nil {
				return err
			}
			defer cl.Close()
			a.out = c.OutOrStdout()
			return a.walk(c.Context(), cl)
		},
	}
	f := c.Flags()
	f.StringVar(&a.on, "on", "", "command that runs what is behind it on the node $NODE, such as 'ssh $NODE'")
	f.StringVar(&a.move, "move", "", "idle compute node that is moved and taken back")
	f.StringVar((*string)(&a.to), "to", "", "the forwarder that --move moves it to")
	f.StringVar(&a.breaks, "break", "", "command that makes --faulty fail")
	f.StringVar(&a.mends, "mend", "", "command that ends it")
	f.StringVar((*string)(&a.faulty), "faulty", "", "idle forwarder that --break is about")
	f.DurationVar(&a.long, "for", 20*time.Second, "how long counters are compared")
	f.DurationVar(&a.wait, "wait", 10*time.Minute, "how long a plan may wait for its approval, and a fault to be found")
	return c
}

func (a *acceptance) walk(ctx context.Context, cl *client.Client) error {
	fmt.Fprintf(a.out, "# Acceptance of %s\n\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	checks, err := cl.Checks(ctx)
	if err != nil {
		return err
	}
	for _, c := range checks {
		a.say(c.Level != api.CheckFailed, c.Name, "%s", c.Text)
	}
	steps := []struct {
		wanted bool
		do     func(context.Context, *client.Client) error
	}{{a.on != "", a.compare}, {a.move != "", a.moveAndBack}, {a.breaks != "", a.fault}}
	for _, s := range steps {
		if s.wanted {
			if err := s.do(ctx, cl); err != nil {
				return err
			}
		}
	}
	if a.failed {
		return errNotAccepted
	}
	return nil
}

// say prints one line of the page.
func (a *acceptance) say(held bool, what, format string, args ...any) {
	word := "held  "
	if !held {
		word, a.failed = "FAILED", true
	}
	fmt.Fprintf(a.out, "- %s %s: %s\n", word, what, fmt.Sprintf(format, args...))
}

// counters are the files and commands that have a forwarder's bytes: nfsd's first, else LNet's.
const counters = `grep ^io /proc/net/rpc/nfsd 2>/dev/null || lnetctl stats show`

// bytesIn finds bytes in what counters print: "io READ WRITE" of nfsd, send_length and recv_length of lnetctl.
var bytesIn = regexp.MustCompile(`^io (\d+) (\d+)|(?m)(?:send|recv)_length: (\d+)`)

// counted is what a forwarder's own counters have of its bytes.
func (a *acceptance) counted(ctx context.Context, node topology.ForwarderID) (sum float64, err error) {
	c := exec.CommandContext(ctx, "sh", "-c", a.on+" \"$COUNTERS\"")
	c.Env = append(c.Environ(), "NODE="+string(node), "COUNTERS="+counters)
	out, err := c.Output()
	found := bytesIn.FindAllStringSubmatch(string(out), -1)
	if err != nil || len(found) == 0 {
		return 0, fmt.Errorf("%s on %s: %.80q: %w", counters, node, out, errors.Join(err, errors.New("no bytes in it")))
	}
	for _, f := range found {
		for _, digits := range f[1:] {
			n, _ := strconv.ParseFloat(digits, 64) // "" where the other kind is
			sum += n
		}
	}
	return sum, nil
}

// within is how far the daemon's bytes may be from the node's own: the two are not read at the same moment.
const within = 0.1

// compare sums what the daemon shows of each forwarder, second by second, beside what the node counted.
func (a *acceptance) compare(ctx context.Context, cl *client.Client) error {
	first, err := cl.Overview(ctx)
	if err != nil {
		return err
	}
	before, shown, last := map[topology.ForwarderID]float64{}, map[topology.ForwarderID]float64{}, first.At
	for _, f := range first.Forwarders {
		id := topology.ForwarderID(f.ID)
		if before[id], err = a.counted(ctx, id); err != nil {
			a.say(false, "counters of "+string(id), "%v", err)
			delete(before, id)
		}
	}
	begun := time.Now()
	for time.Since(begun) < a.long && ctx.Err() == nil {
		o, err := cl.Overview(ctx)
		if err != nil {
			return err
		}
		for _, f := range o.Forwarders {
			for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.RoutedBytes} {
				if v := f.Value(m); v != nil && o.At.After(last) {
					shown[topology.ForwarderID(f.ID)] += *v * o.At.Sub(last).Seconds()
				}
			}
		}
		if o.At.After(last) {
			last = o.At
		}
		time.Sleep(200 * time.Millisecond)
	}
	for id, was := range before {
		now, err := a.counted(ctx, id)
		if err != nil {
			a.say(false, "counters of "+string(id), "%v", err)
			continue
		}
		own := now - was
		a.say(math.Abs(own-shown[id]) <= within*math.Max(own, 1e6), "bytes of "+string(id),
			"%.1f MB shown, %.1f MB counted on the node, in %.0f s", shown[id]/1e6, own/1e6,
			time.Since(begun).Seconds())
	}
	return nil
}

// moveAndBack proposes a move, waits for its approval and its end, and takes it back.
func (a *acceptance) moveAndBack(ctx context.Context, cl *client.Client) error {
	v, err := cl.Propose(ctx, api.ManualRemap{Nodes: []topology.NodeID{topology.NodeID(a.move)}, To: a.to,
		Reason: "a site's acceptance: there and back"})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "- now another person approves: fairway plan approve %s --preview %s --reason TEXT\n", v.ID,
		v.PreviewHash)
	for end := time.Now().Add(a.wait); v.State == remap.Proposed && time.Now().Before(end); time.Sleep(time.Second) {
		if v, err = cl.Plan(ctx, v.ID); err != nil {
			return err
		}
	}
	v, _ = cl.Settled(ctx, v, a.wait) // the state says it
	a.say(v.State == remap.Verified, "move of "+a.move, "plan %s is %s %s", v.ID, v.State, v.Error)
	if v.State == remap.Proposed {
		return nil
	}
	if v, err = cl.RollBack(ctx, v.ID, "a site's acceptance: back"); err != nil {
		return err
	}
	v, _ = cl.Settled(ctx, v, a.wait)
	a.say(v.State == remap.RolledBack, "and back", "plan %s is %s %s", v.ID, v.State, v.Error)
	return nil
}

// fault has the site break a forwarder, waits until that is found, and has it mended.
func (a *acceptance) fault(ctx context.Context, cl *client.Client) error {
	begun := time.Now()
	if out, err := exec.CommandContext(ctx, "sh", "-c", a.breaks).CombinedOutput(); err != nil {
		return fmt.Errorf("--break: %w: %s", err, out)
	}
	sentence := ""
	for sentence == "" && time.Since(begun) < a.wait && ctx.Err() == nil {
		all, err := cl.Findings(ctx)
		if err != nil {
			break
		}
		for _, f := range all {
			if f.Node == a.faulty.Node() && f.State == anomaly.Confirmed {
				sentence = f.Sentence
			}
		}
		time.Sleep(time.Second)
	}
	a.say(sentence != "", "fault of "+string(a.faulty), "after %.0f s: %s", time.Since(begun).Seconds(), sentence)
	// The fault ends even where the walk was interrupted.
	out, err := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", a.mends).CombinedOutput()
	if err != nil {
		return fmt.Errorf("--mend: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
