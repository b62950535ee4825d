// Package logread turns the files that instruments leave behind into rows of package iolog. What a file
// is, follows from its first bytes.
package logread

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"

	"fairway/collector"
	"fairway/collector/logs/darshan"
	"fairway/tsdb/history/iolog"
)

// Options are what the files themselves do not say.
type Options struct {
	// Zone is where times without a zone are, of Slurm's and LMT's hosts; nil is UTC.
	Zone *time.Location
	// NoAccounts has a file of accounts refused by its first bytes.
	NoAccounts bool
}

// mostMemory is what the rows of one file of accounts may take, bytes: its text says little of how many they are.
const mostMemory = 4 << 30

// room is how many bytes more may be taken.
type room int64

func (r *room) take(n int) error {
	if *r -= room(n); *r < 0 {
		return errors.New("its rows take too much memory: give it in parts, such as a file a month")
	}
	return nil
}

// kept is a log of which an error ended the reading, or some lines could not be read; nothing where none could.
func kept(l *iolog.Log, err error) (*iolog.Log, error) {
	switch {
	case err != nil && l.Rows() == 0:
		return nil, err
	case err != nil:
		l.Problem = err.Error()
	}
	return l, nil
}

// headBytes is how much of a file its kind follows from.
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
	case bytes.HasPrefix(head, gzipped):
		return unzipped(io.NewSectionReader(in, 0, in.Size()), o)
	case o.NoAccounts && (looksLikeSlurm(head) || looksLikeLMT(head)):
		return nil, iolog.ErrAccounts
	case looksLikeSlurm(head):
		return Slurm(io.NewSectionReader(in, 0, in.Size()), o)
	case looksLikeLMT(head):
		return LMT(in, o)
	}
	return nil, iolog.ErrNotALog
}

var gzipped = []byte{0x1f, 0x8b}

// maxGrowth bounds what a compressed file may become; text of a scheduler shrinks to a tenth or so.
const maxGrowth = 1 << 10

// unzipped reads a compressed dump of Slurm's as it is decompressed; nothing else is kept that way.
func unzipped(in *io.SectionReader, o Options) (*iolog.Log, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, iolog.ErrNotALog
	}
	text := bufio.NewReaderSize(&collector.Bounded{In: z, Left: maxGrowth * in.Size(),
		Err: fmt.Errorf("it grows to more than %d times its size when it is decompressed", maxGrowth)}, headBytes)
	if head, err := text.Peek(headBytes); err != nil && !errors.Is(err, io.EOF) || !looksLikeSlurm(head) {
		return nil, iolog.ErrNotALog
	}
	if o.NoAccounts {
		return nil, iolog.ErrAccounts
	}
	return Slurm(text, o)
}
