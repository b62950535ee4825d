// Package papers measures, on the testbed's real I/O, the effects that the papers behind fairway's policies report:
// real forwarders with links of a set rate, real mounts, real jobs, and files that are read back and compared.
// Nothing of it is simulated; what a policy predicted is called a prediction.
package papers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Experiment is the measurements that belong to one paper.
type Experiment struct {
	Name  string // as on the command line
	Title string // with the paper
	run   func(context.Context, *Lab) ([]Row, error)
}

// Experiments are all of them, in the order of the page.
var Experiments = []Experiment{
	{"dfra", "DFRA: forwarders by a job's needs (Ji et al., FAST '19)", dfraResults},
	{"mix", "A mix of jobs under each policy", mixResults},
	{"themisio", "ThemisIO: shares of a forwarder (section numbers of the paper)", themisResults},
	{"overhead", "Beacon: what collection costs a job (Ji et al., FAST '19)", overheadResults},
	{"filedomain", "File domains of collective MPI-IO (Northwestern, OCI-0724599)", domainResults},
	{"causes", "Why a job was slow: five causes made and explained (Wang et al., IOMiner)", causeResults},
	{"persched", "PerSched: windows for periodic I/O (Aupy, Gainaru, Le Fèvre)", perschedResults},
}

// Row is one effect: what the paper reports, and what was measured here, once a repetition.
type Row struct {
	Effect string
	Paper  string // its figure and where that is
	Values []float64
	Unit   string // after the number: "x", " %", " ms"
	Bar    string // what was aimed at; "" for none
	Why    string // why ours is not the paper's
	Failed string // what did not happen as it must; the table is written, and the command fails
}

// Lab is what the experiments run with.
type Lab struct {
	Programs string // folder of fairway's programs
	Self     string // fairway-demo itself: the ranks of the jobs
	Quick    bool   // seconds instead of minutes, once: whether it works, not how well
	Out      io.Writer
}

// Run measures the named experiments, or all, and writes each one's table into the page as soon as it is there.
// Without a page the tables are only printed.
func Run(ctx context.Context, l *Lab, names []string, page string) error {
	for _, n := range names {
		if !slices.ContainsFunc(Experiments, func(e Experiment) bool { return e.Name == n }) {
			return fmt.Errorf("results: no experiment is called %q (there are %s)", n, strings.Join(Names(), ", "))
		}
	}
	if os.Geteuid() != 0 {
		return errors.New("results: the nodes of the testbed are namespaces: run it as root")
	}
	var failed []error
	for _, e := range Experiments {
		if len(names) > 0 && !slices.Contains(names, e.Name) {
			continue
		}
		fmt.Fprintf(l.Out, "%s\n", e.Title)
		began, busy := time.Now(), busySeconds()
		rows, err := e.run(ctx, l)
		if err != nil {
			return fmt.Errorf("results %s: %w", e.Name, err)
		}
		took := time.Since(began)
		text := section(&e, rows, condition{at: began, took: took, busy: partOf(busySeconds()-busy, took)})
		fmt.Fprintln(l.Out, text)
		if page != "" && !l.Quick {
			if err := replace(page, e.Name, text); err != nil {
				return err
			}
		}
		for _, r := range rows {
			if r.Failed != "" {
				failed = append(failed, fmt.Errorf("results %s: %s", e.Name, r.Failed))
			}
		}
	}
	return errors.Join(failed...)
}

// Names are those of the experiments.
func Names() []string {
	var out []string
	for _, e := range Experiments {
		out = append(out, e.Name)
	}
	return out
}

// repeat is how often a measurement is made.
func (l *Lab) repeat(times int) int {
	if l.Quick {
		return 1
	}
	return times
}

// pick is the size of a measurement.
func pick[T any](l *Lab, full, quick T) T {
	if l.Quick {
		return quick
	}
	return full
}

func (l *Lab) program(name string) string { return filepath.Join(l.Programs, name) }

func (l *Lab) say(format string, args ...any) { fmt.Fprintf(l.Out, "  "+format+"\n", args...) }

// replace puts an experiment's section between its marks in the page.
func replace(page, name, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin, end := []byte("<!-- "+name+": measured -->\n"), []byte("<!-- "+name+": end -->\n")
	i, j := bytes.Index(old, begin), bytes.Index(old, end)
	if i < 0 || j < i {
		return fmt.Errorf("results: %s has no place for %s: want the lines %q and %q", page, name, begin, end)
	}
	return os.WriteFile(page, slices.Concat(old[:i+len(begin)], []byte(text), old[j:]), 0o644)
}
