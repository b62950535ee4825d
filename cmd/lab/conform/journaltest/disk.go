// Package journaltest has journal files that fail: disks that die, are full or hang.
package journaltest

import "errors"

// HungDisk hangs in Sync until it is let go.
type HungDisk struct {
	*Disk
	Hangs, GoOn chan struct{}
}

// Sync hangs.
func (h *HungDisk) Sync() error {
	close(h.Hangs)
	<-h.GoOn
	return h.Disk.Sync()
}

// ErrFull is what a FullDisk answers.
var ErrFull = errors.New("no space left on device")

// FullDisk takes half of what it is given while it is full.
type FullDisk struct {
	*Disk
	Full bool
}

// Write takes half while the disk is full.
func (f *FullDisk) Write(p []byte) (int, error) {
	if f.Full {
		n, _ := f.Disk.Write(p[:len(p)/2])
		return n, ErrFull
	}
	return f.Disk.Write(p)
}

// Disk is a journal file in memory that dies: after Left more bytes, or at sync number Syncs.
// What was written before stays, as after kill -9.
type Disk struct {
	Data  []byte
	Left  int // bytes; negative: it does not die
	Syncs int // negative: it does not die
	Dead  bool
}

var errKilled = errors.New("killed")

// Write adds p, or the part of it before the disk dies.
func (k *Disk) Write(p []byte) (int, error) {
	if k.Dead {
		return 0, errKilled
	}
	if k.Left >= 0 && len(p) >= k.Left {
		p, k.Dead = p[:k.Left], true
	}
	k.Data = append(k.Data, p...)
	if k.Dead {
		return len(p), errKilled
	}
	if k.Left >= 0 {
		k.Left -= len(p)
	}
	return len(p), nil
}

// Sync fails when the disk dies.
func (k *Disk) Sync() error {
	if k.Syncs == 0 {
		k.Dead = true
	}
	if k.Dead {
		return errKilled
	}
	k.Syncs--
	return nil
}

// Truncate cuts the content.
func (k *Disk) Truncate(n int64) error {
	if k.Dead {
		return errKilled
	}
	k.Data = k.Data[:n]
	return nil
}

// Close does nothing.
func (k *Disk) Close() error { return nil }

// NewHungDisk returns a disk whose Sync closes Hangs and waits for GoOn.
func NewHungDisk() *HungDisk {
	return &HungDisk{Disk: &Disk{Left: -1, Syncs: -1}, Hangs: make(chan struct{}), GoOn: make(chan struct{})}
}
