package state

import (
	"fmt"
	"os"
	"path/filepath"

	"fairway/collector/appendlog"
)

// stateFormat grows when a fairwayd of before could not read what this one writes into its state directory.
const stateFormat = 1

// stateNote is the file format of a state directory.
type stateNote struct {
	Format int    `json:"format"`
	By     string `json:"by"` // the version that wrote it first
}

// CheckFormat refuses a state directory of a later fairwayd, by that one's name, and notes the format in one without a
// note. Nothing is changed where it is refused.
func CheckFormat(dir, version string) error {
	path, note := filepath.Join(dir, formatFile), stateNote{}
	if err := appendlog.ReadNote(path, &note); err != nil {
		return fmt.Errorf("%w; restore it from a backup", err)
	}
	if note.Format > stateFormat {
		return fmt.Errorf("%s was written by fairwayd %s in format %d, and this is fairwayd %s, which reads formats "+
			"up to %d: install %s or later, or restore a backup that this version made", dir, note.By, note.Format,
			version, stateFormat, note.By)
	}
	if note.Format == stateFormat {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("state_dir: %w", err)
	}
	return appendlog.WriteNote(path, stateNote{stateFormat, version}, 0o640)
}

// formatFile is the stateNote's name in a state directory.
const formatFile = "format"
