// Package tbf writes jobs' shares as rules of Lustre's token bucket filter (NRS-TBF by JobID): the
// servers themselves then hold each job to its rate. A rule is a ceiling, so unlike a queue it gives
// idle shares to nobody until the rates are written again; write them from the allocation under
// opportunity fairness, not from the bare shares, where demands are known.
//
// Commands are argument lists for lctl on each object storage server, and Rules reads back what a server
// has; a Runner does both on the server it runs on.
package tbf

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Server is what one object storage server's I/O service can do.
type Server struct {
	// RPCsPerSec is what the server does in all, RPC/s (of up to 4 MiB each).
	RPCsPerSec float64
	// Partitions is the number of its CPU partitions; 1 if 0. Each one applies a rate for itself, so a
	// job that reaches the server through all of them gets that many times the rate.
	Partitions int
}

// Rule holds the requests of a job, as the clients' jobid_var names it, to a rate.
type Rule struct {
	JobID string // of a site's rule whatever it matches
	Rate  int    // RPC/s in each partition
}

// The bounds of Lustre: rule names have at most 15 characters, jobs' ids 31, rates at most 65535.
const (
	maxName = 15
	maxJob  = 31
	maxRate = 65535
	prefix  = "fw_"
)

// Rates turns shares (0..1, of the whole server) into the rules they mean, by rule name. A job without
// a share has no rule. It fails for a job id that a rule cannot hold.
func (s Server) Rates(shares map[string]float64) (map[string]Rule, error) {
	if s.RPCsPerSec <= 0 {
		return nil, fmt.Errorf("a server of %v RPC/s has nothing to share", s.RPCsPerSec)
	}
	rules := make(map[string]Rule, len(shares))
	for _, job := range slices.Sorted(maps.Keys(shares)) {
		x := shares[job]
		if x <= 0 {
			continue
		}
		if !holds(job) {
			return nil, fmt.Errorf("job %q: a TBF rule cannot hold this id", job)
		}
		name := ruleName(job)
		if other, taken := rules[name]; taken {
			return nil, fmt.Errorf("jobs %q and %q have the same rule name %s", other.JobID, job, name)
		}
		rate := x * s.RPCsPerSec / float64(max(s.Partitions, 1))
		rules[name] = Rule{job, int(math.Min(math.Max(math.Round(rate), 1), maxRate))}
	}
	return rules, nil
}

// holds says whether a rule can name a job: a wildcard would take other jobs in, the rest would end the list
// or the argument.
func holds(job string) bool {
	return job != "" && len(job) <= maxJob && !strings.ContainsAny(job, "*?[]{}\\,&\"'") &&
		!strings.ContainsFunc(job, func(r rune) bool { return r <= ' ' || r > '~' })
}

// ruleName is a job's name where Lustre takes it, otherwise a digest.
func ruleName(job string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, job)
	if name == job && len(prefix+name) <= maxName {
		return prefix + name
	}
	h := fnv.New32a()
	h.Write([]byte(job))
	return fmt.Sprintf("%sx%08x", prefix, h.Sum32())
}

// Commands are the argument lists that turn the rules a server has into those wanted: rules that go
// first, then those that change, then new ones, each by name. Rules that are not ours stay.
func (s Server) Commands(have, want map[string]Rule) [][]string {
	rule := func(format string, a ...any) []string { return s.set("nrs_tbf_rule", fmt.Sprintf(format, a...)) }
	var gone, changed, begun [][]string
	for _, name := range slices.Sorted(maps.Keys(have)) {
		switch w, wanted := want[name]; {
		case !strings.HasPrefix(name, prefix):
		case !wanted || w.JobID != have[name].JobID:
			gone = append(gone, rule("stop %s", name))
		case w.Rate != have[name].Rate:
			changed = append(changed, rule("change %s rate=%d", name, w.Rate))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w := want[name]
		if h, there := have[name]; !there || h.JobID != w.JobID {
			begun = append(begun, rule("start %s jobid={%s} rate=%d", name, w.JobID, w.Rate))
		}
	}
	return slices.Concat(gone, changed, begun)
}

// Enable is the argument list that switches a server's service to rules by JobID; without rules of its
// own a job has the default rule's rate. Disable goes back to the order of arrival.
func (s Server) Enable() []string  { return s.set("nrs_policies", "tbf jobid") }
func (s Server) Disable() []string { return s.set("nrs_policies", "fifo") }

func (s Server) set(param, value string) []string {
	return []string{"lctl", "set_param", s.param(param) + "=" + value}
}

func (s Server) get(param string) []string { return []string{"lctl", "get_param", s.param(param)} }

func (s Server) param(name string) string { return "ost.OSS.ost_io." + name }

// Rules reads what `lctl get_param ost.OSS.ost_io.nrs_tbf_rule` prints: the rules of the regular requests, by name.
// Each partition lists all rules; where they differ the first one counts, and the next write brings them together. A
// list without a rule is an error: while the filter is in force the default one is always there.
func Rules(text string) (map[string]Rule, error) {
	rules := map[string]Rule{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "high_priority_requests:" {
			break
		}
		if line == "" || strings.HasSuffix(line, ":") || strings.HasSuffix(line, "=") {
			continue // a heading
		}
		name, rule, err := parseRule(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if _, known := rules[name]; !known {
			rules[name] = rule
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("no rule in %.200q, and the default one is always there", text)
	}
	return rules, nil
}

// parseRule reads NAME WHAT RATE[, ref N]. WHAT is {JOB} up to Lustre 2.12 and jobid={JOB} later; of a site's rules it
// may be anything, and stays as it is.
func parseRule(line string) (name string, rule Rule, err error) {
	text, _, _ := strings.Cut(line, ", ref ")
	f := strings.Fields(text)
	rate := -1
	if len(f) > 2 {
		if rate, err = strconv.Atoi(f[len(f)-1]); err != nil {
			rate = -1
		}
	}
	what := ""
	if rate >= 0 {
		what = strings.Join(f[1:len(f)-1], " ")
	}
	if what == "" || strings.Count(what, "{") != strings.Count(what, "}") {
		return "", Rule{}, fmt.Errorf("%.80q is not a rule (NAME WHAT RATE, ref N)", line)
	}
	list, isList := strings.CutPrefix(strings.TrimPrefix(what, "jobid="), "{")
	if job, ends := strings.CutSuffix(list, "}"); isList && ends && !strings.ContainsAny(job, "{} ") {
		what = job
	}
	return f[0], Rule{what, rate}, nil
}
