package desk

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/journaltest"
	"fairway/collector/topology"
	"fairway/remap"
)

func TestExclusionsAreLeasedAndKeepTheFloor(t *testing.T) {
	m := newTestMachine(8, 8)
	k := &journaltest.Disk{Left: -1, Syncs: -1}
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		d := restart(t, k, m, nil)
		changed, stop := d.Watch(8)
		defer stop()
		if _, err := d.Exclude(ctx, olga, "fwd1", time.Hour, remap.Answer{Key: "k", Reason: why}); err != nil {
			t.Fatal(err)
		}
		if id := <-changed; id != FeedChanged {
			t.Errorf("watchers got %q", id)
		}
		if _, err := d.Exclude(ctx, olga, "fwd1", time.Hour, remap.Answer{Key: "k", Reason: why}); err != nil ||
			d.Feed().Generation != 1 {
			t.Errorf("the same request again: %v, generation %d", err, d.Feed().Generation)
		}
		if _, err := d.Exclude(ctx, sam, "fwd2", 10*time.Hour, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			err   error
			want  error
			words []string
		}{
			{errOf(d.Exclude(ctx, sam, "fwd3", time.Hour, remap.Answer{Reason: why})), remap.ErrState,
				[]string{"3 of 8", "25%"}},
			{errOf(d.Exclude(ctx, sam, "fwd99", time.Hour, remap.Answer{Reason: why})), remap.ErrInvalid,
				[]string{"fwd99"}},
			{errOf(d.Exclude(ctx, sam, "cn1", time.Hour, remap.Answer{Reason: why})), remap.ErrInvalid,
				[]string{"cn1"}},
			{errOf(d.Exclude(ctx, sam, "fwd3", 0, remap.Answer{Reason: why})), remap.ErrInvalid,
				[]string{"lease of 0s"}},
			{errOf(d.Exclude(ctx, sam, "fwd3", time.Hour, remap.Answer{})), remap.ErrInvalid, []string{"reason"}},
			{errOf(d.Exclude(ctx, vera, "fwd3", time.Hour, remap.Answer{Reason: why})), remap.ErrNotAllowed,
				[]string{"vera"}},
			{errOf(d.Exclude(ctx, olga, "fwd3", time.Hour, remap.Answer{Key: "k", Reason: why})), remap.ErrConflict,
				[]string{"k"}},
			{d.Return(ctx, sam, "fwd3", remap.Answer{}), remap.ErrNotFound, []string{"fwd3"}},
		} {
			wantErr(t, c.err, c.want, c.words...)
		}
		d.Close()
		d = restart(t, k, m, nil)
		defer d.Close()
		f := d.Feed()
		if f.Generation != 2 || len(f.Exclusions) != 2 || f.Exclusions[0].Forwarder != "fwd1" ||
			!f.ValidUntil.Equal(time.Now().Add(time.Minute)) {
			t.Fatalf("after a restart the feed is %+v", f)
		}
		time.Sleep(time.Hour + time.Second)
		if f = d.Feed(); f.Generation != 3 || len(f.Exclusions) != 1 || f.Exclusions[0].Forwarder != "fwd2" {
			t.Fatalf("after an hour's lease the feed is %+v", f)
		}
		if err := d.Return(ctx, sam, "fwd2", remap.Answer{Reason: why}); err != nil || len(d.Excluded()) != 0 {
			t.Errorf("%v, still excluded: %v", err, d.Excluded())
		}
	})
}

// Maintenance is planned ahead, begins and ends by itself also after restarts, and can be called off.
func TestMaintenance(t *testing.T) {
	m := newTestMachine(8, 8)
	k := &journaltest.Disk{Left: -1, Syncs: -1}
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		d := restart(t, k, m, nil)
		in := func(hours int) time.Time { return time.Now().Add(time.Duration(hours) * time.Hour) }
		for _, c := range []struct {
			err  error
			want error
			word string
		}{
			{errOf(d.Maintain(ctx, vera, "fwd1", in(1), time.Hour, remap.Answer{Reason: why})), remap.ErrNotAllowed,
				"vera"},
			{errOf(d.Maintain(ctx, olga, "fwd1", in(24*91), time.Hour, remap.Answer{Reason: why})), remap.ErrInvalid,
				"maintenance from"},
			{errOf(d.Maintain(ctx, olga, "fwd1", in(1), 0, remap.Answer{Reason: why})), remap.ErrInvalid,
				"lease of 0s"},
		} {
			wantErr(t, c.err, c.want, c.word)
		}
		from := in(2)
		for f, at := range map[topology.ForwarderID]time.Time{"fwd1": from, "fwd2": in(3)} {
			if _, err := d.Maintain(ctx, olga, f, at, time.Hour, remap.Answer{Reason: why}); err != nil {
				t.Fatal(err)
			}
		}
		f := d.Feed()
		if len(f.Exclusions) != 0 || len(f.Planned) != 2 || f.Planned[0].Forwarder != "fwd1" ||
			f.Planned[0].By != olga.Name {
			t.Fatalf("planned: %+v", f)
		}
		d.Close()
		d = restart(t, k, m, nil)
		defer func() { d.Close() }()
		if err := d.Return(ctx, sam, "fwd2", remap.Answer{Reason: why}); err != nil || len(d.Feed().Planned) != 1 {
			t.Fatalf("called off: %v, %+v", err, d.Feed())
		}
		time.Sleep(2*time.Hour + time.Second)
		f = d.Feed()
		if len(f.Exclusions) != 1 || len(f.Planned) != 0 || !f.Exclusions[0].Maintenance ||
			!f.Exclusions[0].Since.Equal(from) || !f.Exclusions[0].Until.Equal(from.Add(time.Hour)) {
			t.Fatalf("begun: %+v", f)
		}
		if words := d.Excluded()["fwd1"]; !strings.Contains(words, "maintenance by "+olga.Name) {
			t.Errorf("the reason is %q", words)
		}
		d.Close()
		d = restart(t, k, m, nil)
		time.Sleep(time.Hour)
		if f = d.Feed(); len(f.Exclusions)+len(f.Planned) != 0 {
			t.Fatalf("ended: %+v", f)
		}
	})
}

func TestHealthyFloor(t *testing.T) {
	m := newTestMachine(4, 4)
	inDesk(t, m, func(s *Settings) { s.HealthyFloor, s.MaxExcluded = 3, 1 }, func(t *testing.T, d *Desk, _ string) {
		if _, err := d.Exclude(t.Context(), olga, "fwd1", time.Hour, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		_, err := d.Exclude(t.Context(), olga, "fwd2", time.Hour, remap.Answer{Reason: why})
		wantErr(t, err, remap.ErrState, "2 healthy", "floor is 3")
	})
}

// What a forwarder's options permit the desk accepts, and what it refuses they explain in the same words.
func TestForwarderOptionsAreWhatTheDeskAccepts(t *testing.T) {
	m := newTestMachine(8, 8)
	inDesk(t, m, func(s *Settings) { s.HealthyFloor = 6 }, func(t *testing.T, d *Desk, _ string) {
		busy := func(f topology.ForwarderID) string { return map[bool]string{true: "one is under way"}[f == "fwd7"] }
		for _, f := range []topology.ForwarderID{"fwd1", "fwd2", "fwd1", "fwd3", "fwd7"} {
			o := d.ForwarderOptions(sam, m.situation(), busy)(f)
			if got := o.WhyNot[remap.ActCanary]; got != busy(f) {
				t.Errorf("a canary through %s: %q", f, got)
			}
			_, err := d.Exclude(t.Context(), sam, f, time.Hour, remap.Answer{Reason: why})
			if o.Permits(remap.ActExclude) != (err == nil) ||
				err != nil && !strings.HasSuffix(err.Error(), o.WhyNot[remap.ActExclude]) {
				t.Errorf("excluding %s: %v, the options are %+v", f, err, o)
			}
		}
		for _, f := range []topology.ForwarderID{"fwd2", "fwd3"} {
			o := d.ForwarderOptions(sam, m.situation(), busy)(f)
			if err := d.Return(t.Context(), sam, f, remap.Answer{}); o.Permits(remap.ActReturn) != (err == nil) {
				t.Errorf("returning %s: %v, the options are %+v", f, err, o)
			}
		}
	})
}

func errOf(_ remap.Exclusion, err error) error { return err }
