package desk

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// Findings is what a review needs of the loop that makes findings.
type Findings interface {
	// Findings returns the findings with the detectors' newest words.
	Findings() []anomaly.Finding
	// Freeze reads the evidence about a node; it returns what could be read in time.
	Freeze(ctx context.Context, now time.Time, node topology.NodeID) *anomaly.Frozen
	// Adopt takes a finding as a person left it.
	Adopt(f anomaly.Finding)
}

// Review is where persons judge findings. Every change is in the journal before anybody sees it.
type Review struct {
	desk *Desk
	loop Findings
}

// NewReview lets persons judge the loop's findings.
func NewReview(d *Desk, loop Findings) *Review { return &Review{desk: d, loop: loop} }

// Acknowledge records that a person takes a finding on. Errors are those of Dismiss.
func (r *Review) Acknowledge(ctx context.Context, by remap.Person, id string, a remap.Answer) (anomaly.Finding, error) {
	return r.judge(ctx, by, remap.ActAcknowledge, id, a, "ack "+id,
		func(f anomaly.Finding, now time.Time) anomaly.Change {
			return anomaly.Acknowledge(f, now, by.Name, by.Name, because("acknowledged", a.Reason))
		})
}

// Release gives a finding back to whoever looked after it before. Errors are those of Dismiss.
func (r *Review) Release(ctx context.Context, by remap.Person, id, owner string, a remap.Answer) (anomaly.Finding,
	error) {
	return r.judge(ctx, by, remap.ActAcknowledge, id, a, "release "+id+" to "+owner,
		func(f anomaly.Finding, now time.Time) anomaly.Change {
			return anomaly.Acknowledge(f, now, by.Name, owner, because("no more acknowledged by "+by.Name, a.Reason))
		})
}

// Note keeps what a person writes about a finding, also of one that has ended, and about which moment (zero: now).
// Errors: ErrNotFound, ErrNotAllowed, ErrInvalid (text), ErrConflict.
func (r *Review) Note(ctx context.Context, by remap.Person, id string, about time.Time,
	a remap.Answer) (anomaly.Finding, error) {
	now := time.Now()
	if strings.TrimSpace(a.Reason) == "" || about.After(now.Add(time.Minute)) {
		return anomaly.Finding{}, fmt.Errorf("%w: note %q of %s: want text, and a moment that was",
			remap.ErrInvalid, a.Reason, about.Format(time.RFC3339))
	}
	newest := r.newest(id)
	f, err := r.desk.judgeFinding(ctx, by, remap.ActNote, id, a, fmt.Sprintf("note %s %d", id, about.Unix()),
		func(f anomaly.Finding) anomaly.Change {
			return anomaly.Note(refresh(f, newest), now, by.Name, a.Reason, about)
		})
	if err == nil {
		r.loop.Adopt(f)
	}
	return f, err
}

// Dismiss ends a finding that a person calls wrong; an exclusion by policy ends with it. Errors:
// ErrNotFound (also of a finding that has ended), ErrNotAllowed, ErrInvalid (reason), ErrConflict.
func (r *Review) Dismiss(ctx context.Context, by remap.Person, id string, a remap.Answer) (anomaly.Finding, error) {
	return r.judge(ctx, by, remap.ActDismiss, id, a, "dismiss "+id,
		func(f anomaly.Finding, now time.Time) anomaly.Change {
			return anomaly.Dismiss(f, now, by.Name, a.Reason)
		})
}

// MaxSilence bounds a silence: somebody looks at the finding once in a while.
const MaxSilence = 7 * 24 * time.Hour

// Silence keeps a finding from alerting for so long; 0 ends a silence. Errors are those of
// Dismiss, and ErrInvalid for another time than 1m to MaxSilence.
func (r *Review) Silence(ctx context.Context, by remap.Person, id string, long time.Duration,
	a remap.Answer) (anomaly.Finding, error) {
	if long != 0 && (long < time.Minute || long > MaxSilence) {
		return anomaly.Finding{}, fmt.Errorf("%w: a silence of %s: want 1m to %gh, or 0 to end one", remap.ErrInvalid,
			long, MaxSilence.Hours())
	}
	words := "silenced for " + inWords(long)
	if long == 0 {
		words = "its silence was ended"
	}
	return r.judge(ctx, by, remap.ActSilence, id, a, fmt.Sprintf("silence %s %s", id, long),
		func(f anomaly.Finding, now time.Time) anomaly.Change {
			return anomaly.Silence(f, now, by.Name, because(words, a.Reason), now.Add(long))
		})
}

// because adds a reason, where one was given.
func because(words, reason string) string {
	if reason == "" {
		return words
	}
	return words + ": " + reason
}

// inWords writes a duration without parts that are zero: 4h, 30m, 1h30m.
func inWords(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (r *Review) judge(ctx context.Context, by remap.Person, verb remap.Action, id string, a remap.Answer, body string,
	act func(f anomaly.Finding, now time.Time) anomaly.Change) (anomaly.Finding, error) {
	now := time.Now()
	// The evidence is read before the desk is asked: the desk waits for no store.
	newest := r.newest(id)
	var frozen *anomaly.Frozen
	if newest.ID != "" {
		frozen = r.loop.Freeze(ctx, now, newest.Node)
	}
	f, err := r.desk.judgeFinding(ctx, by, verb, id, a, body, func(f anomaly.Finding) anomaly.Change {
		c := act(refresh(f, newest), now)
		c.Frozen = frozen
		return c
	})
	if err == nil {
		r.loop.Adopt(f)
	}
	return f, err
}

// newest is an open finding as the detectors speak of it now; empty where it is not open.
func (r *Review) newest(id string) anomaly.Finding {
	for _, f := range r.loop.Findings() {
		if f.ID == id && f.Open() {
			return f
		}
	}
	return anomaly.Finding{}
}

// refresh gives a finding the detectors' newest words, where its state is the same, and keeps what persons did to it.
func refresh(f, newest anomaly.Finding) anomaly.Finding {
	if newest.State != f.State || !newest.Changed.Equal(f.Changed) {
		return f
	}
	newest.Owner, newest.Silenced, newest.Notes, newest.Note = f.Owner, f.Silenced, f.Notes, f.Note
	return newest
}
