package ingest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// TestBytesOfATokenAreBounded: who finds no room waits until others have given theirs back, or the end; one message
// alone is always taken.
func TestBytesOfATokenAreBounded(t *testing.T) {
	const largest = wire.MaxMessageBytes
	if mostHeld(largest) > maxHeld {
		t.Fatal("one message alone is not taken")
	}
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{})
		c := &connection{hub: h, sender: h.sender(&Speaker{Name: "many", Limits: DefaultLimits()})}
		d := &direct{hub: h}
		came := make(chan error, maxHeld/mostHeld(largest)+2)
		for range cap(came) {
			go func() { came <- d.room(c, largest) }()
		}
		take := func(want int, err error) {
			t.Helper()
			synctest.Wait()
			if len(came) != want {
				t.Fatalf("%d messages were taken, want %d", len(came), want)
			}
			for range want {
				if got := <-came; got != err {
					t.Error(got)
				}
			}
		}
		take(cap(came)-2, nil)
		c.sender.held.Release(int64(mostHeld(largest)))
		take(1, nil)
		h.Close()
		take(1, ErrClosed)
	})
}

// TestListsOfATokenAreBounded: the jobs that a token's nodes show stay in memory until their next second, so that all
// of them together are bounded; an older second does not make room.
func TestListsOfATokenAreBounded(t *testing.T) {
	h := New(Config{})
	defer h.Close()
	p := h.sender(&Speaker{Name: "many", Limits: DefaultLimits()})
	frame := func(node int, millis int64, jobs int) *collector.Frame {
		return &collector.Frame{Node: topology.NodeID(fmt.Sprint("cn", node)), Role: topology.Compute,
			TimeMillis: millis, Jobs: make([]collector.JobSamples, jobs)}
	}
	refused := 0
	for refused < 10_000 {
		if code, why := p.admitsLists(frame(refused, 5000, wire.MaxJobsPerFrame)); why != "" {
			if code != wire.RejectLimit || !strings.Contains(why, "at most") {
				t.Fatal(code, why)
			}
			break
		}
		refused++
	}
	if most := maxLists / (wire.MaxJobsPerFrame * int(unsafe.Sizeof(collector.JobSamples{}))); refused != most {
		t.Fatalf("%d nodes were taken, want %d", refused, most)
	}
	if _, why := p.admitsLists(frame(20_000, 5000, 10)); why != "" {
		t.Errorf("a node with few jobs is refused: %s", why)
	}
	another := func() string { _, why := p.admitsLists(frame(20_001, 6000, wire.MaxJobsPerFrame)); return why }
	p.admitsLists(frame(0, 4000, 0))
	if another() == "" {
		t.Error("an older second made room")
	}
	p.admitsLists(frame(0, 6000, 0))
	if why := another(); why != "" {
		t.Errorf("a newer second made no room: %s", why)
	}
}
