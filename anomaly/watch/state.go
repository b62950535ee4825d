package watch

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"time"

	"fairway/anomaly"
)

// The file of the detectors' state: stateMagic with its version, the gob of a savedState, and the CRC-32C of that.
const (
	stateName  = "fairway detectors"
	stateMagic = stateName + " 4\n"
	// mostState bounds what is read: 41,488 forwarders take about a tenth of it.
	mostState = 512 << 20
	// skew is how far in the future a state may have been saved: clocks are set back a little.
	skew = time.Minute
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Reasons why a saved state is not used. The detectors then begin anew.
var (
	ErrStateDamaged = errors.New("the saved state of the detectors is damaged")
	ErrStateNewer   = errors.New("the saved state of the detectors is of another version")
	ErrStateOld     = errors.New("the saved state of the detectors is too old")
)

// savedState is what outlives a restart: what is learnt of each part, in a gob of its own.
type savedState struct {
	SavedAt time.Time
	Parts   map[string][]byte
}

// partsOf are the parts of detectors that outlive a restart: what they have learnt, and the evidence so far.
// Interference shows itself again in seconds.
func partsOf(d *Detectors) map[string]any {
	return map[string]any{
		"forwarders": d.slow, "clients": d.byClient, "gateways": d.clients.plain, "links": d.clients.links.test,
		"targets": d.targets, "targets by clients": d.clients.sights.targets,
		"forwarders by targets": d.clients.sights.forwarders, "clients by targets": d.clients.sights.clients,
		"back ends": d.backEnds, "routers": d.routers.group, "round trips": d.routers.trips,
		"nets": &d.routers.nets, "slow clients": &d.clients.slow.of, "clocks": &d.ownClock, "asked": &d.clients.asked,
		"reported": &d.silence.last, "quiet": &d.silence.quiet, "rates": &d.silence.rates,
		"causes": &d.silence.causes.cases,
		// a restart does not empty what people look at
		"second": &d.trend.newest, "layer": d.trend.layer, "waits": &d.trend.waits,
	}
}

// State returns what the detectors have learnt, and the evidence so far, for LoadState after a restart.
func (d *Detectors) State(now time.Time) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := savedState{SavedAt: now.UTC(), Parts: map[string][]byte{}}
	var err error
	for name, part := range partsOf(d) {
		saved, bad := anomaly.Save(part)
		s.Parts[name], err = saved, errors.Join(err, bad)
	}
	b := bytes.NewBufferString(stateMagic)
	if err = errors.Join(err, gob.NewEncoder(b).Encode(s)); err != nil {
		return nil, fmt.Errorf("BUG: encode the detectors' state: %w", err)
	}
	return binary.LittleEndian.AppendUint32(b.Bytes(), crc32.Checksum(b.Bytes()[len(stateMagic):], castagnoli)), nil
}

// LoadState continues from a saved state that is not older than maxAge. On an error the detectors are as they were.
// Errors: ErrStateDamaged, ErrStateNewer, ErrStateOld, and those of from.
func (d *Detectors) LoadState(from io.Reader, now time.Time, maxAge time.Duration) (age time.Duration, err error) {
	s, err := readState(from)
	if err != nil {
		return 0, err
	}
	age = now.Sub(s.SavedAt)
	if age > maxAge || age < -skew {
		return age, fmt.Errorf("%w: it was saved at %s, %s ago; at most %s may pass",
			ErrStateOld, s.SavedAt.Format(time.RFC3339), age.Round(time.Second), maxAge)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, to := range []*Detectors{NewDetectors(d.board, d.set), d} { // others try first whether all can be read
		for name, part := range partsOf(to) {
			if err := gob.NewDecoder(bytes.NewReader(s.Parts[name])).Decode(part); err != nil {
				return age, fmt.Errorf("%w: %s: %w", ErrStateDamaged, name, err)
			}
		}
	}
	for n, at := range d.silence.last {
		if s.SavedAt.Unix()-at <= silentAfter {
			d.silence.last[n] = now.Unix() // no forwarder could report while the daemon was down
		}
	}
	for _, of := range d.silence.causes.cases {
		of.Seen = now.Unix() // nobody could doubt it while the daemon was down
	}
	d.silence.order = slices.Sorted(maps.Keys(d.silence.last))
	return age, nil
}

func readState(from io.Reader) (s savedState, err error) {
	b, err := io.ReadAll(io.LimitReader(from, mostState+1))
	if err != nil {
		return s, err
	}
	body, known := bytes.CutPrefix(b, []byte(stateMagic))
	switch at := len(body) - crc32.Size; {
	case !known && bytes.HasPrefix(b, []byte(stateName)):
		return s, fmt.Errorf("%w: it does not begin with %q, as this one's do", ErrStateNewer, stateMagic)
	case !known || at < 0 || len(b) > mostState ||
		crc32.Checksum(body[:at], castagnoli) != binary.LittleEndian.Uint32(body[at:]):
		return s, fmt.Errorf("%w: %d bytes that do not begin with %q, or whose checksum does not match",
			ErrStateDamaged, len(b), stateMagic)
	}
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&s); err != nil {
		return s, fmt.Errorf("%w: %w", ErrStateDamaged, err)
	}
	return s, nil
}
