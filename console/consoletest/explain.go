package consoletest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/rootcause"
	"fairway/collector/topology"
	"fairway/remap/policy/filedomain"
	"fairway/remap/policy/periodic"
	"fairway/remap/policy/share"
	"fairway/remap/policy/sharedfiles"
	"fairway/remap/queue/tables"
	"fairway/webui/api"
)

// Cause is console.Explainer's: the running job wrote through one slow file after many short ones.
func (f *Fake) Cause(_ context.Context, id topology.JobID) (api.JobCause, error) {
	o, err := f.snapshot()
	if err != nil {
		return api.JobCause{}, err
	}
	if id != "88231" {
		return api.JobCause{}, fmt.Errorf("job %q: %w: no log of it is in the archive", id, api.ErrNotFound)
	}
	var job rootcause.Job
	file := func(name string, start, end, bytes float64) {
		job.Files = append(job.Files, rootcause.File{Name: name, Start: start, End: end, Bytes: bytes, Small: 0.9,
			Nonconsec: 0.1, Procs: 480,
			OSTs: 4, Collective: 0})
	}
	file("/scratch/roms/restart.nc", 4, 310, 41e9)
	for i := range 30 {
		file(cmp.Or(f.Foreign, fmt.Sprintf("/scratch/roms/out/his_%04d.nc", i)), 320+float64(40*i), 350+float64(40*i),
			0.5e9)
	}
	job.Procs = 480
	job.Records = []rootcause.Record{{Layer: topology.Forwarder, Node: "fwd003", What: anomaly.FailSlow, Start: 100,
		End: 900, Text: "write service time 9.8x its peers"}}
	write := rootcause.Explain(job, rootcause.Defaults())
	return api.JobCause{Job: id, Forwarders: []topology.ForwarderID{"fwd001", "fwd002", "fwd003"},
		Logs: []api.LogCause{
			{Log: "7", App: cmp.Or(f.Foreign, "ROMS"), Procs: 480, Start: o.At.Add(-33 * time.Minute),
				End: o.At.Add(-5 * time.Minute), Write: &write}}}, nil
}

// SlowJobs is console.Explainer's; of all jobs there are twelve, slow ones five.
func (f *Fake) SlowJobs(_ context.Context, op string, all bool) ([]api.SlowJob, error) {
	if _, err := f.snapshot(); err != nil {
		return nil, err
	}
	n := 5
	if all {
		n = 12
	}
	jobs := []api.SlowJob{}
	for i := range n {
		v := func(x float64) *float64 { return &x }
		j := api.SlowJob{Job: topology.JobID(fmt.Sprint(88231 - 41*i)),
			App: cmp.Or(f.Foreign, []string{"ROMS", "NWCHEM", "WRF"}[i%3]), Procs: int64(4096 >> (i % 4)),
			Bytes:       v(58e9 * float64(i+1)),
			BytesPerSec: v(61e6 * float64(i+1)), Small: v(float64(9-i%9) / 10), Nonconsec: v(float64(i%4) / 4),
			Collective: v(float64(i % 2)), LongestShare: v(0.81 / float64(i+1))}
		if op == "read" {
			j.BytesPerSec = v(97e6 * float64(i+1))
		}
		if i%3 != 2 { // the others' stripes are not known
			j.OSTs, j.ProcsPerOST = v(float64(4+i)), v(float64(j.Procs)/float64(4+i))
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// Shares is console.Explainer's, for three jobs that run.
func (f *Fake) Shares(_ context.Context, policy string, on topology.ForwarderID) (api.SharesView, error) {
	if _, err := f.snapshot(); err != nil {
		return api.SharesView{}, err
	}
	p, err := share.ParsePolicy(policy)
	if err != nil {
		return api.SharesView{}, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	v := api.SharesView{Policy: p.String(), Forwarder: on,
		Jobs: []api.ShareRow{{Job: "88231", User: "wei", Group: "ocean", Nodes: 480},
			{Job: "88260", User: cmp.Or(f.Foreign, "sam"), Group: cmp.Or(f.Foreign, "chem"), Nodes: 90},
			{Job: "88262", User: "wei", Group: "ocean", Nodes: 30}}}
	var jobs []share.Job
	for _, j := range v.Jobs {
		jobs = append(jobs, share.Job{Name: string(j.Job), User: j.User, Group: j.Group, Size: float64(j.Nodes)})
	}
	for i, x := range share.Shares(p, jobs) {
		v.Jobs[i].Share = x
	}
	slices.SortStableFunc(v.Jobs, func(a, b api.ShareRow) int { return cmp.Compare(b.Share, a.Share) })
	if f.Gathered {
		v.InForce = gathered()
	}
	return v, nil
}

// gathered is how three queues share: of two jobs with work one is crowded, and one queue is silent.
func gathered() *tables.Gathering {
	return &tables.Gathering{
		Policy: "size-fair", LambdaSeconds: 1, Reachable: false, Says: []string{
			"in force: size-fair, 2 of 3 queues serve by global shares, gathered every 1 s",
			"the global shares cannot be reached: 88231 should have 84.2 % of all forwarders together and can have " +
				"50.0 %: they have more work than is done only at fwd017, 1 of 2 forwarders, with 50.0 % " +
				"of what all do",
			"fwd200 does not answer (order report to fwd200: no agent connected); its jobs have their local shares " +
				"there",
		},
		Jobs: []tables.GatheredJob{{Job: "88231", Share: .8421, Reachable: .5, Got: .497,
			Forwarders: []topology.ForwarderID{"fwd017"}}, {Job: "88260", Share: .1579, Reachable: .5, Got: .503,
			Forwarders: []topology.ForwarderID{"fwd113"}}},
	}
}

// Pattern is console.Explainer's: the real algorithm.
func (f *Fake) Pattern(_ context.Context, set string) (api.PatternView, error) {
	if _, err := f.snapshot(); err != nil {
		return api.PatternView{}, err
	}
	s, err := periodic.ReadSet(strings.NewReader(set))
	if err != nil {
		return api.PatternView{}, fmt.Errorf("%w: set: %w", api.ErrInvalid, err)
	}
	p, err := periodic.Schedule(s)
	if err != nil {
		return api.PatternView{}, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	return api.PatternView{Pattern: p, Unplanned: periodic.FairShare(s, s.TMin*s.KPrime), Set: s}, nil
}

// Domains is console.Explainer's: the real comparison, of one file in the log of job 88231, and of none
// of another job.
func (f *Fake) Domains(_ context.Context, id topology.JobID, q api.DomainsQuery) (api.DomainsView, error) {
	if _, err := f.snapshot(); err != nil {
		return api.DomainsView{}, err
	}
	v := api.DomainsView{Job: id, Files: []sharedfiles.File{}}
	if id != "88231" {
		return v, nil
	}
	stripe, servers := int64(4<<20), 8
	v.Files = []sharedfiles.File{
		{Name: cmp.Or(f.Foreign, "/scratch/roms/restart.nc"), App: cmp.Or(f.Foreign, "ROMS"), Procs: 480, Bytes: 41e9,
			Through: sharedfiles.Collective, StripeSize: &stripe, Servers: &servers, From: "log"},
		{Name: "/scratch/roms/log.txt", App: "ROMS", Procs: 480, Bytes: 3e6, Through: sharedfiles.Posix, From: "log"},
	}
	v.File = min(q.File, 1)
	c, assumed, err := sharedfiles.Case(&v.Files[v.File],
		sharedfiles.Given{Servers: q.Servers, StripeSize: q.StripeSize, Aggregators: q.Aggregators, Nodes: 20})
	if err != nil {
		v.Problem = err.Error()
		return v, nil
	}
	v.Assumed, v.Caveat, v.Window = assumed, sharedfiles.Caveat(&v.Files[v.File]), c.Window(256)
	v.Methods = filedomain.Compare(c, v.Window)
	advice := filedomain.Choose(c, v.Methods)
	c.Method = advice.Method
	v.Advice, v.Case = &advice, &c
	return v, nil
}
