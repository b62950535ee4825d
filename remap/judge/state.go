package judge

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"fairway/anomaly/clientslow"
	"fairway/anomaly/failslow"
	"fairway/anomaly/targetslow"
	"fairway/collector/topology"
	"fairway/remap/desk"
)

// The file of the detectors' state: stateMagic, then little-endian the version (4 bytes), the length of
// the body (8) and the CRC-32C of the body (4), then the body, a gob of savedWatch.
const (
	stateMagic   = "fairway detectors\n"
	stateVersion = 1
	stateHead    = len(stateMagic) + 16
	// mostState bounds what is read: 41,488 forwarders take about a tenth of it.
	mostState = 512 << 20
	// skew is how far in the future a state may have been saved: clocks are set back a little.
	skew = time.Minute
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Why a saved state is not taken up. The detectors then begin anew.
var (
	ErrStateDamaged = errors.New("the saved state of the detectors is damaged")
	ErrStateNewer   = errors.New("the saved state of the detectors is of another version")
	ErrStateOld     = errors.New("the saved state of the detectors is too old")
)

// savedWatch is what outlives a restart. What interference is going on shows itself again in seconds.
type savedWatch struct {
	SavedAt  time.Time
	FailSlow []byte
	Clients  []byte
	Targets  []byte
	Clock    map[topology.NodeID]bool
	Heard    map[topology.NodeID]int64 // a forwarder that fell silent before the restart still is
	Quiet    map[topology.NodeID]int64
}

// SaveState writes what the detectors have learnt, and the evidence so far, to a file.
func (w *Watch) SaveState(path string, now time.Time) error {
	body, err := w.encode(now)
	if err != nil {
		return fmt.Errorf("BUG: encode the detectors' state: %w", err)
	}
	b := make([]byte, 0, stateHead+len(body))
	b = append(b, stateMagic...)
	b = binary.LittleEndian.AppendUint32(b, stateVersion)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	return desk.ReplaceFile(path, append(b, body...), 0o600)
}

func (w *Watch) encode(now time.Time) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := savedWatch{SavedAt: now.UTC(), Clock: w.clock, Heard: w.silence.heard, Quiet: w.silence.quiet}
	var err error
	if s.FailSlow, err = w.slow.MarshalBinary(); err != nil {
		return nil, err
	}
	if s.Clients, err = w.seenBy.MarshalBinary(); err != nil {
		return nil, err
	}
	if s.Targets, err = w.targets.MarshalBinary(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(s)
	return b.Bytes(), err
}

// LoadState takes up a saved state, unless it is older than maxAge. On an error the detectors are as they
// were: fs.ErrNotExist, ErrStateDamaged, ErrStateNewer, ErrStateOld.
func (w *Watch) LoadState(path string, now time.Time, maxAge time.Duration) (age time.Duration, err error) {
	body, err := readState(path)
	if err != nil {
		return 0, err
	}
	var s savedWatch
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&s); err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrStateDamaged, path, err)
	}
	age = now.Sub(s.SavedAt)
	if age > maxAge || age < -skew {
		return age, fmt.Errorf("%w: %s was saved at %s, %s ago; at most %s may pass (detector_state.max_age)",
			ErrStateOld, path, s.SavedAt.Format(time.RFC3339), age.Round(time.Second), maxAge)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slow, seenBy, targets := failslow.New(w.set), clientslow.New(w.set.FalseAlarmEvery),
		targetslow.New(w.set.FalseAlarmEvery, time.Second)
	if err := errors.Join(slow.UnmarshalBinary(s.FailSlow), seenBy.UnmarshalBinary(s.Clients),
		targets.UnmarshalBinary(s.Targets)); err != nil {
		return age, fmt.Errorf("%w: %s: %w", ErrStateDamaged, path, err)
	}
	w.slow, w.seenBy, w.targets = slow, seenBy, targets
	maps.Copy(w.clock, s.Clock)
	for n, at := range s.Heard {
		if s.SavedAt.Unix()-at <= silentAfter {
			at = now.Unix() // while the daemon was away it heard nobody
		}
		w.silence.heard[n] = at
	}
	maps.Copy(w.silence.quiet, s.Quiet)
	w.silence.order = slices.Sorted(maps.Keys(w.silence.heard))
	return age, nil
}

func readState(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostState+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(b) < stateHead || string(b[:len(stateMagic)]) != stateMagic || len(b) > mostState {
		return nil, fmt.Errorf("%w: %s (%d bytes) does not begin with %q or is cut off", ErrStateDamaged, path, len(b),
			stateMagic)
	}
	head, body := b[len(stateMagic):stateHead], b[stateHead:]
	if v := binary.LittleEndian.Uint32(head); v != stateVersion {
		return nil, fmt.Errorf("%w: %s has version %d, this program knows %d", ErrStateNewer, path, v, stateVersion)
	}
	if want := binary.LittleEndian.Uint64(head[4:]); want != uint64(len(body)) {
		return nil, fmt.Errorf("%w: %s has %d bytes of state, want %d", ErrStateDamaged, path, len(body), want)
	}
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(head[12:]) {
		return nil, fmt.Errorf("%w: %s does not have its checksum", ErrStateDamaged, path)
	}
	return body, nil
}

// KeepState saves the state every so often and once more when ctx ends.
func (w *Watch) KeepState(ctx context.Context, path string, every time.Duration, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		now, ended := time.Time{}, false
		select {
		case now = <-tick.C:
		case <-ctx.Done():
			now, ended = time.Now(), true
		}
		if err := w.SaveState(path, now); err != nil {
			log.Error("the detectors' state was not saved; after a restart they would learn anew", "err", err)
		}
		if ended {
			return
		}
	}
}
