package engine

import (
	"fmt"
	"time"
)

// maxReplayed is how many open blocks a log may have; a writer keeps a few more than maxOpen. A log with more was
// written for a sender of rows in very many different hours: the newest blocks are kept.
const maxReplayed = 256

// skippedBlocks counts what makeRoom left out.
type skippedBlocks struct {
	count       int
	path        string // of the first one's segment
	first, last int64  // Unix seconds of the oldest and the newest
}

// makeRoom says whether a block that begins at start is opened. The oldest one gives way to it where there
// are too many.
func (p *replayer) makeRoom(start int64) bool {
	open := p.head.blocks.view.Load().open
	if len(open) < maxReplayed {
		return true
	}
	oldest := open[0]
	left := min(oldest.start, start)
	if s := &p.skipped; s.count == 0 {
		*s = skippedBlocks{1, p.path, left, left}
	} else {
		s.count, s.first, s.last = s.count+1, min(s.first, left), max(s.last, left)
	}
	if start <= oldest.start {
		return false
	}
	p.head.blocks.drop(oldest)
	delete(p.broken, oldest)
	p.open[oldest.id] = nil
	return true
}

// reportSkipped names what makeRoom left out.
func (p *replayer) reportSkipped() {
	if s := &p.skipped; s.count > 0 {
		p.head.damages.report(Damage{s.path, 0,
			fmt.Sprintf("its rows are of %d more spans of %d s than are open at a time; a sender with a wrong clock?",
				s.count, BlockSeconds),
			fmt.Sprintf("rows from between %s and %s that were in no sealed block",
				time.Unix(s.first, 0).UTC().Format(time.RFC3339), time.Unix(s.last, 0).UTC().Format(time.RFC3339))})
	}
}
