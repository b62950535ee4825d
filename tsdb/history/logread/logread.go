// Package logread turns the files that instruments leave behind into rows of package iolog. What a file
// is, its first bytes tell.
package logread

import (
	"errors"
	"io"
	"time"

	"fairway/collector/darshan"
	"fairway/tsdb/history/iolog"
)

// ErrUnknown is the error of a file that is no log of a known kind.
var ErrUnknown = errors.New("not an I/O log")

// Options are what the files themselves do not say.
type Options struct {
	// Zone is where times without a zone are, of Slurm's and LMT's hosts; nil is UTC.
	Zone *time.Location
}

// headBytes is how much of a file tells its kind.
const headBytes = 4096

// Read reads one file; id becomes the column log of its rows. What could be read of a damaged log is
// given, with the damage in Log.Problem; an error means that there is nothing.
func Read(in *io.SectionReader, id int64, o Options) (*iolog.Log, error) {
	l, err := Darshan(in, id)
	if !errors.Is(err, darshan.ErrNotDarshan) {
		return l, err
	}
	head := make([]byte, min(headBytes, in.Size()))
	if _, err := in.ReadAt(head, 0); err != nil {
		return nil, err
	}
	switch {
	case looksLikeSlurm(head):
		return Slurm(io.NewSectionReader(in, 0, in.Size()), o)
	case looksLikeLMT(head):
		return LMT(in, o)
	}
	return nil, ErrUnknown
}
