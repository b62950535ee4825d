package webui

import (
	"net/http"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/tsdb/history/iolog"
	"fairway/webui/api"
	"fairway/webui/live"
)

// doc is what the OpenAPI document says of a route. in and out are values of the Go types of the
// bodies; a nil out is not JSON.
type doc struct {
	summary string
	params  []param
	in, out any
}

// param is one parameter of a route's query.
type param struct{ name, about string }

var (
	rangeParams = []param{
		{"from", "start, inclusive: RFC 3339, Unix milliseconds, or -15m before now"},
		{"to", "end, exclusive; now without it"},
	}
	atParam    = []param{{"at", "the second to show: RFC 3339, Unix milliseconds, -15m before now; live without it"}}
	pageParams = []param{{"limit", "at most so many, newest first"}}
)

// routes is the authorization table and the API's table of contents in one.
func (s *Server) routes() []route {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return []route{
		{get, "/healthz", "", everyDoor | DoorIngest, s.getHealth, doc{summary: "the process answers"}},
		{get, "/readyz", "", everyDoor | DoorIngest, s.getReady,
			doc{summary: "the picture is being made", out: Readiness{}}},
		{get, "/metrics", remap.Viewer, everyDoor, s.getMetrics, doc{summary: "own counters, Prometheus text format"}},
		{get, "/debug/pprof/{profile}", remap.Admin, DoorUnix, s.getProfile, doc{summary: "Go profiles"}},

		{get, "/api/v1/openapi.json", "", everyDoor, s.getOpenAPI, doc{summary: "this document"}},
		{get, "/api/v1/metrics", "", everyDoor, s.getCatalogue,
			doc{summary: "the catalogue of metrics: names, units, labels and full scales", out: []api.Metric{}}},
		{get, "/api/v1/session", "", everyDoor, s.getSession, doc{summary: "who you are here", out: Session{}}},
		{post, "/api/v1/session", "", DoorTCP, s.postSession, doc{summary: "sign in by password or one-time code",
			in: SignIn{}, out: Session{}}},
		{post, "/api/v1/sign-in-link", remap.Viewer, DoorUnix, s.postSignInLink,
			doc{summary: "a one-time address that signs you in at the browser, with your name and role",
				out: api.SignInLink{}}},
		{get, oidcStart, "", DoorTCP, s.getOIDCStart,
			doc{summary: "sign in at the site's OpenID Connect provider: a redirect there"}},
		{get, OIDCCallback, "", DoorTCP, s.getOIDCCallback,
			doc{summary: "the way back from the provider; opens a session",
				params: []param{{"code", "the provider's"}, {"state", "ours"}}}},
		{del, "/api/v1/session", "", DoorTCP, s.deleteSession, doc{summary: "sign out", out: Session{}}},

		{get, "/api/v1/live", remap.Viewer, everyDoor, s.getLive, doc{summary: "live feed (WebSocket)",
			params: []param{
				{"topics",
					"overview, plans, findings, exclusions, beat, forwarder:ID, grid:bw|mdops|latency|err; separated " +
						"by commas"}, {"background", "1: a frame every 5 s"}}}},
		{get, "/api/v1/ingest", RoleAgent, everyDoor | DoorIngest, s.getIngest,
			doc{summary: "frames in, orders out (WebSocket, collector/wire)"}},
		{post, writePath, RoleAgent, everyDoor | DoorIngest, s.postWrite,
			doc{summary: "Influx line protocol in, from others' collectors",
				params: []param{{"precision", "ns, us, ms or s of the times; ns without it"}, {"org", "not looked at"},
					{"bucket", "not looked at"}}}},

		{get, "/api/v1/machine", remap.Viewer, everyDoor, s.getMachine,
			doc{summary: "layers, nodes, default and observed mapping", out: MachineView{}}},
		{get, "/api/v1/checks", remap.Operator, everyDoor, s.getChecks,
			doc{summary: "is the installation well: agents, clocks, sources, mapping, driver", out: []api.Check{}}},
		{get, "/api/v1/overview", remap.Viewer, everyDoor, s.getOverview,
			doc{summary: "the newest second of every forwarder, or a past one", out: api.Overview{},
				params: atParam}},
		{get, "/api/v1/marks", remap.Viewer, everyDoor, s.getMarks,
			doc{
				summary: "when findings, plans and exclusions changed and jobs began and ended, oldest first; the " +
					"last hour without a range", out: []remap.Mark{}, params: append(pageParams, rangeParams...)}},
		{get, "/api/v1/grid", remap.Viewer, everyDoor, s.getGrid,
			doc{summary: "the cells of all compute nodes in one past second, binary as in the live feed",
				params: append([]param{{"metric", "bw, mdops, latency or err"}}, atParam...)}},
		{get, "/api/v1/nodes", remap.Viewer, everyDoor, s.getNodes,
			doc{summary: "newest second of nodes", out: []api.NodeRow{},
				params: []param{{"role", "compute, forwarder, storage or metadata"},
					{"health", "ok, idle, suspect, excluded, dedicated or stale"},
					{"names", "1: only the names, in the order of the grid's cells"}}}},
		{get, "/api/v1/nodes/{id}", remap.Viewer, everyDoor, s.getNode,
			doc{summary: "one node with its sources", out: api.NodeView{}}},
		{get, "/api/v1/forwarders/{id}", remap.Viewer, everyDoor, s.getForwarder,
			doc{summary: "one forwarder, its clients and last five minutes, or as it was",
				out: api.ForwarderDetail{}, params: atParam}},
		{post, "/api/v1/forwarders/{id}/canary", remap.Operator, everyDoor, s.postCanary,
			doc{
				summary: "send one canary (a small write, read and stat) through a forwarder, at most one in 10 s, " +
					"and say what it found", in: api.Decision{}, out: anomaly.Canary{}}},
		{get, "/api/v1/flow", remap.Viewer, everyDoor, s.getFlow,
			doc{summary: "which way jobs' bytes take now: job to forwarder to storage, the most bytes first",
				out: FlowView{},
				params: append([]param{{"job", "only that job, and its neighbours on its forwarders"}},
					pageParams...)}},
		{get, "/api/v1/interference", remap.Viewer, everyDoor, s.getInterference,
			doc{summary: "how much jobs that move bytes now stand in each other's way", out: live.Interference{}}},
		{get, "/api/v1/series", remap.Viewer, everyDoor, s.getSeries,
			doc{summary: "one metric of nodes over time; a null value is a gap", out: SeriesAnswer{},
				params: append([]param{{"node", "names, separated by commas"}, {"metric", "its name"},
					{"step", "such as 10s; 1s without it"}, {"agg", "mean, sum, min, max or count"}}, rangeParams...)}},
		{get, "/api/v1/occupancy", remap.Viewer, everyDoor, s.getOccupancy,
			doc{summary: "how often forwarders were near their peak", out: api.OccupancyView{},
				params: append([]param{{"bucket", "such as 1h; 1h without it"},
					{"threshold", "0..1 of peak; 0.8 without it"}, {"nodes", "0: only what is over all forwarders"}},
					rangeParams...)}},
		{get, promPath, remap.Viewer, everyDoor, s.promQL,
			doc{summary: "Prometheus's HTTP API over the store, for Grafana"}},
		{post, promPath, remap.Viewer, everyDoor, s.promQL, doc{summary: "the same, with the parameters as a form"}},
		{get, "/api/v1/findings", remap.Viewer, everyDoor, s.getFindings,
			doc{summary: "what detectors say: open findings and those closed within an hour", out: []anomaly.Finding{},
				params: []param{{"state", "open: only those"}}}},
		{get, "/api/v1/findings/{id}", remap.Viewer, everyDoor, s.getFinding,
			doc{summary: "one finding with its life and frozen evidence", out: api.FindingView{}}},
		{post, "/api/v1/findings/{id}/ack", remap.Operator, everyDoor, s.postAcknowledge,
			doc{summary: "say that somebody looks after it", in: api.Decision{}, out: anomaly.Finding{}}},
		{post, "/api/v1/findings/{id}/silence", remap.Operator, everyDoor, s.postSilence,
			doc{summary: "keep it from calling anybody for a while; it is followed and shown as before",
				in: api.Silence{}, out: anomaly.Finding{}}},
		{post, "/api/v1/findings/{id}/dismiss", remap.Operator, everyDoor, s.postDismiss,
			doc{summary: "say that it is no fault, and why", in: api.Decision{}, out: anomaly.Finding{}}},
		{get, exclusionsPath, remap.Viewer, everyDoor, s.getExclusions,
			doc{summary: "forwarders withheld from allocation, on a lease", out: remap.Feed{},
				params: []param{{"generation", "wait until the list is another one than this, at most half a lease"}}}},
		{put, exclusionsPath + "/{node}", remap.Operator, everyDoor, s.putExclusion,
			doc{summary: "withhold a forwarder, or renew its lease; nobody is moved", in: api.Exclude{},
				out: remap.Exclusion{}}},
		{del, exclusionsPath + "/{node}", remap.Operator, everyDoor, s.deleteExclusion,
			doc{summary: "take a forwarder back into allocation", out: remap.Feed{},
				params: []param{{"reason", "why; kept in the audit"}}}},
		{get, "/api/v1/jobs", remap.Viewer, everyDoor, s.getJobs,
			doc{summary: "jobs: those that run, or those that have ended, newest first", out: []api.JobRow{},
				params: append([]param{{"state", "running (without it) or ended"}}, pageParams...)}},
		{get, "/api/v1/jobs/{id}", remap.Viewer, everyDoor, s.getJob,
			doc{summary: "one job, the forwarders of its nodes and its plans", out: api.JobView{}}},
		{get, "/api/v1/jobs/{id}/runs", remap.Viewer, everyDoor, s.getJobRuns,
			doc{
				summary: "a job beside the ended runs like it: of the same user, application, project and number of " +
					"nodes", out: api.JobRuns{},
				params: []param{{"limit", "compare with the newest so many, at most 500; 50 without it"}}}},
		{get, "/api/v1/jobs/{id}/profile", remap.Viewer, everyDoor, s.getJobProfile,
			doc{summary: "what a job did to the file system", out: ProfileView{}}},
		{post, "/api/v1/dispatch", RoleScheduler, everyDoor, s.postDispatch,
			doc{summary: "a job is about to start: decide, and propose its plan", in: dispatch.Request{},
				out: dispatch.Answer{}}},
		{post, "/api/v1/jobs/{id}/end", RoleScheduler, everyDoor, s.postJobEnd,
			doc{summary: "a job has ended: take its mapping back and build its profile", out: dispatch.Ended{}}},

		{get, "/api/v1/jobs/{id}/rootcause", remap.Viewer, everyDoor, s.getRootCause,
			doc{summary: "why a job's I/O took as long as it did, from its logs", out: api.JobCause{}}},
		{get, "/api/v1/jobs/{id}/domains", remap.Viewer, everyDoor, s.getDomains,
			doc{
				summary: "how a file that several processes of a job wrote could be divided among them, what it " +
					"costs in locks, and the hints to set", out: api.DomainsView{},
				params: []param{{"file", "which of its shared files, from 0 on, the most bytes first"},
					{"servers", "over how many it is striped; as the records tell without it"},
					{"stripe_size", "bytes"}, {"aggregators", "processes that write for all"}}}},
		{get, "/api/v1/archive", remap.Viewer, everyDoor, s.getAnalyses,
			doc{summary: "the named analyses of the I/O-log archive", out: []iolog.Analysis{}}},
		{get, "/api/v1/archive/sql", remap.Operator, everyDoor, s.getArchiveSQL,
			doc{summary: "one SELECT over the I/O-log archive", out: iolog.Result{},
				params: []param{{"q", "the SQL"}, {"limit", "at most so many rows"}}}},
		{get, "/api/v1/archive/{name}", remap.Viewer, everyDoor, s.getAnalysis,
			doc{summary: "a named analysis; further parameters are its own", out: iolog.Result{}}},

		{get, "/api/v1/shares", remap.Viewer, everyDoor, s.getShares,
			doc{summary: "what a sharing policy would give the running jobs, and what queues share by now",
				out: api.SharesView{},
				params: []param{{"policy", "such as size-fair (without it) or group-user-size-fair"},
					{"forwarder", "only jobs with a node on it"}}}},
		{get, "/api/v1/cycles", remap.Viewer, everyDoor, s.getCycles,
			doc{summary: "periodic applications in the history of runs, and a set of them for /api/v1/periodic",
				out: api.CyclesView{},
				params: []param{{"B", "bandwidth of the I/O system, GB/s; default all forwarders' peaks"},
					{"b", "bandwidth of a compute node, GB/s"}}}},
		{get, "/api/v1/periodic", remap.Viewer, everyDoor, s.getPeriodic,
			doc{summary: "stagger periodic applications: what if", out: api.PatternView{},
				params: []param{
					{"set", "processors, bandwidths and applications as JSON, as fairway periodic reads them"}}}},

		{get, "/api/v1/plans", remap.Viewer, everyDoor, s.getPlans,
			doc{summary: "plans, newest first", out: []api.PlanRow{}, params: pageParams}},
		{post, "/api/v1/plans", remap.Operator, everyDoor, s.postPlan, doc{summary: "propose a remap; nothing moves",
			in: api.ManualRemap{}, out: api.PlanView{}}},
		{get, "/api/v1/plans/{id}", remap.Viewer, everyDoor, s.getPlan,
			doc{summary: "one plan with its checks and progress", out: api.PlanView{}}},
		{get, "/api/v1/plans/{id}/preview", remap.Viewer, everyDoor, s.getPlan,
			doc{summary: "what approving it would do now", out: api.PlanView{}}},
		{post, "/api/v1/plans/{id}/approve", remap.Operator, everyDoor, s.decide(approve),
			doc{summary: "say yes to what was previewed", in: api.Decision{}, out: api.PlanView{}}},
		{post, "/api/v1/plans/{id}/reject", remap.Operator, everyDoor, s.decide(reject),
			doc{summary: "say no; nothing moves", in: api.Decision{}, out: api.PlanView{}}},
		{post, "/api/v1/plans/{id}/rollback", remap.Operator, everyDoor, s.decide(rollBack),
			doc{summary: "take back what was moved", in: api.Decision{}, out: api.PlanView{}}},
		{post, "/api/v1/plans/{id}/stop", remap.Operator, everyDoor, s.decide(stop),
			doc{summary: "stop applying", in: api.Decision{}, out: api.PlanView{}}},
		{post, "/api/v1/plans/{id}/complete", remap.Operator, everyDoor, s.decide(complete),
			doc{summary: "go on with a partial plan", in: api.Decision{}, out: api.PlanView{}}},
		{get, standingPath, remap.Viewer, everyDoor, s.getStanding,
			doc{summary: "standing approvals in force, oldest first", out: []remap.Standing{}}},
		{post, standingPath, remap.Operator, everyDoor, s.postStanding,
			doc{summary: "approve beforehand what policies propose for an application", in: api.Allow{},
				out: remap.Standing{}}},
		{del, standingPath + "/{id}", remap.Operator, everyDoor, s.deleteStanding,
			doc{summary: "revoke a standing approval; plans approved by it stay", out: []remap.Standing{},
				params: []param{{"reason", "why; kept in the audit"}}}},
		{get, "/api/v1/audit", remap.Viewer, everyDoor, s.getAudit,
			doc{summary: "who did what, newest first", out: []api.AuditEntry{},
				params: append([]param{{"actor", "a person's or policy's name"},
					{"subject", "a plan, a finding or an excluded forwarder"}},
					append(pageParams, rangeParams...)...)}},
	}
}

// exclusionsPath is where the feed is. It may be asked for a long time.
const exclusionsPath = "/api/v1/exclusions"

// MachineView is the site with its mappings.
type MachineView struct {
	topology.Machine
	Generation uint32           `json:"generation"` // changes with the list of nodes
	Observed   topology.Mapping `json:"observed_mapping"`
	Simulated  bool             `json:"simulated"`
}
