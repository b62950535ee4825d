// Package logread turns the files that instruments leave behind into rows of package iolog. What a file
// is, its first bytes tell.
package logread

import (
	"errors"
	"io"

	"fairway/collector/darshan"
	"fairway/tsdb/history/iolog"
)

// ErrUnknown is the error of a file that is no log of a known kind.
var ErrUnknown = errors.New("not an I/O log")

// headBytes is how much of a file tells its kind.
const headBytes = 4096

// Read reads one file; id becomes the column log of its rows. What could be read of a damaged log is
// given, with the damage in Log.Problem; an error means that there is nothing.
func Read(in *io.SectionReader, id int64) (*iolog.Log, error) {
	l, err := Darshan(in, id)
	if !errors.Is(err, darshan.ErrNotDarshan) {
		return l, err
	}
	head := make([]byte, min(headBytes, in.Size()))
	if _, err := in.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if looksLikeSlurm(head) {
		return Slurm(io.NewSectionReader(in, 0, in.Size()))
	}
	return nil, ErrUnknown
}
