package desk

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/journaltest"
	"fairway/remap"
	"fairway/remap/journal"
)

// Since shows each record once, in order, also those that come between two calls, and goes on behind a visitor's error.
func TestSinceShowsOnlyWhatIsNew(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		var seen []uint64
		read, stop := uint64(0), errors.New("enough")
		look := func(most int) (err error) {
			n := 0
			read, err = d.Since(read, func(r *journal.Record) error {
				if n++; n > most {
					return stop
				}
				seen = append(seen, r.Seq)
				return nil
			})
			return err
		}
		if err := look(9); err != nil || len(seen) != 0 {
			t.Fatalf("of an empty journal: %v, %v", seen, err)
		}
		for i := range 3 {
			propose(t, d, olga, ask(i, "ROMS"))
		}
		if err := look(2); !errors.Is(err, stop) || len(seen) != 2 {
			t.Fatalf("%v, %v", seen, err)
		}
		propose(t, d, olga, ask(3, "ROMS"))
		for range 2 {
			if err := look(9); err != nil {
				t.Fatal(err)
			}
		}
		for i, n := range seen {
			if n != uint64(i+1) {
				t.Fatalf("records %v", seen)
			}
		}
		if len(seen) < 4 || seen[len(seen)-1] != read {
			t.Errorf("%d records, the last is %d", len(seen), read)
		}
	})
}

// TestAFullDiskIsReportedOnce lets a proposal expire on a full disk: the desk says that it cannot write,
// in the log once, and goes on when there is room.
func TestAFullDiskIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		m, full := newTestMachine(8, 4), &journaltest.FullDisk{Disk: &journaltest.Disk{Left: -1, Syncs: -1}}
		d := start(Config{Settings: DefaultSettings(), Driver: m, Situation: m.situation,
			Log: slog.New(slog.NewTextHandler(&text, nil))}, newState(), onDisk(full))
		p := propose(t, d, olga, ask(0, ""))
		set := func(v bool) {
			if err := d.do(t.Context(), func() error { full.Full = v; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		set(true)
		time.Sleep(time.Hour)
		wantState(t, d, p.ID, remap.Proposed)
		if err := d.Unrecorded(); !errors.Is(err, journaltest.ErrFull) {
			t.Errorf("on a full disk: %v", err)
		}
		set(false)
		time.Sleep(time.Second)
		wantState(t, d, p.ID, remap.Expired)
		if err := d.Unrecorded(); err != nil {
			t.Errorf("with room again: %v", err)
		}
		d.Close()
		if n := strings.Count(text.String(), "not recorded"); n != 1 {
			t.Errorf("the log says it %d times:\n%.600s", n, text.String())
		}
	})
}

// TestWhatHasEndedIsLookedAtNoMore counts the plans that every tick walks over.
func TestWhatHasEndedIsLookedAtNoMore(t *testing.T) {
	m := newTestMachine(8, 4)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		for i := range 4 {
			propose(t, d, olga, ask(i, ""))
		}
		rejected, err := d.Reject(t.Context(), sam, "P-000002", remap.Answer{Reason: why})
		if err != nil || rejected.Ended == nil || rejected.Ended.By != sam.Name || rejected.Ended.Reason != why {
			t.Fatalf("%+v, %v", rejected.Ended, err)
		}
		waiting, err := d.Waiting(t.Context())
		if err != nil || len(waiting) != 3 || waiting[0].ID != "P-000004" || waiting[2].ID != "P-000001" {
			t.Errorf("waiting are %+v, %v", waiting, err)
		}
		time.Sleep(time.Hour)
		newest, err := d.Plans(t.Context(), 2)
		if err != nil || len(newest) != 2 || newest[0].ID != "P-000004" || newest[0].Moves != nil ||
			remap.Title(&newest[0]) != "cn3 -> fwd3" {
			t.Errorf("the newest two are %+v, %v", newest, err)
		}
		p := wantState(t, d, "P-000004", remap.Expired)
		if len(p.Moves) != 1 || p.Moves[0] != (remap.Move{Node: node(3), From: forwarder(1), To: "fwd3"}) ||
			p.Frozen.Healthy != 4 ||
			remap.Title(&p) != "cn3 -> fwd3" {
			t.Errorf("the whole of what has ended is %+v", p)
		}
		var text strings.Builder
		d.WriteMetrics(&text)
		if text := text.String(); !strings.Contains(text, `state="expired"} 3`) ||
			!strings.Contains(text, `state="rejected"} 1`) || strings.Contains(text, "proposed") {
			t.Errorf("counted are\n%s", text)
		}
		if err := d.do(t.Context(), func() error {
			if n := len(d.state.plans.open); n != 0 {
				return fmt.Errorf("%d plans are open", n)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// TestAScrapeDoesNotWaitForAHungDisk asks for the counters while a step is being written.
func TestAScrapeDoesNotWaitForAHungDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, hung := newTestMachine(8, 4), journaltest.NewHungDisk()
		d := start(Config{Settings: DefaultSettings(), Driver: m, Situation: m.situation}, newState(), onDisk(hung))
		go func() {
			<-hung.Hangs
			time.Sleep(90 * time.Second)
			var text strings.Builder
			d.WriteMetrics(&text)
			if text := text.String(); !strings.Contains(text, "fairway_journal_write_seconds 90\n") ||
				!strings.Contains(text, "fairway_journal_records 0\n") {
				t.Errorf("while the disk hangs:\n%s", text)
			}
			close(hung.GoOn)
		}()
		propose(t, d, olga, ask(0, ""))
		var text strings.Builder
		d.WriteMetrics(&text)
		if text := text.String(); !strings.Contains(text, "fairway_journal_write_seconds 0\n") ||
			!strings.Contains(text, "fairway_journal_records 1\n") {
			t.Errorf("afterwards:\n%s", text)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}
