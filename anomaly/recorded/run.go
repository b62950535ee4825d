// Package recorded replays a recorded trace of a forwarding layer through the detectors that watch a running one. It
// goes by the trace's own clock: what arrives later is never used.
package recorded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// Settings say how a trace is judged.
type Settings struct {
	FailSlow  failslow.Settings
	Life      anomaly.Settings // its mode is taken for auto: a trace has nobody to ask
	Occupancy bool             // whether each day ends with events of type occupancy
}

// DefaultSettings are those of the daemon, with exclusion switched on.
func DefaultSettings() Settings {
	s := Settings{FailSlow: failslow.DefaultSettings(), Life: anomaly.DefaultSettings()}
	s.FailSlow.ProbeBusy = false // a trace answers for idle nodes and suspects
	s.Life.Mode = anomaly.ModeAuto
	s.Life.MaxExcluded = 0.15
	return s
}

// Event is one line of the answer.
type Event struct {
	Type   string           `json:"type"` // fail_slow, exclude, interference, backend, probe, target_slow or occupancy
	Node   topology.NodeID  `json:"node"`
	Start  int64            `json:"start"`         // Unix seconds
	End    int64            `json:"end,omitempty"` // absent while it lasts
	Detail string           `json:"detail,omitempty"`
	Jobs   []topology.JobID `json:"jobs,omitempty"` // that explain it, where the job table knows
	// Sentence is what an operator can repeat, as it was when the event began.
	Sentence   string  `json:"sentence,omitempty"`
	Confidence float64 `json:"confidence,omitempty"`
	// Occupancy is that of a day (UTC), in events of that type alone.
	Occupancy *Occupancy `json:"occupancy,omitempty"`
}

// Summary counts what was read.
type Summary struct {
	Rows, Seconds, Bad int
}

// Detect judges the trace in dir and gives each event to emit when it ends, those still open at the end
// of the trace last. bad gets each row that cannot be used.
func Detect(ctx context.Context, dir string, set Settings, emit func(Event) error, bad func(*RowError)) (sum Summary,
	err error) {
	if info, err := os.Stat(dir); err != nil {
		return sum, err
	} else if !info.IsDir() {
		return sum, fmt.Errorf("%s is not a directory; want one that holds samples.csv, targets.csv or days of disks",
			dir)
	}
	report := func(e *RowError) {
		sum.Bad++
		bad(e)
	}
	some, err := detectTargets(ctx, dir, set, emit, &sum, report)
	if err != nil {
		return sum, err
	}
	logs, err := detectLogs(ctx, dir, set, emit, &sum, report)
	if err != nil {
		return sum, err
	}
	disks, err := detectDisks(ctx, dir, set, emit, &sum, report)
	if err != nil {
		return sum, err
	}
	some = some || logs || disks
	t, err := Open(dir, report)
	if some && errors.Is(err, fs.ErrNotExist) {
		return sum, nil // a trace of targets alone
	}
	if err != nil {
		return sum, err
	}
	defer func() {
		sum.Rows += t.Rows
		err = errors.Join(err, t.Close())
	}()
	site := Site{Forwarders: len(t.Nodes), Jobs: t.Jobs}
	if t.probe != nil {
		site.Canary = t.Canary
	}
	r := NewReplay(set, site, emit)
	for {
		s, err := t.Next()
		if errors.Is(err, io.EOF) {
			return sum, errors.Join(t.Damage(), r.Finish())
		}
		if err != nil {
			return sum, errors.Join(err, r.Finish())
		}
		sum.Seconds++
		if err := errors.Join(r.Second(s), ctx.Err()); err != nil {
			return sum, err
		}
	}
}

// WriteCSV returns an emit that writes the line type,node,start,end,detail for each event.
func WriteCSV(w io.Writer) (emit func(Event) error, err error) {
	_, err = fmt.Fprintln(w, "type,node,start,end,detail")
	return func(e Event) error {
		end := ""
		if e.End != 0 {
			end = strconv.FormatInt(e.End, 10)
		}
		_, err := fmt.Fprintf(w, "%s,%s,%d,%s,%s\n", e.Type, plain(string(e.Node)), e.Start, end, plain(e.Detail))
		return err
	}, err
}

// Validate says which setting is out of its range.
func (s Settings) Validate() error {
	return errors.Join(s.FailSlow.Validate(), s.Life.Validate())
}
