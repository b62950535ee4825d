package gateways

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/watch"
	"fairway/cmd/lab/sitefiles/format"
	"fairway/cmd/lab/sitefiles/model"
	"fairway/collector"
	"fairway/collector/source/dvs"
	"fairway/collector/source/gpfs"
	"fairway/collector/source/lustre"
	"fairway/collector/source/lwfs"
	"fairway/collector/source/procfs"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// watched is a site whose nodes are read by the agents' own sources and judged by the daemon's own detectors, in
// memory and in a bubble of synctest: as fast as it goes.
type watched struct {
	*Model
	layer     Layer
	start     time.Time
	nodes     []*watchedNode
	board     *window.Board
	detectors *watch.Detectors
	machine   watch.Machine
	frames    []collector.Frame // of the newest second
	second    int
	first     map[string]int    // when each node was first accused of each kind
	says      map[string]string // the sentence of that
	newest    map[string]string // of the newest alarms
}

// watchedNode is a client or a gateway of it.
type watchedNode struct {
	role    topology.Role
	id      topology.NodeID
	client  *Client
	gateway *Gateway
	tree    *tree
	disk    string // NFS: a folder with its files, too
	sources []collector.Source
	mmpmon  io.Writer // GPFS: what its source reads
}

// tree is a node's files. Its trace grows, as a file that is appended to; all other files are replaced.
type tree struct {
	files fstest.MapFS
	trace []byte
	globs map[string][]string // while no file comes or goes
}

// ReadFile reads what has been opened, read and closed otherwise: a soak reads files some hundred times a second.
func (t *tree) ReadFile(name string) ([]byte, error) {
	if f, ok := t.files[name]; ok {
		return slices.Clone(f.Data), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Glob remembers what matched.
func (t *tree) Glob(pattern string) ([]string, error) {
	names, known := t.globs[pattern]
	if known {
		return slices.Clone(names), nil // fs.Sub shortens what it gets
	}
	names, err := fs.Glob(t.files, pattern)
	t.globs[pattern] = names
	return slices.Clone(names), err
}

func (t *tree) set(files format.Tree) {
	was := len(t.files)
	t.files = fstest.MapFS{}
	for name, text := range files {
		t.files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if len(t.files) != was {
		t.globs = map[string][]string{}
	}
}

func (t *tree) Open(name string) (fs.File, error) {
	if name == traceFile {
		return &grown{t}, nil
	}
	return t.files.Open(name)
}

// grown is an open trace: it is read from where the reader was.
type grown struct{ t *tree }

func (g *grown) Stat() (fs.FileInfo, error) {
	return fs.Stat(fstest.MapFS{"trace": {Data: g.t.trace}}, "trace")
}

func (g *grown) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(g.t.trace).ReadAt(p, at)
}

func (g *grown) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

func (g *grown) Close() error { return nil }

func watchGateways(t *testing.T, l Layer, seed uint64) *watched {
	m := NewModel(seed)
	if l == GPFS {
		m.float(len(m.Gateways), 0)
	}
	w := &watched{Model: m, layer: l, start: time.Now(), board: window.NewBoard(0),
		first: map[string]int{}, says: map[string]string{}}
	w.detectors = watch.NewDetectors(w.board, failslow.DefaultSettings())
	proc := func(n *watchedNode) collector.Source {
		if l == NFS || l == GPFS {
			n.disk = t.TempDir()
		}
		return procOf(n)
	}
	w.machine.Mapping, w.machine.Peaks = topology.Mapping{}, map[topology.NodeID]float64{}
	for _, c := range w.Clients {
		n := &watchedNode{role: topology.Compute, id: topology.NodeID(c.Name), client: c, tree: &tree{}}
		n.sources = []collector.Source{proc(n)}
		if l.isDVS() {
			n.sources = append(n.sources, dvs.New(n.tree, false))
		}
		w.nodes = append(w.nodes, n)
	}
	for _, g := range w.Gateways {
		n := &watchedNode{role: topology.Forwarder, id: topology.NodeID(g.Name), gateway: g, tree: &tree{}}
		n.sources = []collector.Source{proc(n)}
		if l != GPFS {
			n.sources = append(n.sources, lustre.New(n.tree))
		}
		switch l {
		case GPFS:
			counts := gpfs.Over(func() (io.ReadCloser, error) {
				r, w := io.Pipe()
				n.mmpmon = w
				return r, nil
			})
			t.Cleanup(func() { _ = counts.Close() })
			n.sources = append(n.sources, counts)
		case DVS, OldDVS:
			n.sources = append(n.sources, dvs.New(n.tree, true))
		case LWFS:
			n.sources = append(n.sources, lwfs.New(n.tree, traceFile))
		}
		w.nodes = append(w.nodes, n)
		w.machine.Forwarders = append(w.machine.Forwarders, topology.ForwarderID(g.Name))
		w.machine.Peaks[n.id] = linkRate
	}
	t.Cleanup(func() {
		for _, n := range w.nodes {
			for _, s := range n.sources {
				_ = s.Close() // they hold nothing but goroutines
			}
		}
	})
	return w
}

// withoutLustre has no gateway report what it asks of its storage targets.
func (w *watched) withoutLustre() {
	for _, n := range w.nodes {
		n.sources = slices.DeleteFunc(n.sources, func(s collector.Source) bool { return s.Name() == "lustre" })
	}
}

// procOf reads a node's proc. What the kernel counts of NFS is read by a library that wants a real folder.
func procOf(n *watchedNode) collector.Source {
	files, err := fs.Sub(n.tree, "proc")
	sys, err2 := fs.Sub(n.tree, "sys")
	if err != nil || err2 != nil {
		panic(errors.Join(err, err2))
	}
	return procfs.New(procfs.Options{Root: filepath.Join(n.disk, "proc"), Files: files, Sys: sys})
}

// run lets the site live for some seconds and judges each.
func (w *watched) run(t *testing.T, seconds int) {
	t.Helper()
	for range seconds {
		if w.layer.isDVS() {
			w.lists()
		}
		w.second++
		at := time.Duration(w.second) * time.Second
		time.Sleep(time.Until(w.start.Add(at)))
		synctest.Wait()
		w.Run(at)
		now := time.Now()
		w.frames = w.frames[:0]
		for _, n := range w.nodes {
			w.frames = append(w.frames, w.read(t, n, at))
		}
		clear(w.machine.Mapping)
		for _, c := range w.Clients {
			if c.on != nil {
				w.machine.Mapping[topology.NodeID(c.Name)] = topology.ForwarderID(c.on.Name)
			}
		}
		w.board.Take(w.frames, now)
		w.newest = map[string]string{}
		for _, v := range w.detectors.Verdicts(now, &w.machine) {
			key := fmt.Sprintf("%s %s", v.Kind, v.Node)
			if v.Level == anomaly.Alarm {
				w.newest[key] = v.Sentence
			}
			if v.Level == anomaly.Alarm && w.says[key] == "" {
				w.first[key], w.says[key] = w.second, v.Sentence
			}
		}
	}
}

// lists writes DVS clients' lists of outstanding requests between two whole seconds, after their sources have read the
// one before.
func (w *watched) lists() {
	from := time.Duration(w.second) * time.Second
	for at := from + listEvery; at < from+time.Second; at += listEvery {
		time.Sleep(time.Until(w.start.Add(at)))
		synctest.Wait()
		w.Run(at)
		for _, n := range w.nodes {
			if n.client != nil && n.client.on != nil && n.tree.files != nil {
				n.tree.files[dvsListFile(w.layer)] = &fstest.MapFile{Data: []byte(dvsList(n.client, at))}
			}
		}
	}
}

// read writes a node's files of the second and has its agent's sources read them.
func (w *watched) read(t *testing.T, n *watchedNode, at time.Duration) collector.Frame {
	var files format.Tree
	if n.client != nil {
		files = clientFiles(w.layer, n.client, at, w.start)
	} else {
		files = gatewayFiles(w.layer, n.gateway, w.floating(n.gateway), at, w.start)
		if w.layer == LWFS {
			n.tree.trace = append(n.tree.trace, trace(n.gateway, w.start.Add(at))...)
		}
	}
	if n.disk != "" {
		w.writeNFS(t, n, files)
	}
	n.tree.set(files)
	now := time.Now()
	if n.mmpmon != nil {
		fmt.Fprint(n.mmpmon, mmpmon(n.gateway, now))
		synctest.Wait()
	}
	r := collector.Reading{Now: now}
	for _, s := range n.sources {
		if err := s.Read(t.Context(), &r); err != nil && !errors.Is(err, collector.ErrNoData) {
			t.Fatalf("%s, %s: %v", n.id, s.Name(), err)
		}
	}
	return collector.Frame{Node: n.id, Role: n.role, TimeMillis: now.Add(-time.Second).UnixMilli(), Samples: r.Samples,
		Targets: r.Targets, Jobs: r.Jobs}
}

// writeNFS writes what the library reads.
func (w *watched) writeNFS(t *testing.T, n *watchedNode, files format.Tree) {
	t.Helper()
	for _, name := range []string{"proc/1/mountstats", "proc/net/rpc/nfsd"} {
		text, ok := files[name]
		if !ok {
			continue
		}
		file := filepath.Join(n.disk, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// accused are the findings that hold a gateway responsible.
func (w *watched) accused() map[string]string {
	out := maps.Clone(w.says)
	maps.DeleteFunc(out, func(what, _ string) bool {
		kind, _, _ := strings.Cut(what, " ")
		return !anomaly.Kind(kind).Accuses()
	})
	return out
}

// How many metadata operations wait at an LWFS server, by its trace's rates and waits, is the model's number to a
// factor of two.
func TestMetadataQueueOfLWFSIsTheModels(t *testing.T) {
	const seconds = 120
	for _, disk := range []float64{0.5, 0.2} { // slow ones: at full speed no call waits for a thread
		synctest.Test(t, func(t *testing.T) {
			w := watchGateways(t, LWFS, 3)
			for i := range w.disks {
				w.disks[i] = disk
			}
			sum, n := map[topology.NodeID]float64{}, map[topology.NodeID]float64{}
			for range seconds {
				w.run(t, 1)
				for i := range w.frames {
					f := &w.frames[i]
					ops, known := f.Value(collector.MetaOps)
					wait, timed := f.Value(collector.MetaWait)
					if f.Role == topology.Forwarder && known && timed {
						sum[f.Node], n[f.Node] = sum[f.Node]+ops*wait, n[f.Node]+1
					}
				}
			}
			for _, g := range w.Gateways {
				id := topology.NodeID(g.Name)
				got, want := sum[id]/n[id], g.waited[Meta].Seconds()/seconds
				t.Logf("disks at %g: %s: %.3f metadata operations wait, the model has %.3f", disk, id, got, want)
				if got < want/2 || got > 2*want {
					t.Errorf("disks at %g: %s: %.3f metadata operations wait, the model has %.3f", disk, id, got, want)
				}
			}
		})
	}
}

// A gateway whose link has a tenth of its speed is accused and no other; a storage target at a tenth of its speed
// accuses none, whatever its gateways' clients mount.
func TestASlowTargetAccusesNoGateway(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes a minute: make prove")
	}
	slowLinkAndTarget(t, Layers(), func(*watched) {})
}

// slowLinkAndTarget has a gateway's link, then a storage target at a tenth of its speed on a site of each layer, as
// prepared: the gateway is accused, and nobody else.
func slowLinkAndTarget(t *testing.T, layers []Layer, prepare func(*watched)) {
	const healthy, within = 60, 120
	for _, l := range layers {
		for _, c := range []struct {
			fault model.Fault
			want  string
		}{{model.Fault{Kind: model.FaultLink, Node: "gw2", Value: 0.1}, "fail_slow gw2"},
			{model.Fault{Kind: model.FaultDisk, Node: "ost1", Value: 0.1}, ""}} {
			t.Run(fmt.Sprintf("%s %s", l, c.fault.Kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := watchGateways(t, l, 7)
					prepare(w)
					w.run(t, healthy)
					if err := w.Break(c.fault); err != nil {
						t.Fatal(err)
					}
					w.run(t, within)
					for what, says := range w.accused() {
						if what != c.want {
							t.Errorf("%s is found: %s", what, says)
						}
					}
					if c.want == "" {
						return
					}
					t.Logf("found after %d s: %s", w.first[c.want]-healthy, w.says[c.want])
					if w.first[c.want] <= healthy {
						t.Errorf("%s: found at %d, want after %d: %v", c.want, w.first[c.want], healthy, w.says)
					}
				})
			})
		}
	}
}

// A gateway whose link falls from four lanes to one is named within 10 s while nothing runs, and no other gateway.
func TestALinkOnOneLaneIsFound(t *testing.T) {
	for _, layer := range []Layer{DVS, LWFS} {
		t.Run(string(layer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watchGateways(t, layer, 3)
				w.quiet(0)
				const healthy, within = 150, 10
				w.run(t, healthy)
				if len(w.first) > 0 {
					t.Fatalf("nothing is wrong: %v", w.says)
				}
				if err := w.Break(model.Fault{Kind: model.FaultLanes, Node: "gw2", Value: 0.25}); err != nil {
					t.Fatal(err)
				}
				w.run(t, within)
				if len(w.first) != 1 || !strings.Contains(w.says["fail_slow gw2"], "at 2 Gb/s, at 8 Gb/s before") {
					t.Errorf("within %d s: %v", within, w.says)
				}
			})
		})
	}
}
