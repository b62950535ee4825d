package papers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/topology"
)

// mixJobs start together: 16 nodes, four on each of four forwarders, of which the second is at a tenth of its speed.
var mixJobs = []struct {
	name  string
	mode  workload.Mode
	first int // node
	nodes int
	bytes int64 // of a rank
}{
	{"climate", workload.FilePerProcess, 0, 4, 12 << 20},
	{"genome", workload.FilePerProcess, 4, 2, 4 << 20},
	{"mesh", workload.SharedFile, 6, 2, 4 << 20},
	{"solver", workload.FilePerProcess, 8, 1, 16 << 20},
	{"particles", workload.SharedFile, 9, 3, 12 << 20},
	{"weather", workload.FilePerProcess, 12, 4, 12 << 20},
}

// mixPolicies are compared; the first, the fixed mapping, is what the others are measured against.
var mixPolicies = []string{"fixed", "fixed again", "dfra", "mckp", "avoid"}

// mixResults runs the mix under each policy in turn, on one history.
func mixResults(ctx context.Context, l *Lab) (rows []Row, err error) {
	s, err := l.newSite(ctx, testbed.Config{Forwarders: 8, ComputeNodes: 16, LinkBytesPerSec: l.link(),
		Mapping: behind(16, 4)},
		func(c daemon.Settings) {
			l.dfraSettings(c)
			c.Table("dispatch")["n_min"], c.Table("dispatch")["harm_bound"] = 2.0, 0.05
			c.Table("dispatch")["lend"] = false
		})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.tb.Inject(ctx, testbed.Fault{Kind: testbed.SlowLink, Node: "fwd001",
		Amount: l.link() / 10}); err != nil {
		return nil, err
	}
	faster, moved := map[string][]float64{}, map[string][]float64{}
	took := map[string][][]float64{} // of each policy's rounds, each job's seconds
	for range l.repeat(3) {
		var fixed []float64
		for _, policy := range mixPolicies {
			seconds, nodesMoved, err := s.mix(ctx, policy)
			if err != nil {
				return nil, fmt.Errorf("the mix under %s: %w", policy, err)
			}
			if policy == mixPolicies[0] {
				fixed = seconds
			}
			each := ""
			for i, t := range seconds {
				each += fmt.Sprintf(" %s %.1f", mixJobs[i].name, t)
			}
			l.say("mix under %-5s: mean I/O time %.1f s, %d nodes moved;%s", policy, mean(seconds), nodesMoved, each)
			faster[policy] = append(faster[policy], mean(fixed)/mean(seconds))
			took[policy] = append(took[policy], seconds)
			moved[policy] = append(moved[policy], float64(nodesMoved))
		}
	}
	usual := eachJobs(slices.Concat(took[mixPolicies[0]], took[mixPolicies[1]]))
	for _, p := range mixPolicies[1:] {
		worst := 0.0
		for i, t := range eachJobs(took[p]) {
			worst = max(worst, t/usual[i])
		}
		loser := []float64{100 * (worst - 1)}
		if p == mixPolicies[1] {
			rows = append(rows, Row{
				Effect: "worst loser of the fixed mapping measured again: the noise",
				Values: loser, Unit: " %", Why: "jobs that share a link take turns: what one loses another gains"})
			continue
		}
		rows = append(rows,
			Row{
				Effect: fmt.Sprintf(
					"mix of %d jobs: mean I/O time of the fixed mapping over that of %s", len(mixJobs), p),
				Paper: "3.5x on average over 11 applications, alone " +
					"(DFRA, beside Table 5)", Values: faster[p], Unit: "x",
				Why: "the paper's run one after the other; here they compete for the idle forwarders"},
			Row{Effect: "worst loser under " + p, Values: loser, Unit: " %",
				Bar: "<= 5 % slower"},
			Row{Effect: "compute nodes moved by " + p, Values: moved[p]})
	}
	return rows, nil
}

// eachJobs is the median over rounds of each job's seconds: in a single round it is chance which of two jobs that share
// a link is served first.
func eachJobs(rounds [][]float64) []float64 {
	out := make([]float64, len(mixJobs))
	for i := range out {
		var all []float64
		for _, r := range rounds {
			all = append(all, r[i])
		}
		out[i] = anomaly.Median(all)
	}
	return out
}

// mix runs the jobs once and returns each one's I/O time.
func (s *site) mix(ctx context.Context, policy string) (seconds []float64, moved int, err error) {
	s.conf.Table("desk")["mode"], s.conf.Table("dispatch")["policy"] = "auto", policy
	fixed := strings.HasPrefix(policy, mixPolicies[0])
	if fixed { // plans are made, and nothing is moved
		s.conf.Table("desk")["mode"], s.conf.Table("dispatch")["policy"] = "observe", "avoid"
	}
	if err := s.bringBack(ctx); err != nil {
		return nil, 0, err
	}
	if err := s.restart(ctx); err != nil {
		return nil, 0, err
	}
	if _, err := s.api.Exclude(ctx, "fwd001", 2*time.Hour, "a tenth of its speed"); err != nil {
		return nil, 0, err
	}
	ids := make([]topology.JobID, len(mixJobs))
	specs := make([]workload.Spec, len(mixJobs))
	for i, j := range mixJobs {
		specs[i] = workload.Spec{Name: j.name, Mode: j.mode, BurstBytes: j.bytes / pick[int64](s.Lab, 1, 16),
			Keep:   true,
			Bursts: 1}
		if ids[i], err = s.submit(ctx, &specs[i], nodes(j.first, j.nodes), 1); err != nil {
			return nil, 0, err
		}
	}
	for i, id := range ids {
		o, err := s.wait(ctx, id)
		if err == nil {
			err = verify(ctx, s.tb, &specs[i])
		}
		if err != nil {
			return nil, 0, err
		}
		seconds = append(seconds, o.seconds())
		what, _, err := s.decided(id)
		if err != nil {
			return nil, 0, err
		}
		if strings.Contains(what, "plan P-") && !fixed {
			moved += mixJobs[i].nodes
		}
	}
	return seconds, moved, nil
}

// bringBack has nodes that a policy took off the slow forwarder brought back to it, so that each policy begins with the
// same mapping: of itself the daemon returns none to a forwarder that is accused or excluded.
func (s *site) bringBack(ctx context.Context) error {
	out, err := s.api.Exclusions(ctx)
	if err != nil || len(out.Exclusions) == 0 {
		return err
	}
	if _, err := s.api.Return(ctx, "fwd001", "the next policy"); err != nil {
		return err
	}
	all, err := s.api.Findings(ctx)
	for _, f := range all {
		if f.Node == "fwd001" && f.Open() && err == nil {
			_, err = s.api.Dismiss(ctx, f.ID, "the next policy")
		}
	}
	return errors.Join(err, s.awaitNodes(ctx))
}
