package site

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/webui/api"
	"fairway/webui/client"
)

const (
	// recordChunk is what is asked for at once, recordNodes of how many nodes: an answer stays small.
	recordChunk = 5 * time.Minute
	recordNodes = 200
	// recordLag is how old the newest recorded second is: by then every agent has reported it.
	recordLag = 5 * time.Second
)

// column is one column of samples.csv or probe.csv and where it comes from.
type column struct {
	name    string
	metric  collector.Metric
	seconds bool // written in microseconds
	count   bool // what is not reported did not happen
}

var sampleColumns = []column{
	{"r_bytes", collector.ReadBytes, false, true}, {"w_bytes", collector.WriteBytes, false, true},
	{"r_ops", collector.ReadOps, false, true}, {"w_ops", collector.WriteOps, false, true},
	{"m_ops", collector.MetaOps, false, true},
	{"qlen", collector.QueueLen, false, false},
	{"r_wait_us", collector.ReadWait, true, false}, {"w_wait_us", collector.WriteWait, true, false},
	{"m_wait_us", collector.MetaWait, true, false},
	{"r_exe_us", collector.ReadExec, true, false}, {"w_exe_us", collector.WriteExec, true, false},
	{"m_exe_us", collector.MetaExec, true, false},
}

var probeColumns = []column{{"read1m_us", collector.ProbeRead, true, false},
	{"write1m_us", collector.ProbeWrite, true, false}, {"stat_us", collector.ProbeMeta, true, false}}

// recording takes the newest seconds of a running site out of its daemon.
type recording struct {
	ctx        context.Context
	from       *client.Client
	forwarders []api.NodeRow
	begin, end time.Time
	rows       int
}

// recordSite writes the span before now as a trace into dir, which must be empty or not there; on an error it is
// as it was.
func recordSite(ctx context.Context, cl *client.Client, dir string, span time.Duration, now time.Time) (r *recording,
	err error) {
	if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
		return nil, fmt.Errorf("%w: %s is not empty; a recording begins in a directory of its own", api.ErrInvalid,
			dir)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	r = &recording{ctx: ctx, from: cl, end: now.Add(-recordLag).Truncate(time.Second)}
	r.begin = r.end.Add(-span)
	if r.forwarders, err = cl.Nodes(ctx, "forwarder", ""); err != nil {
		return nil, err
	}
	if len(r.forwarders) == 0 {
		return nil, fmt.Errorf("%w: the daemon knows no forwarder", api.ErrNotFound)
	}
	part, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".recording-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	if err = os.Chmod(part, 0o755); err != nil { //nolint:gosec // as other directories; what is in it is written next
		return nil, err
	}
	for name, write := range map[string]func(io.Writer) error{
		"samples.csv.gz": func(w io.Writer) error { return r.series(w, "rx,ts,node", true, sampleColumns, &r.rows) },
		"probe.csv.gz":   func(w io.Writer) error { return r.series(w, "rx,node", false, probeColumns, new(int)) },
		"nodes.csv":      r.nodes,
		"jobs.csv":       r.jobs,
	} {
		if err = writeFile(filepath.Join(part, name), write); err != nil {
			return nil, err
		}
	}
	if r.rows == 0 {
		return nil, fmt.Errorf("%w: nothing is known of any forwarder from %s to %s", api.ErrNotFound,
			r.begin.UTC().Format(time.RFC3339), r.end.UTC().Format(time.RFC3339))
	}
	return r, os.Rename(part, dir)
}

func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	if strings.HasSuffix(path, ".gz") {
		z := gzip.NewWriter(out)
		if err := errors.Join(write(z), z.Close()); err != nil {
			return err
		}
	} else if err := write(out); err != nil {
		return err
	}
	return errors.Join(out.Flush(), f.Sync())
}

// series writes a table of one row for each second of each forwarder of which one of the columns is known.
func (r *recording) series(w io.Writer, keys string, stamped bool, columns []column, rows *int) error {
	head := keys
	for _, c := range columns {
		head += "," + c.name
	}
	if _, err := fmt.Fprintln(w, head); err != nil {
		return err
	}
	for from := r.begin; from.Before(r.end); from = from.Add(recordChunk) {
		to := from.Add(recordChunk)
		if to.After(r.end) {
			to = r.end
		}
		known, err := r.ask(columns, from, to)
		if err != nil {
			return err
		}
		keys := slices.SortedFunc(maps.Keys(known),
			func(a, b second) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node)) })
		for _, k := range keys {
			line := fmt.Sprintf("%d,%s", k.at, k.node)
			if stamped {
				line = fmt.Sprintf("%d,%d,%s", k.at, k.at, k.node)
			}
			for i, v := range known[k] {
				line += "," + columns[i].text(v)
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
			*rows++
		}
	}
	return nil
}

// second is one second of a forwarder, Unix seconds.
type second struct {
	at   int64
	node topology.NodeID
}

func (r *recording) ask(columns []column, from, to time.Time) (map[second][]float64, error) {
	known := map[second][]float64{}
	for chunk := range slices.Chunk(r.forwarders, recordNodes) {
		names := make([]topology.NodeID, len(chunk))
		for i := range chunk {
			names[i] = chunk[i].ID
		}
		for i, c := range columns {
			series, err := r.from.Series(r.ctx, c.metric, names, from, to)
			if err != nil {
				return nil, err
			}
			for node, points := range series {
				for _, p := range points {
					k := second{p.TimeMillis / 1000, node}
					if known[k] == nil {
						known[k] = slices.Repeat([]float64{math.NaN()}, len(columns))
					}
					known[k][i] = p.Value
				}
			}
		}
	}
	return known, nil
}

func (c *column) text(v float64) string {
	switch {
	case math.IsNaN(v) && c.count:
		return "0"
	case math.IsNaN(v):
		return ""
	case c.seconds:
		v *= 1e6
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

func (r *recording) nodes(w io.Writer) error {
	text := "node,group,rack,default_service\n"
	for _, n := range r.forwarders {
		text += fmt.Sprintf("%s,,%s,1\n", n.ID, plainField(n.Rack))
	}
	_, err := io.WriteString(w, text)
	return err
}

// jobs writes the jobs that the daemon knows now and that touched the recorded time, with the forwarders that they use
// or, once ended, used. The end of a running one is not known: the end of the recording stands for it.
func (r *recording) jobs(w io.Writer) error {
	text := "job,app,start,end,nodes\n"
	rows, err := r.from.Jobs(r.ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Start.After(r.end) || !row.End.IsZero() && row.End.Before(r.begin) {
			continue
		}
		j, err := r.from.Job(r.ctx, row.ID)
		if errors.Is(err, api.ErrNotFound) {
			continue // it ended meanwhile
		}
		if err != nil {
			return err
		}
		names := slices.Clone(j.Served)
		if len(names) == 0 {
			names = slices.Collect(maps.Keys(j.Forwarders))
		}
		slices.Sort(names)
		var nodes []string
		for _, f := range names {
			nodes = append(nodes, string(f.Node()))
		}
		end := r.end
		if !row.End.IsZero() {
			end = row.End
		}
		if len(nodes) > 0 {
			text += fmt.Sprintf("%s,%s,%d,%d,%s\n", plainField(string(row.ID)), plainField(row.App), row.Start.Unix(),
				end.Unix(), strings.Join(nodes, ";"))
		}
	}
	_, err = io.WriteString(w, text)
	return err
}

// plainField makes a name fit for one field of a line without quotes.
func plainField(s string) string {
	return strings.NewReplacer(",", "_", "\n", "_", "\r", "_").Replace(s)
}
