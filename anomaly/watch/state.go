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

	"fairway/anomaly/backend"
	"fairway/anomaly/clientslow"
	"fairway/anomaly/failslow"
	"fairway/anomaly/targetslow"
	"fairway/collector/topology"
)

// The file of the detectors' state: stateMagic, then little-endian the version (4 bytes), the length of
// the body (8) and the CRC-32C of the body (4), then the body, gobs of savedState, of each forwarder's savedRate and of
// explained slow nodes.
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

// Reasons why a saved state is not used. The detectors then begin anew.
var (
	ErrStateDamaged = errors.New("the saved state of the detectors is damaged")
	ErrStateNewer   = errors.New("the saved state of the detectors is of another version")
	ErrStateOld     = errors.New("the saved state of the detectors is too old")
)

// savedState is what outlives a restart, by the names of the file. Interference shows itself again in seconds.
type savedState struct {
	SavedAt  time.Time
	FailSlow []byte
	Clients  []byte
	Links    []byte // absent in states of before
	Targets  []byte
	BackEnds []byte
	Routers  []byte
	Back     []byte // of forwarders that are clients of storage
	Nets     map[topology.NodeID][]string
	Accused  map[topology.NodeID]bool
	Alone    map[topology.NodeID][3]savedClient // clients that are slow by themselves
	Clock    map[topology.NodeID]bool
	Heard    map[topology.NodeID]int64 // a forwarder that fell silent before the restart still is
	Quiet    map[topology.NodeID]int64
	Trend    savedTrend // a restart does not empty what people look at
}

// savedClient is habitOfClient by the names of the file.
type savedClient struct {
	Longer  float64
	Seconds int
}

// savedRate is linkRate by the names of the file.
type savedRate struct {
	Best        float64
	BestAt, Low int64
}

// State returns what the detectors have learnt, and the evidence so far, for LoadState after a restart.
func (d *Detectors) State(now time.Time) ([]byte, error) {
	body, err := d.encode(now)
	if err != nil {
		return nil, fmt.Errorf("BUG: encode the detectors' state: %w", err)
	}
	b := make([]byte, 0, stateHead+len(body))
	b = append(b, stateMagic...)
	b = binary.LittleEndian.AppendUint32(b, stateVersion)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	return append(b, body...), nil
}

func (d *Detectors) encode(now time.Time) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := savedState{SavedAt: now.UTC(), Clock: d.ownClock, Heard: d.silence.last, Quiet: d.silence.quiet,
		Trend: d.trend.save()}
	var err error
	if s.FailSlow, err = d.slow.MarshalBinary(); err != nil {
		return nil, err
	}
	if s.Clients, err = d.byClient.MarshalBinary(); err != nil {
		return nil, err
	}
	if s.Links, err = d.clients.links.test.MarshalBinary(); err != nil {
		return nil, err
	}
	if s.Targets, err = d.targets.MarshalBinary(); err != nil {
		return nil, err
	}
	if s.BackEnds, err = d.backEnds.MarshalBinary(); err != nil {
		return nil, err
	}
	if s.Routers, err = d.routers.group.MarshalBinary(); err != nil {
		return nil, err
	}
	if s.Back, err = d.routers.back.group.MarshalBinary(); err != nil {
		return nil, err
	}
	rates := map[topology.NodeID]savedRate{}
	for n, r := range d.silence.rates {
		rates[n] = savedRate{r.best, r.bestAt, r.low}
	}
	s.Nets, s.Accused, s.Alone = d.routers.nets, d.routers.back.accused, map[topology.NodeID][3]savedClient{}
	for n, of := range d.clients.slow.of {
		var saved [3]savedClient
		for c := range of {
			saved[c] = savedClient{of[c].longer, of[c].seconds}
		}
		s.Alone[n] = saved
	}
	var b bytes.Buffer
	to := gob.NewEncoder(&b)
	err = errors.Join(to.Encode(s), to.Encode(rates), to.Encode(d.silence.causes.cases))
	return b.Bytes(), err
}

// LoadState continues from a saved state that is not older than maxAge. On an error the detectors are as they were.
// Errors: ErrStateDamaged, ErrStateNewer, ErrStateOld, and those of from.
func (d *Detectors) LoadState(from io.Reader, now time.Time, maxAge time.Duration) (age time.Duration, err error) {
	body, err := readState(from)
	if err != nil {
		return 0, err
	}
	var s savedState
	var rates map[topology.NodeID]savedRate // this and the next are absent in states of before
	var explained map[topology.NodeID]*explained
	saved := gob.NewDecoder(bytes.NewReader(body))
	err = saved.Decode(&s)
	for _, more := range []any{&rates, &explained} {
		if err == nil {
			err = saved.Decode(more)
		}
	}
	if err != nil && !(err == io.EOF && !s.SavedAt.IsZero()) {
		return 0, fmt.Errorf("%w: %w", ErrStateDamaged, err)
	}
	age = now.Sub(s.SavedAt)
	if age > maxAge || age < -skew {
		return age, fmt.Errorf("%w: it was saved at %s, %s ago; at most %s may pass",
			ErrStateOld, s.SavedAt.Format(time.RFC3339), age.Round(time.Second), maxAge)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	slow, seenBy, targets := failslow.New(d.set), clientslow.New(d.set.FalseAlarmEvery),
		targetslow.New(targetslow.DefaultRules(), d.set.FalseAlarmEvery, time.Second)
	backEnds := backend.New(d.set.FalseAlarmEvery)
	routers, links := newRouters(d.set.FalseAlarmEvery), newLinks(d.set.FalseAlarmEvery)
	if len(s.Links) > 0 {
		if err := links.test.UnmarshalBinary(s.Links); err != nil {
			return age, fmt.Errorf("%w: %w", ErrStateDamaged, err)
		}
	}
	if err := errors.Join(routers.group.UnmarshalBinary(s.Routers), routers.back.group.UnmarshalBinary(s.Back),
		slow.UnmarshalBinary(s.FailSlow), seenBy.UnmarshalBinary(s.Clients),
		targets.UnmarshalBinary(s.Targets), backEnds.UnmarshalBinary(s.BackEnds)); err != nil {
		return age, fmt.Errorf("%w: %w", ErrStateDamaged, err)
	}
	d.slow, d.byClient, d.targets, d.backEnds, d.routers = slow, seenBy, targets, backEnds, routers
	d.clients.links = links
	maps.Copy(d.routers.nets, s.Nets)
	maps.Copy(d.routers.back.accused, s.Accused)
	d.clients.slow.begin()
	for n, saved := range s.Alone {
		of := &[3]habitOfClient{}
		for c := range saved {
			of[c] = habitOfClient{saved[c].Longer, saved[c].Seconds}
		}
		d.clients.slow.of[n] = of
	}
	maps.Copy(d.ownClock, s.Clock)
	for n, at := range s.Heard {
		if s.SavedAt.Unix()-at <= silentAfter {
			at = now.Unix() // no forwarder could report while the daemon was down
		}
		d.silence.last[n] = at
	}
	maps.Copy(d.silence.quiet, s.Quiet)
	for n, r := range rates {
		d.silence.rates[n] = &linkRate{best: r.Best, bestAt: r.BestAt, low: r.Low}
	}
	for n, of := range explained {
		of.Seen = now.Unix() // nobody could doubt it while the daemon was down
		d.silence.causes.cases[n] = of
	}
	d.trend.load(s.Trend)
	d.silence.order = slices.Sorted(maps.Keys(d.silence.last))
	return age, nil
}

func readState(from io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(from, mostState+1))
	if err != nil {
		return nil, err
	}
	if len(b) < stateHead || string(b[:len(stateMagic)]) != stateMagic || len(b) > mostState {
		return nil, fmt.Errorf("%w: %d bytes that do not begin with %q or are cut off", ErrStateDamaged, len(b),
			stateMagic)
	}
	head, body := b[len(stateMagic):stateHead], b[stateHead:]
	if v := binary.LittleEndian.Uint32(head); v != stateVersion {
		return nil, fmt.Errorf("%w: it has version %d, this program knows %d", ErrStateNewer, v, stateVersion)
	}
	if want := binary.LittleEndian.Uint64(head[4:]); want != uint64(len(body)) {
		return nil, fmt.Errorf("%w: %d bytes of state, want %d", ErrStateDamaged, len(body), want)
	}
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(head[12:]) {
		return nil, fmt.Errorf("%w: its checksum does not match", ErrStateDamaged)
	}
	return body, nil
}
