package tbf

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairway/remap/node"
)

// Runner writes shares to the object storage server that it runs on. It reads what is there first and does only what is
// missing, so it may be repeated, and go on after a crash at any point. Rules of others and a policy that it has not
// switched on stay as they are.
type Runner struct {
	Server Server
	Run    node.Command // nil: node.Exec
	// Timeout bounds one command; DefaultTimeout if 0.
	Timeout time.Duration
	// Journal is the file that is there while the filter is in force by us; empty: that is known until
	// the program ends.
	Journal string

	switchedOn bool // by us, without a journal
}

// DefaultTimeout is long for a command that changes a setting in the kernel.
const DefaultTimeout = 10 * time.Second

// Preview returns the commands that Apply would run now, and changes nothing. Without shares they take every rule of
// ours away, and the filter out of force where we have put it in force. Rules that an earlier filter has left show
// themselves when it is in force again: Apply may run other commands then.
func (r *Runner) Preview(ctx context.Context, shares map[string]float64) ([][]string, error) {
	want, err := r.Server.Rates(shares)
	if err != nil {
		return nil, err
	}
	listed, err := r.lctl(ctx, r.Server.get("nrs_policies"))
	if err != nil {
		return nil, err
	}
	policy, err := inForce(string(listed))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", strings.Join(r.Server.get("nrs_policies"), " "), err)
	case policy != "tbf" && len(want) == 0:
		return nil, nil
	case policy != "tbf" && policy != "fifo":
		return nil, fmt.Errorf("the site's policy %q is in force on %s, and it stays: shares need %s", policy,
			r.Server.param("nrs_policies"), "tbf jobid")
	case policy != "tbf":
		return append([][]string{r.Server.Enable()}, r.Server.Commands(nil, want)...), nil
	}
	have, err := r.rules(ctx)
	if err != nil {
		return nil, err
	}
	commands := r.Server.Commands(have, want)
	if len(want) == 0 && !others(have) && r.byUs() {
		commands = append(commands, r.Server.Disable())
	}
	return commands, nil
}

// rules reads those that the server has now.
func (r *Runner) rules(ctx context.Context) (map[string]Rule, error) {
	listed, err := r.lctl(ctx, r.Server.get("nrs_tbf_rule"))
	if err != nil {
		return nil, err
	}
	have, err := Rules(string(listed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; nothing was changed", strings.Join(r.Server.get("nrs_tbf_rule"), " "), err)
	}
	return have, nil
}

// Apply makes the shares true and returns the commands that it ran. On an error, which names the command
// and has lctl's message, the rules before it hold.
func (r *Runner) Apply(ctx context.Context, shares map[string]float64) (done [][]string, err error) {
	commands, err := r.Preview(ctx, shares)
	if err != nil {
		return nil, err
	}
	if len(commands) > 0 && slices.Equal(commands[0], r.Server.Enable()) {
		if err := r.note(true); err != nil {
			return nil, fmt.Errorf("nothing was changed: %w", err)
		}
		if _, err := r.lctl(ctx, commands[0]); err != nil {
			return nil, err
		}
		done = append(done, commands[0])
		if commands, err = r.Preview(ctx, shares); err != nil { // a filter before may have left rules
			return done, err
		}
	}
	for _, c := range commands {
		if _, err := r.lctl(ctx, c); err != nil {
			return done, err
		}
		done = append(done, c)
		if slices.Equal(c, r.Server.Disable()) {
			err = r.note(false)
		}
	}
	return done, err
}

// byUs says that the filter is in force because we have put it in force.
func (r *Runner) byUs() bool {
	if r.Journal == "" {
		return r.switchedOn
	}
	_, err := os.Stat(r.Journal)
	return err == nil
}

// note keeps whether the filter is in force by us.
func (r *Runner) note(on bool) error {
	r.switchedOn = on
	if r.Journal == "" {
		return nil
	}
	if !on {
		return os.Remove(r.Journal)
	}
	if err := os.MkdirAll(filepath.Dir(r.Journal), 0o755); err != nil {
		return err
	}
	return os.WriteFile(r.Journal, []byte(r.Server.param("nrs_policies")+" was fifo\n"), 0o600)
}

func (r *Runner) lctl(ctx context.Context, argv []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.Timeout, DefaultTimeout))
	defer cancel()
	return r.Run.Do(ctx, argv...)
}

// inForce reads `lctl get_param ost.OSS.ost_io.nrs_policies`: the policy that orders the regular requests. Beside
// "fifo", where the others hand what they do not want, that is the one that has started. Releases that name the
// filter's kind say whether it takes rules by job id.
func inForce(text string) (policy string, err error) {
	regular, _, _ := strings.Cut(text, "high_priority_requests:")
	name, kind := "", ""
	for line := range strings.Lines(regular) {
		key, value, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "- "), ":")
		switch value = strings.TrimSpace(value); {
		case key == "name":
			name, kind, _ = strings.Cut(value, " ")
		case key != "state" || name == "":
		case value == "started" && name == "tbf" && kind != "" && kind != "jobid":
			return "", fmt.Errorf("the site's filter %s %s is in force: it takes no rules by job id, and it stays",
				name, kind)
		case value == "started" && (policy == "" || policy == "fifo"):
			policy = name
		}
	}
	if policy == "" {
		return "", fmt.Errorf("no policy has started: %.200q", text)
	}
	return policy, nil
}

// others says whether the site has rules of its own, besides the default one.
func others(rules map[string]Rule) bool {
	for name := range rules {
		if name != "default" && !strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
