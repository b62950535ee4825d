package tbf

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"fairway/collector/source/lustre"
	"fairway/collector/topology"
)

// Rates are measured over spans of at least this length.
const measureOver = 10 * time.Second

// above is what a job may do over its rule before it counts as one that the rule does not hold: buckets hold some
// requests for later, and a rule of a moment ago may have been higher.
const above = 1.25

// ceilings holds the jobs to their rules by what the server counted: whether the rules do what they say.
type ceilings struct {
	since    time.Time
	requests map[string]uint64 // by job id, at since
	rates    map[string]int    // the highest of each job ruled all the time since then, RPC/s in each partition
}

// Requests reads how many reads and writes each job id has done on this server's targets.
func (r *Runner) Requests(ctx context.Context) (map[string]uint64, error) {
	text, err := r.lctl(ctx, []string{"lctl", "get_param", "-n", "obdfilter.*.job_stats"})
	if err != nil {
		return nil, err
	}
	jobs, err := lustre.ParseJobStats(text)
	if err != nil && len(jobs) == 0 { // a line that cannot be read costs its own entry alone
		return nil, fmt.Errorf("lctl get_param -n obdfilter.*.job_stats: %w", err)
	}
	out := map[string]uint64{}
	for _, j := range jobs {
		out[j.ID] += j.Ops["read_bytes"].Samples + j.Ops["write_bytes"].Samples
	}
	return out, nil
}

// allow notes rules that are in force from now on. A job that gets its first rule within a span is measured from the
// next one on: what it did before was not limited.
func (c *ceilings) allow(rules map[string]Rule) {
	rates := map[string]int{}
	for _, r := range rules {
		if before, ruled := c.rates[r.JobID]; ruled || c.rates == nil {
			rates[r.JobID] = max(r.Rate, before)
		}
	}
	c.rates = rates
}

// due says whether it is time to measure.
func (c *ceilings) due(now time.Time) bool { return now.Sub(c.since) >= measureOver }

// measure compares what jobs did since the last time with their rules, and begins anew. Counts that went back, as of
// statistics that were cleared, say nothing.
func (c *ceilings) measure(now time.Time, requests map[string]uint64, s Server) error {
	var bad []error
	over := now.Sub(c.since).Seconds()
	for _, job := range slices.Sorted(maps.Keys(c.rates)) {
		before, known := c.requests[job]
		did := requests[job]
		if !known || did < before || c.rates[job] == 0 {
			continue
		}
		most := float64(c.rates[job] * max(s.Partitions, 1))
		if rate := float64(did-before) / over; rate > above*most+1 {
			bad = append(bad,
				fmt.Errorf("job %s did %.0f requests/s in %.0f s, and its rule allows %.0f: the rule does not "+
					"hold it; look at tbf.partitions and at lctl get_param ost.OSS.ost_io.nrs_tbf_rule", job, rate,
					over, most))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		job := string(topology.JobOf(id))
		if _, ruled := c.rates[job]; ruled && id != job && requests[id] > c.requests[id] {
			bad = append(bad,
				fmt.Errorf("requests of job %s come as %q, which its rule does not take: the clients' jobid_var "+
					"and jobid_name must give the job's number alone", job, id))
		}
	}
	c.since, c.requests, c.rates = now, requests, nil
	return errors.Join(bad...)
}
