package config

import "strings"

// Retired returns the settings that went, with the reason why each is a constant now: no site that is known has turned
// it, or another setting says the same.
func (*Config) Retired() map[string]string {
	const (
		bounded  = "callers take turns, so that a larger bound would serve nobody sooner (docs/security.md)"
		measured = "its value is what the detectors are scored with (docs/detection.md)"
		learnt   = "it is learnt from the jobs of this machine (docs/decide.md)"
		orders   = "an order is repeated until it is answered, so that it changes how soon alone"
		canary   = "a canary is as small as it is useful, and each forwarder has its own file"
	)
	out := map[string]string{
		"limits":                      bounded,
		"store.oldest_frame":          "a week; an agent's spool holds two days",
		"queue.lease":                 "two minutes are as long as a daemon may need to start again",
		"dispatch.live_after":         "a minute holds a phase of I/O or two",
		"store.spool_bytes":           "4 GiB are a day of a large machine",
		"archive":                     "keep.archive bounds what is kept of it; it costs minutes of a night",
		"keep.detectors":              "what is usual changes with the jobs: after an hour they learn anew",
		"cluster.ca_file":             "the daemons prove themselves to each other by cluster.secret_file",
		"memory_bytes":                "nine tenths of the unit's MemoryMax, or GOMEMLIMIT",
		"simulated":                   "a demo says it of itself",
		"keep.journal":                "a year; records in segments are read as all are",
		"slurm.zone":                  "times without a zone are of TZ, of the daemon as of each program",
		"desk.healthy_floor":          "one, and desk.max_excluded bounds the share",
		"desk.max_applying":           "further plans wait for seconds",
		"findings.hold":               "ten minutes, doubled with each relapse",
		"queue.idle":                  "a user's share stays with the user, then the group, as in the paper",
		"queue.priority_from":         "queue.qos says it, where it has entries",
		"desk.proposal_ttl":           "a proposal is of the minutes in which it was made",
		"desk.approval_ttl":           "an approval is of the minute in which it was given",
		"desk.feed_lease":             "a reader must notice within a minute that the feed ended (docs/exclusions.md)",
		"detector.peak_bytes_per_sec": "it is learnt from the fleet",
		"findings.hold_most":          "hold doubles up to a day",
		"findings.mute":               "who dismissed a finding has a day",
		"findings.max_excluded":       "a tenth, and desk.max_excluded bounds people and policies alike",
		"findings.healthy_floor":      "one must stay, for people and policies alike",
		"dispatch.default_ratio":      "the observed mapping says it",
		"slurm.timeout":               "a batch system that needs longer than 10 s is asked again",
		"queue.default_priority":      "a job without a priority weighs 1, and weights are relative",
	}
	for reason, settings := range map[string]string{
		measured: "detector.threads findings.clear_seconds findings.forget_after detector.learn_for " +
			"detector.idle_probe_every detector.probe_busy detector.suspect_probe_every interference " +
			"findings.suspect_seconds findings.confirm_seconds findings.probe_passes findings.trial",
		learnt: "dispatch.high_bw dispatch.high_iops dispatch.low_bw dispatch.low_iops dispatch.low_meta",
		orders: "driver.parallel driver.tries driver.backoff",
		canary: "probe.file probe.bytes probe.timeout",
	} {
		for setting := range strings.FieldsSeq(settings) {
			out[setting] = reason
		}
	}
	return out
}
