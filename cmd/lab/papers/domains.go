package papers

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fairway/anomaly"
	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
	"fairway/remap/policy/filedomain"
)

// collectiveWriter is the program of the collective writes.
//
//go:embed mpi/collective.c
var collectiveWriter []byte

// domains are collective writes of one file by a rank on each of four nodes, each node behind a forwarder of its own:
// what one rank writes for the others arrives at its forwarder.
type domains struct {
	*Lab
	tb      *testbed.Testbed
	program string
	blocks  int // of each rank
	runs    int // so far; each has a file of its own
}

const (
	domainRanks = 4
	blockBytes  = 4000
)

// region is the file of a collective write, as the paper's methods see it: no even cut of it is on a stripe's boundary.
func (d *domains) region(m filedomain.Method) filedomain.Case {
	return filedomain.Case{End: int64(d.blocks) * domainRanks * blockBytes, StripeSize: 256 << 10, Servers: 2,
		Aggregators: domainRanks, Method: m}
}

// way is one way of writing the file.
type way struct {
	name    string
	hints   map[string]string
	method  filedomain.Method // without MPI-IO; "" with it
	seconds []float64
	arrived arrivals
}

// arrivals is what came to the forwarders in a write of the whole file.
type arrivals struct {
	requests, shared, changes int
}

func domainResults(ctx context.Context, l *Lab) (rows []Row, err error) {
	tb, err := l.newTestbed(ctx, testbed.Config{Forwarders: domainRanks, ComputeNodes: domainRanks,
		LinkBytesPerSec: l.link()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tb.Close()) }()
	d := &domains{Lab: l, tb: tb, blocks: pick(l, 1050, 140)}
	dir, err := os.MkdirTemp("", "collective")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := d.build(ctx, dir); err != nil {
		return nil, err
	}
	delegates := func(n int) map[string]string {
		return map[string]string{"romio_cb_write": "enable", "cb_nodes": strconv.Itoa(n)}
	}
	unaligned := d.region(filedomain.Even)
	unaligned.Aggregators = 3
	ways := []*way{
		{name: "own requests", hints: map[string]string{"romio_cb_write": "disable", "romio_ds_write": "disable"}},
		{name: "1 delegate", hints: delegates(1)}, {name: "2 delegates", hints: delegates(2)},
		{name: "3 delegates", hints: delegates(3)}, {name: "4 delegates", hints: delegates(4)},
		{name: "as advised", hints: filedomain.Advise(unaligned).Hints}}
	for _, m := range []filedomain.Method{filedomain.Even, filedomain.Aligned, filedomain.StripeSize,
		filedomain.StaticCyclic, filedomain.GroupCyclic, filedomain.Transpose} {
		ways = append(ways, &way{name: string(m), method: m})
	}
	for range l.repeat(5) {
		for _, w := range ways {
			seconds, err := d.write(ctx, dir, w)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			w.seconds = append(w.seconds, seconds)
		}
	}
	for _, w := range ways {
		if w.arrived, err = d.count(ctx, dir, w); err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		l.say("%s: %.2f s, %+v", w.name, anomaly.Median(w.seconds), w.arrived)
	}
	return d.rows(ways), nil
}

// build compiles the writer.
func (d *domains) build(ctx context.Context, dir string) error {
	source := filepath.Join(dir, "collective.c")
	d.program = filepath.Join(dir, "collective")
	if err := os.WriteFile(source, collectiveWriter, 0o600); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "mpicc.mpich", "-O1", "-o", d.program, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mpicc.mpich (Debian: mpich libmpich-dev): %w\n%s", err, out)
	}
	return nil
}

var secondsLine = regexp.MustCompile(`(?m)^seconds ([0-9.]+)$`)

// write writes the file in one way, compares it, removes it, and says how long it took.
func (d *domains) write(ctx context.Context, dir string, w *way) (seconds float64, err error) {
	d.runs++
	name := fmt.Sprintf("collective.%d", d.runs)
	argv := []string{d.program, filepath.Join(testbed.MountPoint, name), strconv.Itoa(d.blocks),
		strconv.Itoa(blockBytes)}
	for _, k := range slices.Sorted(maps.Keys(w.hints)) {
		argv = append(argv, k+"="+w.hints[k])
	}
	if w.method != "" {
		path := filepath.Join(dir, "domains")
		if err := os.WriteFile(path, d.requests(w.method), 0o600); err != nil {
			return 0, err
		}
		argv = append(argv, "domains="+path)
	}
	out, err := d.tb.MPIRun(ctx, nodes(0, domainRanks), argv...)
	if err != nil {
		return 0, err
	}
	m := secondsLine.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("the writer printed no time:\n%s", out)
	}
	if seconds, err = strconv.ParseFloat(string(m[1]), 64); err != nil {
		return 0, err
	}
	return seconds, d.compare(filepath.Join(d.tb.Dir(), name))
}

// requests are the domains of a method as the writer reads them, each request at most four stripes: a buffer of the
// library's holds that much.
func (d *domains) requests(m filedomain.Method) []byte {
	var b bytes.Buffer
	c := d.region(m)
	most := 4 * c.StripeSize
	for rank, domain := range filedomain.Divide(c).Domains {
		for _, e := range domain {
			for at := e[0]; at < e[0]+e[1]; at += most {
				fmt.Fprintf(&b, "%d %d %d\n", rank, at, min(most, e[0]+e[1]-at))
			}
		}
	}
	return b.Bytes()
}

// compare reads what lies in the file system, and removes it.
func (d *domains) compare(path string) error {
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if want := d.blocks * domainRanks * blockBytes; len(got) != want {
		return fmt.Errorf("%s has %d bytes, %d were written", filepath.Base(path), len(got), want)
	}
	for i, b := range got {
		if want := byte('a' + i/blockBytes%26); b != want {
			return fmt.Errorf("%s: byte %d is %q, %q was written", filepath.Base(path), i, b, want)
		}
	}
	return os.Remove(path)
}

// arrival is a write at a forwarder.
type arrival struct {
	at, length int64
	forwarder  int
}

var arrivalLine = regexp.MustCompile(`(?m)^\d+ +pwrite64\(.*, (\d+), (\d+)(?:\)| <unfinished)`)

// count writes the file once more while every write of the forwarders is traced, which makes it slower.
func (d *domains) count(ctx context.Context, dir string, w *way) (_ arrivals, err error) {
	var stops []func() error
	trace := func(i int) string { return filepath.Join(dir, fmt.Sprintf("trace.%d", i)) }
	for i := range domainRanks {
		stop, err := d.tb.TraceWrites(ctx, topology.ForwarderID(fmt.Sprintf("fwd%03d", i)), trace(i))
		if err != nil {
			return arrivals{}, err
		}
		stops = append(stops, stop)
	}
	_, err = d.write(ctx, dir, w)
	for _, stop := range stops {
		err = errors.Join(err, stop())
	}
	if err != nil {
		return arrivals{}, err
	}
	var all []arrival
	for i := range domainRanks {
		text, err := os.ReadFile(trace(i))
		if err != nil {
			return arrivals{}, err
		}
		for _, m := range arrivalLine.FindAllSubmatch(text, -1) {
			a := arrival{forwarder: i}
			a.length, _ = strconv.ParseInt(string(m[1]), 10, 64) // digits
			a.at, _ = strconv.ParseInt(string(m[2]), 10, 64)
			all = append(all, a)
		}
	}
	return d.arrivals(all)
}

// arrivals counts requests, stripes that several forwarders wrote, and changes of the writer along the stripes of each
// server in file order, as filedomain.Divide predicts them.
func (d *domains) arrivals(all []arrival) (sum arrivals, err error) {
	c := d.region("")
	slices.SortFunc(all, func(a, b arrival) int { return int(a.at - b.at) })
	writers := make([][]int, (c.End+c.StripeSize-1)/c.StripeSize) // of each stripe, in file order
	written := int64(0)
	for _, a := range all {
		written += a.length
		for k := a.at / c.StripeSize; k <= (a.at+a.length-1)/c.StripeSize && k < int64(len(writers)); k++ {
			if n := len(writers[k]); n == 0 || writers[k][n-1] != a.forwarder {
				writers[k] = append(writers[k], a.forwarder)
			}
		}
	}
	if written != c.End {
		return sum, fmt.Errorf("the forwarders' traces show %d bytes, %d were written", written, c.End)
	}
	sum.requests = len(all)
	last := make([]int, c.Servers)
	for i := range last {
		last[i] = -1
	}
	for k, ws := range writers {
		if len(slices.Compact(slices.Sorted(slices.Values(ws)))) > 1 {
			sum.shared++
		}
		for _, w := range ws {
			if at := &last[k%c.Servers]; *at != w {
				if *at >= 0 {
					sum.changes++
				}
				*at = w
			}
		}
	}
	return sum, nil
}

func (d *domains) rows(ways []*way) (rows []Row) {
	by := map[string]*way{}
	for _, w := range ways {
		by[w.name] = w
	}
	over := func(a, b string) (out []float64) { // speed of a over that of b
		for i, s := range by[a].seconds {
			out = append(out, by[b].seconds[i]/s)
		}
		return out
	}
	const noFigure = "combined requests are faster; no figure in the text (Adaptive File Domain Partitioning)"
	what := fmt.Sprintf("%d ranks on %d nodes, one file of %.1f MB in interleaved blocks of %d bytes", domainRanks,
		domainRanks, float64(d.region("").End)/1e6, blockBytes)
	rows = append(rows,
		Row{Effect: what + ": collective write (ROMIO, 4 delegates) over every rank's own",
			Paper: noFigure, Values: over("4 delegates", "own requests"), Unit: "x",
			Why: "a forwarder's answer takes a fraction of a millisecond; a loaded file system's takes longer"},
		Row{Effect: "requests at the forwarders, own over collective",
			Values: []float64{float64(by["own requests"].arrived.requests) /
				float64(by["4 delegates"].arrived.requests)}, Unit: "x",
			Why: "a 9P message holds 64 KiB at most, so larger ones are cut"})
	for _, n := range []string{"2 delegates", "4 delegates"} {
		rows = append(rows, Row{Effect: "speed of " + n + " over one",
			Paper:  "no figure (I/O Delegation)",
			Values: over(n, "1 delegate"), Unit: "x",
			Why: "delegates are ROMIO's aggregators (cb_nodes), not processes of their own"})
	}
	for _, w := range []*way{by["3 delegates"], by["as advised"]} {
		rows = append(rows, Row{Effect: fmt.Sprintf("stripes that several forwarders wrote, ROMIO, %s",
			map[string]string{"3 delegates": "3 delegates and no more hints",
				"as advised": "with the advised hints"}[w.name]),
			Paper: "none (Figure 2a)", Values: []float64{float64(w.arrived.shared)}})
	}
	for _, w := range ways {
		if w.method == "" {
			continue
		}
		predicted := int64(0)
		for _, n := range filedomain.Divide(d.region(w.method)).Conflicts {
			predicted += n
		}
		rows = append(rows,
			Row{Effect: fmt.Sprintf("%s: changes of writer along the stripes (predicted: %d)", w.method, predicted),
				Paper: "Figure 2", Values: []float64{float64(w.arrived.changes)}, Bar: "as predicted"})
		if w.method != filedomain.Even {
			rows = append(rows, Row{Effect: fmt.Sprintf("%s: speed over even", w.method),
				Paper: "no figure", Values: over(w.name, "even"), Unit: "x",
				Why: "9P takes no locks, so that who writes what costs nothing but its balance over the forwarders"})
		}
	}
	for i := range rows {
		rows[i].Effect = strings.TrimSpace(rows[i].Effect)
	}
	return rows
}
