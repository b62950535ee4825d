package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"fairway/collector"
	"fairway/collector/appendlog"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/rows"
)

// The dictionary of node names: a header, then a record per node (format.go).
const (
	nodesFile    = "nodes"
	maxName      = 255 // bytes of a node's name
	nodesMagic   = "FWND"
	nodesVersion = 2
	nodesHeader  = 8
	nodesMetrics = 10 // where a record has its set of metrics, two words
	nodesRecord  = nodesMetrics + 2*wordBytes
	wordBytes    = 8
)

// nodeEntry is what the store knows of a node apart from its samples. Its number is its place in
// the table and never changes.
type nodeEntry struct {
	name    topology.NodeID
	role    topology.Role
	metrics collector.MetricSet // that were seen
}

// nodeTable numbers nodes in order of appearance. The head's lock guards it; numbers and chunks may be read without.
type nodeTable struct {
	entries []nodeEntry
	byName  map[topology.NodeID]int
	next    []follower // by node: whose frame came after its, last time
	roles   uint64     // counts changes of a role
	changed bool       // since the copy on disk
	// free is, by role, the next number in the group of 64 that the role's new nodes go to; the
	// nodes of a layer lie together in blocks, so that reading one layer reads few chunks.
	free map[topology.Role]int
	last int // the node of the frame before, whose follower is likely the next

	numbers sync.Map // topology.NodeID -> int
	chunks  rows.Chunks
}

// follower is a frame that came behind another node's: the usual frame is recognized by these alone, without a look at
// what else is known of its node.
type follower struct {
	name  topology.NodeID
	roles uint64 // of the table, when it came
	node  int32
	role  topology.Role
}

// foretold returns the number of the node that comes behind prev, where name and role are those of last time.
func (t *nodeTable) foretold(name topology.NodeID, role topology.Role, prev int) (int, bool) {
	if prev >= len(t.next) {
		return 0, false
	}
	f := &t.next[prev]
	return int(f.node), f.role == role && f.roles == t.roles && name != "" && f.name == name
}

// foretell notes that a frame of a node came behind one of prev, and the role it gave.
func (t *nodeTable) foretell(prev, node int, role topology.Role) {
	if prev < len(t.next) {
		t.next[prev] = follower{name: t.entries[node].name, node: int32(node), roles: t.roles, role: role}
	}
}

// of returns the number of a frame's node, which it adds when it is new.
func (t *nodeTable) of(f *collector.Frame, sec int64) (int, error) {
	if sec < rows.MinSecond || sec >= rows.MaxSecond {
		return 0, fmt.Errorf("append: frame of node %q has time %d ms, outside 1970 to 2242; it is left out", f.Node,
			f.TimeMillis)
	}
	if node, ok := t.foretold(f.Node, f.Role, t.last); ok {
		t.last = node
		return node, nil
	}
	if f.Node == "" || len(f.Node) > maxName {
		return 0, fmt.Errorf("append: a node name of %d bytes (1 to %d are allowed); its frame is left out",
			len(f.Node), maxName)
	}
	node, ok := t.byName[f.Node]
	if !ok {
		if len(t.entries) >= rows.MaxNodes {
			return 0, fmt.Errorf("append: node %q would be number %d, the most is %d; its frame is left out", f.Node,
				len(t.entries)+1, rows.MaxNodes)
		}
		node = t.add(f.Node, f.Role)
		t.chunks.Grow(len(t.entries))
		t.numbers.Store(f.Node, node)
	}
	if e := &t.entries[node]; e.role != f.Role && f.Role != topology.RoleUnknown {
		e.role, t.changed = f.Role, true
		t.roles++
	}
	t.foretell(t.last, node, f.Role)
	t.last = node
	return node, nil
}

func (t *nodeTable) add(name topology.NodeID, role topology.Role) int {
	i, ok := t.free[role]
	if !ok || i%rows.ChunkNodes == 0 {
		i = (len(t.entries) + rows.ChunkNodes - 1) / rows.ChunkNodes * rows.ChunkNodes
	}
	for len(t.entries) <= i {
		t.next = append(t.next, follower{})
		t.entries = append(t.entries, nodeEntry{})
	}
	t.free[role] = i + 1
	t.entries[i] = nodeEntry{name: name, role: role}
	t.byName[name] = i
	t.changed = true
	return i
}

// unsaved returns a copy of the entries when the file is older than the table.
func (t *nodeTable) unsaved() []nodeEntry {
	if !t.changed {
		return nil
	}
	t.changed = false
	return slices.Clone(t.entries)
}

// saveNodes replaces the dictionary's file.
func saveNodes(fsys disk.Files, dir string, entries []nodeEntry) error {
	buf := append(make([]byte, 0, 32*len(entries)+nodesHeader), nodesMagic...)
	buf = binary.LittleEndian.AppendUint16(buf, nodesVersion)
	buf = binary.LittleEndian.AppendUint16(buf, 0)
	for i, e := range entries {
		at := len(buf)
		buf = append(buf, 0, 0, 0, 0, byte(len(e.name)), byte(e.role))
		buf = binary.LittleEndian.AppendUint32(buf, uint32(i))
		for _, word := range e.metrics {
			buf = binary.LittleEndian.AppendUint64(buf, word)
		}
		buf = append(buf, e.name...)
		binary.LittleEndian.PutUint32(buf[at:], appendlog.Sum(buf[at+4:]))
	}
	return disk.Replace(fsys, filepath.Join(dir, nodesFile), buf)
}

func (t *nodeTable) note(node int, metrics []collector.Metric) {
	e := &t.entries[node]
	for _, m := range metrics {
		if !e.metrics.Has(m) {
			e.metrics.Add(m)
			t.changed = true
		}
	}
}

// number returns a node's number, -1 for a name the store does not know.
func (t *nodeTable) number(name topology.NodeID) int {
	if i, ok := t.numbers.Load(name); ok {
		return i.(int)
	}
	return -1
}

// nodeInfos lists the nodes that have a value, sorted by name.
func nodeInfos(entries []nodeEntry) []tsdb.NodeInfo {
	out := make([]tsdb.NodeInfo, 0, len(entries))
	for _, e := range entries {
		if e.metrics.Has(collector.RetiredBacklogLen) {
			e.metrics.Add(collector.QueueLen)
			e.metrics.Add(collector.InFlight)
		}
		metrics := slices.DeleteFunc(slices.Collect(e.metrics.All()),
			func(m collector.Metric) bool { return !m.Known() })
		if e.name != "" && len(metrics) > 0 {
			out = append(out, tsdb.NodeInfo{Node: e.name, Role: e.role, Metrics: metrics})
		}
	}
	slices.SortFunc(out, func(a, b tsdb.NodeInfo) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return out
}

// load reads the dictionary of a store's directory.
func (t *nodeTable) load(b *base) error {
	damages, err := t.read(filepath.Join(b.dir, nodesFile))
	if err != nil {
		return err
	}
	for _, d := range damages {
		b.damages.Report(d)
	}
	for i, e := range t.entries {
		if e.name != "" {
			t.numbers.Store(e.name, i)
		}
	}
	t.chunks.Grow(len(t.entries))
	return nil
}

// read reads the dictionary. A damaged record costs that node's name and is reported; its
// number stays taken.
func (t *nodeTable) read(path string) ([]Damage, error) {
	t.byName, t.free = map[topology.NodeID]int{}, map[topology.Role]int{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the node names: %w", err)
	}
	if len(data) < nodesHeader || string(data[:4]) != nodesMagic {
		return nil,
			fmt.Errorf("%s is not a dictionary of node names (%d bytes, it begins with %q); restore it from a backup",
				path, len(data), data[:min(4, len(data))])
	}
	version, head := binary.LittleEndian.Uint16(data[4:]), nodesRecord
	if version == 1 {
		head -= wordBytes // it had no metric above 63
	} else if err := disk.CheckVersion(path, version, nodesVersion); err != nil {
		return nil, err
	}
	var damages []Damage
	for at := nodesHeader; at < len(data); {
		rest := data[at:]
		if len(rest) < head || len(rest) < head+int(rest[4]) {
			damages = append(damages, Damage{File: path, Offset: int64(at), What: "the file ends inside a record",
				Lost: "the nodes from here on"})
			break
		}
		size := head + int(rest[4])
		e := nodeEntry{name: topology.NodeID(rest[head:size]), role: topology.Role(rest[5])}
		for i := range (head - nodesMetrics) / wordBytes {
			e.metrics[i] = binary.LittleEndian.Uint64(rest[nodesMetrics+i*wordBytes:])
		}
		number := int(binary.LittleEndian.Uint32(rest[6:]))
		if appendlog.Sum(rest[4:size]) != binary.LittleEndian.Uint32(rest) || number != len(t.entries) {
			damages = append(damages, Damage{File: path, Offset: int64(at), What: "wrong checksum",
				Lost: fmt.Sprintf("the name of node number %d", len(t.entries))})
			e = nodeEntry{}
		} else if e.name != "" {
			t.byName[e.name] = number
			t.free[e.role] = number + 1
		}
		t.entries = append(t.entries, e)
		t.next = append(t.next, follower{})
		at += size
	}
	return damages, nil
}
