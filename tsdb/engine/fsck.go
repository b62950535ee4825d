package engine

import (
	"fmt"
	"os"
	"path/filepath"

	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/log"
	"fairway/tsdb/engine/tier"
)

// CheckReport is what Check found.
type CheckReport struct {
	Nodes       int      `json:"nodes"`
	LogSegments int      `json:"log_segments"`
	LogRecords  int      `json:"log_records"`
	BlockFiles  int      `json:"block_files"`
	Blocks      int      `json:"blocks"`
	Columns     int64    `json:"columns"`
	Damages     []Damage `json:"damages"`
	Repaired    []string `json:"repaired,omitempty"` // files that were rewritten without what is lost
}

// Check reads every byte of a store that no process has open and says what is damaged and what that
// costs. With repair it rewrites damaged block files with everything in them that is intact; the
// old file stays beside it with ".damaged" at its end. The error is for what kept it from checking.
func Check(dir string, repair bool) (*CheckReport, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("check store: %w", err)
	}
	lock, err := disk.Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	defer lock.Close()
	rep := &CheckReport{}
	var table nodeTable
	damages, err := table.read(filepath.Join(dir, nodesFile))
	if err != nil {
		return rep, err
	}
	rep.Nodes, rep.Damages = len(table.byName), damages
	damages, err = tier.CheckLate(dir)
	if err != nil {
		return rep, err
	}
	rep.Damages = append(rep.Damages, damages...)
	wal, err := log.Check(filepath.Join(dir, "wal"))
	rep.LogSegments, rep.LogRecords, rep.Damages = wal.Segments, wal.Records, append(rep.Damages, wal.Damages...)
	if err != nil {
		return rep, err
	}
	for _, sub := range append([]string{blocksDir}, tier.Dirs(dir)...) {
		found, err := block.Check(filepath.Join(dir, sub), repair)
		rep.BlockFiles += found.Files
		rep.Blocks += found.Blocks
		rep.Columns += found.Columns
		rep.Damages = append(rep.Damages, found.Damages...)
		rep.Repaired = append(rep.Repaired, found.Repaired...)
		if err != nil {
			return rep, err
		}
	}
	return rep, nil
}
