package ingest

import (
	"fmt"
	"unsafe"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// What a token's messages hold in memory is bounded over all of its connections: a few bytes of a message may stand for
// many, and one node's token must not take what the daemon has.

const (
	// maxLarge is how many large messages of a token are read or taken at a time.
	maxLarge = 2
	// maxHeld is what all messages of a token that are on their way to the store may hold, more than one message can.
	maxHeld = 128 << 20
	// maxGrowth is how much more than its bytes a message may hold: a job without samples has two, and takes forty.
	maxGrowth = 20
	// maxHello bounds the first message of a connection, which has two names.
	maxHello = 1 << 10
	// maxLists is what the newest jobs, targets, routes and source states of all nodes of a token may hold: they stay
	// until the node's next second. fewBytes is what most nodes' hold, which is not counted.
	maxLists, fewBytes = 128 << 20, 4 << 10
)

// mostHeld is the most that a message of a size can hold.
func mostHeld(size int) int { return min(size*maxGrowth, wire.MaxHeldBytes) }

// lists are what the newest frames of a token's nodes hold besides their samples.
type lists struct {
	of  map[topology.NodeID]list
	sum int
}

// list is what one node's newest frame holds; an older frame changes nothing.
type list struct {
	bytes  int
	millis int64
}

// admitsLists says why a frame's lists are too long for its token.
func (p *sender) admitsLists(f *collector.Frame) (code wire.RejectCode, why string) {
	n := listBytes(f)
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.lists.of[f.Node]
	switch {
	case n <= fewBytes && had.bytes == 0 || f.TimeMillis < had.millis && n <= had.bytes:
		return 0, ""
	case n <= fewBytes:
		p.lists.sum -= had.bytes
		delete(p.lists.of, f.Node)
		return 0, ""
	case p.lists.sum-had.bytes+n > maxLists:
		return wire.RejectLimit, fmt.Sprintf("node %s: its jobs, targets, routes and sources take %d bytes, those of "+
			"token %q %d already, at most %d", f.Node, n, p.name, p.lists.sum-had.bytes, maxLists)
	}
	if p.lists.of == nil {
		p.lists.of = map[topology.NodeID]list{}
	}
	p.lists.of[f.Node] = list{n, max(f.TimeMillis, had.millis)}
	p.lists.sum += n - had.bytes
	return 0, ""
}

func listBytes(f *collector.Frame) (n int) {
	const sample = int(unsafe.Sizeof(collector.Sample{}))
	n = len(f.Routes)*int(unsafe.Sizeof(collector.Route{})) + len(f.Jobs)*int(unsafe.Sizeof(collector.JobSamples{})) +
		len(f.Targets)*int(unsafe.Sizeof(collector.TargetSamples{}))
	for i := range f.Jobs {
		n += len(f.Jobs[i].Samples) * sample
	}
	for i := range f.Targets {
		n += len(f.Targets[i].Samples) * sample
	}
	for i := range f.Sources {
		n += int(unsafe.Sizeof(collector.SourceStatus{})) + len(f.Sources[i].Err) +
			len(f.Sources[i].Note)
	}
	return n
}
