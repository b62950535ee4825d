package main

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"fairway/cmd/program"
)

// setting is what an operator is told about one key.
type setting struct {
	key  string
	text string // what it does, its unit, and where its default comes from
}

// settings lists every key in the order in which `fairwayd config` prints them.
var settings = []setting{
	{"name", "The machine's name, on every screen."},
	{"state_dir", "Directory of the store and the journal; absolute."},
	{"log_level", "debug, info, warn or error."},
	{"simulated", "Whether the frames come from a simulated machine; every screen then says so."},
	{"listen.socket",
		"Unix socket of the console and of local commands; empty: none. Who asks is known from the kernel."},
	{"listen.http",
		"HOST:PORT for browsers, terminals and agents; empty: none. This host only, until you name another address; " +
			"then put a proxy that speaks TLS before it."},
	{"listen.agents", "HOST:PORT of a further door for agents alone, such as an address of the fabric; empty: none."},
	{"listen.hosts", "Further names under which browsers reach listen.http; requests under other names are refused."},
	{"access.anonymous", "What a request without any sign-in may do: viewer, or empty for nothing."},
	{"access.secure_cookie", "Whether cookies are for TLS only; set it behind a proxy that speaks TLS."},
	{"access.oidc.issuer",
		"Address of the OpenID Connect provider at which people sign in, as in its own documents; empty: none."},
	{"access.oidc.client_id", "What fairway is called there."},
	{"access.oidc.client_secret_file",
		"File, readable by nobody else, that holds the client's secret; empty: a public client (PKCE is used either " +
			"way)."},
	{"access.oidc.url",
		"The console as browsers reach it, such as https://fairway.site; the provider must allow " +
			"/api/v1/oidc/callback below it, and its host must be in listen.hosts."},
	{"access.oidc.scopes", "Scopes asked for besides openid: those that bring the two claims."},
	{"access.oidc.name_claim",
		"The claim of the ID token that a person is called by here; the same name as on the socket is the same person."},
	{"access.oidc.groups_claim", "The claim with a person's groups, a list or one."},
	{"access.oidc.default", "Role of those whose groups have none: viewer, operator, admin, or empty to refuse them."},
	{"store.kind",
		"Where seconds are kept: embedded (in state_dir), influx or victoria (on a server, described below). " +
			"fairwayd migrate copies one to another."},
	{"store.sync", "Longest wait of frames for the disk, and so for their acknowledgement."},
	{"store.keep",
		"How long the embedded store keeps seconds, such as 720h; 0: for ever. A server has its own retention."},
	{"store.keep_bytes", "Bytes that the store may take before its oldest hours go; 0: no limit."},
	{"store.keep_10s",
		"How long buckets of 10 s (sum, count, least, greatest, seconds near the peak) are kept after the seconds " +
			"are gone, such as 8760h; 0: none are made."},
	{"store.keep_5m", "The same for buckets of 5 min; they are made from those of 10 s."},
	{"store.spool_bytes", "Bytes on disk that may wait for a store's server; past them the oldest go, counted."},
	{"store.influx.url", "Address of InfluxDB, such as http://127.0.0.1:8086."},
	{"store.influx.org", "Its organization; not needed for InfluxDB 1.8."},
	{"store.influx.bucket", "Its bucket; database/retention for InfluxDB 1.8."},
	{"store.influx.token_file",
		"File, readable by nobody else, that holds its token; user:password for InfluxDB 1.8; empty: none."},
	{"store.victoria.write_url",
		"What comes before /api/v2/write: http://127.0.0.1:8428, or http://vminsert:8480/insert/0/influx for tenant " +
			"0 of a cluster."},
	{"store.victoria.read_url",
		"What comes before /api/v1/query: the same address, or http://vmselect:8481/select/0/prometheus."},
	{"store.victoria.token_file", "File, readable by nobody else, that holds its bearer token; empty: none."},
	{"archive.forwarders",
		"Whether the forwarders' seconds of each whole day go into the I/O-log archive, where the logs of jobs are; " +
			"idle seconds do not."},
	{"archive.history",
		"Whether batch jobs whose account and I/O logs are in the archive go into the history that predictions are " +
			"made from."},
	{"forwarder.peak_bytes_per_sec",
		"Peak bandwidth of a forwarder in one direction, bytes/s, where its [[node]] does not say; 0: not known, " +
			"then it has no occupancy."},
	{"desk.mode",
		"How far the desk goes by itself: observe (plans are proposed and not applied), approve (people say yes, to " +
			"a plan or to an application once and for all) or auto (plans of policies are approved by rule)."},
	{"desk.plans_per_minute", "Most plans that are approved by rule within a minute; further ones wait for a person."},
	{"desk.proposal_ttl", "How long a proposal waits for approvals."},
	{"desk.approval_ttl", "How long an approved plan may wait for its start."},
	{"desk.verify_within", "How long the collector may take to see a new mapping before the plan counts as partial."},
	{"desk.self_approval", "Whether who proposed a plan may approve it; for sites where one operator works alone."},
	{"desk.two_persons", "Whether big or doubtful plans need two approvals."},
	{"desk.big_plan", "Moves above which a plan is big."},
	{"desk.healthy_floor", "Smallest number of healthy forwarders that a plan must leave for everybody."},
	{"desk.max_excluded",
		"Largest share of the forwarders that may be excluded at once, 0 to 1; at least one forwarder, unless 0."},
	{"desk.feed_lease", "How long a reader of the exclusion feed may rely on it without a newer one."},
	{"desk.max_applying", "Plans that may be applied at once; a roll back never waits."},
	{"detector.false_alarm_every",
		"Mean time between two false alarms of one healthy forwarder that the sequential test is set to; " +
			"docs/detection.md says what it rests on."},
	{"detector.learn_for", "How long a forwarder is watched before its own offset is believed."},
	{"detector.threads", "How many requests a forwarder serves at once."},
	{"detector.peak_bytes_per_sec", "What a forwarder can move, bytes/s; 0: learnt from the fleet."},
	{"detector.idle_probe_every", "Least time between two canary probes of a forwarder without load."},
	{"detector.probe_busy",
		"Probe forwarders with load as often: canaries through a loaded one are then compared with those through " +
			"others with as much load."},
	{"detector.suspect_probe_every", "Least time between two canary probes of a suspect forwarder."},
	{"detector_state.save_every",
		"How often what the detectors have learnt, and their evidence, is saved in state_dir; at the end too."},
	{"detector_state.max_age", "How old a saved state may be at a start; with an older one the detectors begin anew."},
	{"interference.threads", "Requests that a forwarder serves at once."},
	{"interference.pinned_exec_seconds",
		"Service time of a write, in seconds, from which it waits for a lock rather than for the back end."},
	{"interference.pinned_wait_seconds", "Time, in seconds, that requests behind such writes wait at least."},
	{"interference.storm_share", "Share of the threads that serve metadata in a metadata storm, 0 to 1."},
	{"interference.storm_ops", "Metadata operations a second below which it is no storm."},
	{"interference.full_share", "Share of its peak at which a forwarder is full, 0 to 1."},
	{"interference.full_seconds", "How long it must be full to be named so."},
	{"interference.backend_ratio",
		"Times its usual service time that a storage pool, or the layer, takes in a brown-out."},
	{"findings.mode",
		"observe: findings are shown and people exclude; auto: a confirmed fail-slow forwarder is withheld from " +
			"allocation, within the floors."},
	{"findings.suspect_seconds", "Seconds of doubt that make a suspicion; one second of alarm does too."},
	{"findings.confirm_seconds", "Seconds of alarm that confirm a suspicion."},
	{"findings.clear_seconds", "Seconds at work without doubt that end it."},
	{"findings.forget_after", "How long a suspicion of which nothing more is seen is kept."},
	{"findings.hold", "Least time of an exclusion by policy; doubles with each relapse."},
	{"findings.hold_most", "Most that the hold grows to."},
	{"findings.probe_passes", "Canary probes in a row that must pass before a first job."},
	{"findings.trial",
		"How long a forwarder is watched after its exclusion; also how long it must be quiet where nobody probes."},
	{"findings.mute", "How long a dismissed finding is not made again."},
	{"findings.max_excluded",
		"Largest share of the forwarders that may be excluded at once by policy, 0 to 1; at least one forwarder, " +
			"unless 0. desk.max_excluded holds as well."},
	{"findings.healthy_floor",
		"Smallest number of healthy forwarders that a policy must leave. desk.healthy_floor holds as well."},
	{"probe.export",
		"Attach name of a tree of every 9P forwarder in which canary I/O may write; empty: no canaries by 9P."},
	{"probe.file", "Name of the canary's file there; each forwarder's has its name added."},
	{"probe.uid", "User who owns it."},
	{"probe.bytes", "Bytes that a canary writes and reads."},
	{"probe.timeout", "When a canary without an answer is ended."},
	{"feed.file",
		"File in which the exclusions are kept for a scheduler's plug-in, written whole and renamed; empty: none. " +
			"Absolute."},
	{"dispatch.policy",
		"What decides a job's forwarders at its start: dfra (more, dedicated or healthy ones, FAST'19), mckp (the " +
			"same claims, arbitrated among jobs by exact knapsack) or avoid (only steer away from slow ones)."},
	{"dispatch.harm_bound", "How much slower than on its default mapping mckp may make a job: 0.05 is 5 %."},
	{"dispatch.live_after",
		"How long a running neighbour must have been watched before what it does now counts instead of its history."},
	{"dispatch.v_min_bytes",
		"I/O volume, bytes, above which a job may get more forwarders (FAST'19, section 4: 20 GB)."},
	{"dispatch.n_min", "Compute nodes doing I/O from which a job may get more forwarders; 0: f (FAST'19, section 4)."},
	{"dispatch.w_metadata",
		"Mean metadata operations waiting at a forwarder: below it a job may get more forwarders, above it it is " +
			"metadata-heavy (FAST'19, section 4: twice TaihuLight's pool of 16 threads)."},
	{"dispatch.fwd_peak_bw", "Peak bandwidth of a forwarder, bytes/s; 0: forwarder.peak_bytes_per_sec."},
	{"dispatch.cn_peak_bw", "Peak bandwidth of a compute node, bytes/s; 0: not known."},
	{"dispatch.f",
		"Compute nodes doing I/O that one forwarder can carry; 0: fwd_peak_bw / cn_peak_bw, else 32 (FAST'19, " +
			"section 4)."},
	{"dispatch.default_ratio",
		"Compute nodes per forwarder, for jobs whose default forwarders are not known (FAST'19, section 2.1: 512)."},
	{"dispatch.high_bw",
		"Peak bandwidth, bytes/s, from which a job is taken to disturb its neighbours; 0: never (the paper's value " +
			"is not published)."},
	{"dispatch.high_iops",
		"Peak reads and writes a second from which a job is taken to disturb its neighbours; 0: never (not published)."},
	{"dispatch.low_bw",
		"A watched neighbour is quiet if its peak bandwidth, bytes/s, its operations and its metadata are all at or " +
			"below the low settings (not published)."},
	{"dispatch.low_iops", "See low_bw; reads and writes a second."},
	{"dispatch.low_meta", "See low_bw; metadata operations under way at a forwarder."},
	{"slurm.jobs",
		"Command that prints the batch system's jobs, a word an argument: [\"squeue\", \"--json\"] or [\"scontrol\", " +
			"\"show\", \"job\", \"-o\"]; empty: jobs are known by their hooks alone. A job that it does not print " +
			"has ended."},
	{"slurm.every", "How often it is asked, 10s to 1h."},
	{"slurm.timeout", "When it is ended without an answer."},
	{"slurm.zone", "Where its times are that name no zone, such as Europe/Berlin; Local: this host's."},
	{"driver.kind",
		"How compute nodes are told to move: none (refuse), agents (orders to their agents, each in the way its " +
			"[orders] says), exec (a command of the site's), or sim (orders to a simulated " +
			"machine)."},
	{"driver.command",
		"The command of the kind exec, a word an argument; it gets JSON on standard input (docs/drivers.md). " +
			"driver.timeout bounds one run of it."},
	{"driver.parallel", "Orders under way together."},
	{"driver.tries", "Tries per order."},
	{"driver.backoff", "Wait before the second try; doubles with each further one."},
	{"driver.timeout", "Longest wait for the answer to one try."},
	{"queue.policy",
		"Policy by which the fairway-queues in front of forwarders share them among jobs, such as size-fair " +
			"(docs/shares.md); empty: they get none. Their agents must have source.queue.tables."},
	{"queue.idle",
		"Who uses what idle jobs leave: inside (the same user first, then the same group) or flat (everybody)."},
	{"queue.lease",
		"How long a queue keeps the policy without a table from this daemon; then it serves in the order of arrival. " +
			"It gets one three times in a lease, and whenever its jobs change."},
	{"queue.lambda",
		"How often what the queues served is gathered and each gets its part of the global shares (lambda-delayed " +
			"fairness), 50ms to 1m; 0: shares are local, each queue's own. A queue that gets none for three of " +
			"them, or 3 s, goes back to its local shares."},
	{"queue.forwarders", "Forwarders that have a queue, as patterns; none: every forwarder."},
	{"queue.priority_from",
		"Where a policy that divides by priority (priority-fair) takes a job's from, as slurm.jobs prints it: " +
			"scheduler (the number that the batch system schedules by) or qos (queue.qos)."},
	{"queue.default_priority",
		"Priority of a job whose priority the batch system does not or not yet report, or whose QOS is not in " +
			"queue.qos."},
	{"queue.qos", "Priority of the jobs of each quality of service, above 0: high = 4."},
	{"probe.mounts",
		"Forwarders that are probed by file I/O: forwarder = folder of this host that is mounted through it."},
	{"access.groups",
		"Unix groups and the role of their members on the socket: viewer, operator, admin or scheduler (may tell of " +
			"jobs only). root is an admin."},
	{"access.token",
		"Bearer tokens: name, role (viewer, operator, admin, agent or scheduler), and either sha256 (of the secret; " +
			"fairwayd token makes both) or file (that holds the secret). For agents also nodes (patterns of the " +
			"nodes it may speak for; none: all) and limits (nodes, samples_per_frame, frames_per_sec, burst_seconds, " +
			"message_bytes)."},
	{"access.account", "People who sign in with a password: name, role, hash (fairwayd hash-password)."},
	{"access.oidc.roles",
		"Groups of the provider and the role of their members: viewer, operator or admin; of several the largest " +
			"counts."},
	{"access.proxy",
		"A reverse proxy that says who people are: from (address ranges it connects from), user_header, " +
			"groups_header, roles (by group), default (role)."},
	{"mount",
		"The file systems that jobs' I/O logs speak of: point (where they are mounted), file_system (their name in " +
			"the servers' record, before -OST) and forwarders (patterns of those that serve it; none: all). What is " +
			"not listed is taken for the file system of its last name, or the only one recorded, behind every " +
			"forwarder."},
	{"node",
		"The machine's nodes; more are learned from what reports. Each has id, role (compute, forwarder, storage, " +
			"metadata), rack, addr (HOST:PORT of a forwarder's file service; needed to move nodes there) and " +
			"peak_bytes_per_sec."},
	{"default_mapping", "The site's fixed mapping: compute node = forwarder."},
}

// printConfig writes c as a file that could be its source, each setting with its explanation, its
// default where it differs, and the line that set it.
func printConfig(w io.Writer, c *Config, text []byte, meta toml.MetaData) error {
	def := defaultConfig()
	table := ""
	for _, s := range settings {
		value, err := lookUp(reflect.ValueOf(c).Elem(), s.key)
		if err != nil {
			return err
		}
		was, err := lookUp(reflect.ValueOf(&def).Elem(), s.key)
		if err != nil {
			return err
		}
		fmt.Fprintln(w)
		isTable := value.Kind() == reflect.Map || value.Kind() == reflect.Slice &&
			value.Type().Elem().Kind() == reflect.Struct
		head, name := "", s.key
		if i := strings.LastIndexByte(s.key, '.'); i >= 0 {
			head, name = s.key[:i], s.key[i+1:]
		}
		if !isTable && head != "" && head != table {
			table = head
			fmt.Fprintf(w, "[%s]\n", table)
		}
		for _, line := range wrap(s.text, 100) {
			fmt.Fprintf(w, "# %s\n", line)
		}
		if isTable {
			if err := printTable(w, s.key, value); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s = %s%s\n", name, literal(value), origin(s.key, literal(was), text, meta))
	}
	return nil
}

func origin(key, was string, text []byte, meta toml.MetaData) string {
	if !meta.IsDefined(strings.Split(key, ".")...) {
		return ""
	}
	return fmt.Sprintf(" # line %d; default %s", program.LineOf(text, toml.Key(strings.Split(key, "."))), was)
}

// printTable writes what stands last in the file: tokens, nodes, the mapping and their like.
func printTable(w io.Writer, key string, v reflect.Value) error {
	if v.Len() == 0 {
		_, err := fmt.Fprintf(w, "# none: [%s]\n", key)
		return err
	}
	tree := v.Interface()
	parts := strings.Split(key, ".")
	for _, part := range slices.Backward(parts) {
		tree = map[string]any{part: tree}
	}
	var out bytes.Buffer
	e := toml.NewEncoder(&out)
	e.Indent = ""
	if err := e.Encode(tree); err != nil {
		return err
	}
	// The tables around it were opened before, and may be opened only once.
	text := out.String()
	for i := range parts[1:] {
		text = strings.TrimPrefix(text, "["+strings.Join(parts[:i+1], ".")+"]\n")
	}
	_, err := io.WriteString(w, strings.TrimLeft(text, "\n"))
	return err
}

// lookUp finds the field behind a dotted key.
func lookUp(v reflect.Value, key string) (reflect.Value, error) {
	for part := range strings.SplitSeq(key, ".") {
		found := false
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.Tag.Get("toml") == part {
				v, found = v.FieldByIndex(f.Index), true
				break
			}
		}
		if !found {
			return v, fmt.Errorf("BUG: setting %q is explained and does not exist", key)
		}
	}
	return v, nil
}

// literal writes a value as TOML.
func literal(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return fmt.Sprintf("%q", x.String())
	case []string:
		quoted := make([]string, len(x))
		for i, s := range x {
			quoted[i] = fmt.Sprintf("%q", s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case float64:
		if text := fmt.Sprint(x); strings.ContainsAny(text, ".e") {
			return text
		}
		return fmt.Sprintf("%.1f", x)
	}
	if v.Kind() == reflect.String {
		return fmt.Sprintf("%q", v.String())
	}
	return fmt.Sprint(v.Interface())
}

// wrap breaks text into lines of at most width bytes.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
