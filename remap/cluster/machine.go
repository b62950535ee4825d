package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"fairway/remap/journal"
)

// The kinds of entries of the replicated log; each is its entry's first byte.
const (
	entryLines   = 'J' // lines of the journal
	entryFounded = 'F' // the journal so far is the cluster's
	entryNote    = 'N' // of Notes
)

// Journal is the desk of this daemon, whose journal is kept among the daemons.
type Journal interface {
	Deliver(lines []byte) error
	Head() journal.Head
	HashAt(n uint64) (string, error)
	Lines(n uint64) (io.Reader, error)
}

// Notes are what the daemons let each other know beside the journal, each a few bytes, such as a job's start and end.
// They are taken in one order everywhere, after a restart possibly again.
type Notes interface {
	Take(note []byte) error
	// Standing returns the notes that a daemon needs that has missed all of them.
	Standing() [][]byte
}

// machine is the state machine: the journal. Raft calls it from one goroutine.
type machine struct{ n *Node }

// Apply implements raft.FSM. What cannot be written ends this daemon's part: it must not go on behind a gap.
func (m machine) Apply(l *raft.Log) any {
	if err := m.n.trouble.dead(); err != nil {
		return err
	}
	if len(l.Data) == 0 {
		return errors.New("an empty entry")
	}
	var err error
	switch kind, data := l.Data[0], l.Data[1:]; kind {
	case entryLines:
		err = m.n.journal.Deliver(data)
		if errors.Is(err, journal.ErrOtherHistory) {
			// A leader that was deposed meanwhile proposed it: every daemon finds the same, and leaves it out.
			m.n.cfg.Log.Warn("records of a deposed leader were left out", "term", l.Term, "err", err)
			return err
		}
	case entryFounded:
		err = m.n.found(data)
	case entryNote:
		err = m.n.notes.Take(data)
	default:
		err = fmt.Errorf("an entry of kind %q: a newer daemon leads; update this one", kind)
	}
	if err != nil {
		m.n.die(fmt.Errorf("entry %d: %w", l.Index, err))
	}
	return err
}

// snapHead is the first line of a snapshot; the journal's lines follow.
type snapHead struct {
	Head    journal.Head      `json:"head"`
	Founded bool              `json:"founded"`
	Notes   []json.RawMessage `json:"notes,omitempty"`
}

type snapshot struct {
	head  snapHead
	lines io.Reader
}

// Snapshot implements raft.FSM.
func (m machine) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.n.trouble.dead(); err != nil {
		return nil, err
	}
	s := &snapshot{head: snapHead{Head: m.n.journal.Head(), Founded: m.n.founded.Load()}}
	for _, note := range m.n.notes.Standing() {
		s.head.Notes = append(s.head.Notes, note)
	}
	var err error
	s.lines, err = m.n.journal.Lines(s.head.Head.Records)
	return s, err
}

// Persist implements raft.FSMSnapshot.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	err := json.NewEncoder(sink).Encode(&s.head)
	if err == nil {
		_, err = io.Copy(sink, s.lines)
	}
	if err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s *snapshot) Release() {}

// restorePiece is how many bytes of a snapshot's journal are taken at once.
const restorePiece = 1 << 20

// Restore implements raft.FSM: what the journal lacks of the snapshot is added, and what it has must be the same.
func (m machine) Restore(from io.ReadCloser) error {
	defer from.Close()
	in := bufio.NewReaderSize(from, 1<<20)
	first, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	var head snapHead
	if err := json.Unmarshal(first, &head); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	have := m.n.journal.Head()
	if have.Records < head.Head.Records {
		err = journal.Batches(in, restorePiece, m.n.journal.Deliver)
	} else if head.Head.Records > 0 {
		var hash string
		if hash, err = m.n.journal.HashAt(head.Head.Records); err == nil && hash != head.Head.Hash {
			err = fmt.Errorf("record %d: %w", head.Head.Records, journal.ErrOtherHistory)
		}
	}
	if err != nil {
		err = fmt.Errorf("snapshot of %d records: %w", head.Head.Records, err)
		m.n.die(err)
		return err
	}
	if head.Founded {
		m.n.founded.Store(true)
	}
	for _, note := range head.Notes {
		if err := m.n.notes.Take(note); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	return nil
}
