package darshan

import "fmt"

// Notes says what a reader of the log's figures has to know: truncated modules, versions with wrong
// counters, a clock that was not set.
func (h *Header) Notes() []string {
	var out []string
	for i := range h.Modules {
		m := &h.Modules[i]
		if m.Partial {
			out = append(out, fmt.Sprintf("%s: the runtime ran out of memory for it; its totals are lower bounds",
				m.Module))
		}
		if !m.Read {
			out = append(out, fmt.Sprintf("%s version %d is not read; %d bytes skipped", m.Module, m.Version, m.Length))
		}
	}
	if h.Version == "3.20" {
		out = append(out, "format 3.20: runtime 3.2.0 wrote wrong common access sizes and counts (ACCESS, COUNT)")
	}
	if len(h.Version) > 0 && h.Version < "2.03" {
		out = append(out, "format "+h.Version+": times do not count from the start of the job")
	}
	if h.Job.End.Before(h.Job.Start) {
		out = append(out, "the job's end lies before its start; how long it ran is not known")
	}
	if h.Job.ClockUnset() {
		out = append(out, "the node's clock was not set; start and end are no times of day")
	}
	return out
}
