package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/filedomain"
	"fairway/remap/policy/sharedfiles"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
)

// ROMIOHints are for the file that the last run like a job wrote together and that moved the most bytes.
type ROMIOHints struct {
	Hints map[string]string `json:"hints,omitempty"`
	// Run is the job that they follow from; empty: there was none.
	Run topology.JobID `json:"run,omitempty"`
	Why string         `json:"why"`
	// Assumed is what the records do not have.
	Assumed []string `json:"assumed,omitempty"`
}

// File is how ROMIO reads them from the file that ROMIO_HINTS names: a key and a value a line.
func (h *ROMIOHints) File() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(h.Hints)) {
		fmt.Fprintf(&b, "%s %s\n", k, h.Hints[k])
	}
	return b.String()
}

// words say the hints in a line, or why there are none.
func (h *ROMIOHints) words() string {
	if len(h.Hints) == 0 {
		return "no ROMIO hints: " + h.Why
	}
	return fmt.Sprintf("ROMIO hints from job %s: %s", h.Run, strings.ReplaceAll(strings.TrimSpace(h.File()), "\n",
		", "))
}

// maxHint is how long the value of a hint may be: Open MPI's bound, MPICH's is 1024.
const maxHint = 255

// pair names the nodes that are to write for the others, so that they are behind as many forwarders as may be. By
// itself ROMIO takes the first nodes, which are often behind one. Where it knows nodes by other names it takes any.
// Nodes whose forwarder is not known come last: they may share one with any other.
func (h *ROMIOHints) pair(s *remap.Situation, nodes []topology.NodeID, moves []remap.Move) {
	at := topology.Mapping{}
	for _, n := range nodes {
		if on := s.On(n); len(on) > 0 {
			at[n] = on[0]
		}
	}
	for _, m := range moves {
		at[m.Node] = m.To
	}
	turns, behind := map[topology.NodeID]int{}, map[topology.ForwarderID]int{}
	for _, n := range nodes {
		if at[n] == "" {
			turns[n] = len(nodes)
			continue
		}
		turns[n] = behind[at[n]]
		behind[at[n]]++
	}
	writers, _ := strconv.Atoi(h.Hints["cb_nodes"])
	if len(behind) < 2 || writers == 0 {
		return
	}
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b topology.NodeID) int { return cmp.Compare(turns[a], turns[b]) })
	list := ""
	for _, n := range nodes[:min(writers, len(nodes))] {
		if len(list)+len(n)+len(":1,*:1") > maxHint || strings.ContainsAny(string(n), ":,* ") {
			break
		}
		list += string(n) + ":1,"
	}
	if list != "" {
		h.Hints["cb_config_list"] = list + "*:1"
	}
}

// logsWithin bounds the question for the logs of the last run: the job waits for it.
const logsWithin = time.Second

// hintsFor advises a job that asked for it; without hints the answer says why there are none.
func hintsFor(ctx context.Context, cfg *Config, s *remap.Situation, r *Request) *ROMIOHints {
	p, ok := cfg.History.Predict(r.key())
	if !ok {
		return &ROMIOHints{Why: "no run like this one was measured"}
	}
	h := &ROMIOHints{Run: p.Run.Job}
	f, err := lastShared(ctx, cfg, &p.Run)
	if err != nil {
		h.Why = err.Error()
		return h
	}
	c, assumed, err := sharedfiles.Case(f, sharedfiles.Given{Nodes: len(r.Nodes),
		MachineServers: len(s.Machine.ByRole(topology.Storage))})
	if err != nil {
		h.Why = err.Error()
		return h
	}
	advice := filedomain.Advise(c)
	h.Hints, h.Why, h.Assumed = advice.Hints, advice.Why, assumed
	return h
}

// lastShared is the file of a run that hints may act on; that of a profile may have been written by POSIX calls, on
// which they do nothing.
func lastShared(ctx context.Context, cfg *Config, run *history.Run) (*sharedfiles.File, error) {
	var logs []iolog.Log
	if cfg.Logs != nil {
		ctx, cancel := context.WithTimeout(ctx, logsWithin)
		defer cancel()
		var err error
		if logs, err = cfg.Logs(ctx, *run); err != nil {
			cfg.Log.Warn("hints without the last run's logs", "job", run.Job, "err", err)
		}
	}
	files := sharedfiles.FromProfile(run)
	if len(logs) > 0 {
		files = sharedfiles.FromLogs(logs)
	}
	if len(files) == 0 {
		return nil, errors.New("the last run wrote no file by several processes")
	}
	for i := range files {
		if f := &files[i]; f.Through == sharedfiles.Collective || f.Through == sharedfiles.NotKnown {
			return f, nil
		}
	}
	return nil, errors.New(sharedfiles.Caveat(&files[0]))
}
