package tbf

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"fairway/remap/node"
)

// Runner writes shares to the object storage server that it runs on. It reads what is there first and
// does only what is missing, so it may be repeated, and go on after a crash at any point.
type Runner struct {
	Server Server
	Run    node.Command // nil: mover.Exec
	// Timeout bounds one command; DefaultTimeout if 0.
	Timeout time.Duration
}

// DefaultTimeout is long for a command that changes a setting in the kernel.
const DefaultTimeout = 10 * time.Second

// Preview returns the commands that Apply would run now, and changes nothing. Without shares they take
// every rule of ours away and go back to the order of arrival.
func (r *Runner) Preview(ctx context.Context, shares map[string]float64) ([][]string, error) {
	want, err := r.Server.Rates(shares)
	if err != nil {
		return nil, err
	}
	policies, err := r.lctl(ctx, r.Server.get("nrs_policies"))
	if err != nil {
		return nil, err
	}
	var commands [][]string
	have := map[string]Rule{}
	on := filtering(string(policies))
	if on {
		listed, err := r.lctl(ctx, r.Server.get("nrs_tbf_rule"))
		if err != nil {
			return nil, err
		}
		if have, err = Rules(string(listed)); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(r.Server.get("nrs_tbf_rule"), " "), err)
		}
	} else if len(want) > 0 {
		commands = append(commands, r.Server.Enable())
	}
	commands = append(commands, r.Server.Commands(have, want)...)
	if on && len(want) == 0 && !others(have) {
		commands = append(commands, r.Server.Disable())
	}
	return commands, nil
}

// Apply makes the shares true and returns the commands that it ran. On an error, which names the command
// and has lctl's message; the rules before it hold.
func (r *Runner) Apply(ctx context.Context, shares map[string]float64) (done [][]string, err error) {
	commands, err := r.Preview(ctx, shares)
	if err != nil {
		return nil, err
	}
	for _, c := range commands {
		if _, err := r.lctl(ctx, c); err != nil {
			return done, err
		}
		done = append(done, c)
	}
	return done, nil
}

func (r *Runner) lctl(ctx context.Context, argv []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.Timeout, DefaultTimeout))
	defer cancel()
	run := r.Run
	if run == nil {
		run = node.Exec
	}
	return run(ctx, argv...)
}

// filtering reads `lctl get_param ost.OSS.ost_io.nrs_policies`: whether the token bucket filter is in force
// for the regular requests. The list does not have the kind; where it is not by JobID, lctl
// refuses our rules, and the site's stay.
func filtering(text string) bool {
	regular, _, _ := strings.Cut(text, "high_priority_requests:")
	name := ""
	for line := range strings.Lines(regular) {
		key, value, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "- "), ":")
		switch value = strings.TrimSpace(value); {
		case key == "name":
			name, _, _ = strings.Cut(value, " ")
		case key == "state" && name == "tbf":
			return value == "started"
		}
	}
	return false
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
