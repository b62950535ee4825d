package disk

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// ErrNewerFormat says that a file was written by a newer version of the program.
var ErrNewerFormat = errors.New("written by a newer version")

// CheckVersion refuses a file of another format version: those before v0.1.0 had older ones.
func CheckVersion(what string, version, want uint16) error {
	switch {
	case version > want:
		return fmt.Errorf("%s has format version %d, this program reads %d: %w", what, version, want, ErrNewerFormat)
	case version < want:
		return fmt.Errorf("%s has format version %d, of before v0.1.0; fairwayd v0.2.0 reads it", what, version)
	}
	return nil
}

// Damage is one thing that a reader found wrong with a file of the store, and what it cost.
type Damage struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	What   string `json:"what"`
	Lost   string `json:"lost"`
}

// String returns the damage as one line for a log or a report.
func (d Damage) String() string {
	return fmt.Sprintf("%s at byte %d: %s; lost: %s", d.File, d.Offset, d.What, d.Lost)
}

// Damages are what was found damaged since the store was opened.
type Damages struct {
	log *slog.Logger

	mu   sync.Mutex // guards what follows
	list []Damage
	seen map[Damage]bool
}

// NewDamages returns an empty list.
func NewDamages(log *slog.Logger) *Damages { return &Damages{log: log, seen: map[Damage]bool{}} }

// Report notes and logs a damage.
func (l *Damages) Report(d Damage) {
	const keep = 1000
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[d] || len(l.list) == keep {
		return
	}
	l.seen[d] = true
	l.list = append(l.list, d)
	l.log.Error("the store has a damaged file; the rest is used", "damage", d.String())
}

// All returns what was found so far.
func (l *Damages) All() []Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Damage(nil), l.list...)
}
