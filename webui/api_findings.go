package webui

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/journal"
	"fairway/webui/api"
)

func (s *Server) getFindings(w http.ResponseWriter, r *http.Request, _ who) error {
	all := slices.Clone(s.cfg.Picture.Snapshot().Overview.Findings)
	switch state := r.URL.Query().Get("state"); state {
	case "":
	case "open":
		all = slices.DeleteFunc(all, func(f anomaly.Finding) bool { return !f.Open() })
	default:
		return fmt.Errorf("%w: state %q; there is open", api.ErrInvalid, state)
	}
	if all == nil {
		all = []anomaly.Finding{}
	}
	return writeJSON(w, all)
}

// getFinding answers one finding with its whole life, from the journal.
func (s *Server) getFinding(w http.ResponseWriter, r *http.Request, _ who) error {
	v, err := s.finding(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, v)
}

func (s *Server) finding(ctx context.Context, id string) (v api.FindingView, err error) {
	if s.cfg.Audit == nil {
		return v, fmt.Errorf("%w: this daemon keeps no findings", api.ErrUnreachable)
	}
	err = s.audit(ctx, journal.Wanted{Subject: id}, func(rec *journal.Record) bool {
		if rec.Finding != nil {
			v.Changes = append(v.Changes, *rec.Finding)
		}
		return true
	})
	slices.Reverse(v.Changes)
	if n := len(v.Changes); n > 0 {
		v.Finding = v.Changes[n-1].Finding
	}
	if err == nil && len(v.Changes) == 0 {
		err = fmt.Errorf("finding %q: %w", id, api.ErrNotFound)
	}
	// Between two changes its words and numbers follow the detector.
	for _, f := range s.cfg.Picture.Snapshot().Overview.Findings {
		if f.ID == id && !f.Changed.Before(v.Changed) {
			v.Finding = f
		}
	}
	return v, err
}

// lifeOf is what is known of a forwarder's findings; of the past only those that had ended by then.
func (s *Server) lifeOf(ctx context.Context, id topology.ForwarderID, at time.Time) (*api.ForwarderLife, error) {
	if s.cfg.Desk == nil || s.cfg.Review == nil {
		return nil, nil
	}
	all, err := s.cfg.Desk.FindingsOf(ctx, id.Node())
	if err != nil {
		return nil, fromDesk(err)
	}
	life := &api.ForwarderLife{Steps: []anomaly.Step{}}
	for i := range all {
		f := &all[i]
		switch {
		// what it was then is its finding's, among those of that second
		case !at.IsZero() && (f.Open() || f.Changed.After(at)):
		case f.Open() && (len(life.Steps) == 0 || f.Kind.Accuses()):
			if life.Steps = f.Steps; len(f.Steps) == 0 { // of a daemon that did not keep them
				life.Steps = []anomaly.Step{{State: f.State, At: f.Changed}}
			}
			life.Next, life.NextFrom = s.cfg.Findings.Next(f)
		case !f.Open():
			life.Earlier++
			if life.Last == nil || f.Since.After(life.Last.Since) {
				life.Last = f
			}
		}
	}
	return life, nil
}

func (s *Server) review() (*desk.Review, error) {
	if s.cfg.Review == nil {
		return nil, fmt.Errorf("%w: this daemon keeps no findings", api.ErrUnreachable)
	}
	return s.cfg.Review, nil
}

func (s *Server) postAcknowledge(w http.ResponseWriter, r *http.Request, by who) error {
	review, err := s.review()
	if err != nil {
		return err
	}
	return s.sayFinding(w, r, func(id string, a remap.Answer) (anomaly.Finding, error) {
		return review.Acknowledge(r.Context(), by.Person, id, a)
	})
}

func (s *Server) postDismiss(w http.ResponseWriter, r *http.Request, by who) error {
	review, err := s.review()
	if err != nil {
		return err
	}
	return s.sayFinding(w, r, func(id string, a remap.Answer) (anomaly.Finding, error) {
		return review.Dismiss(r.Context(), by.Person, id, a)
	})
}

func (s *Server) postSilence(w http.ResponseWriter, r *http.Request, by who) error {
	review, err := s.review()
	if err != nil {
		return err
	}
	var in api.Silence
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	long, err := time.ParseDuration(in.For)
	if err != nil {
		return fmt.Errorf("%w: for %q; want how long, such as 4h, or 0s to end a silence", api.ErrInvalid, in.For)
	}
	f, err := review.Silence(r.Context(), by.Person, r.PathValue("id"), long,
		remap.Answer{Key: r.Header.Get("Idempotency-Key"), Reason: in.Reason})
	if err != nil {
		return fromDesk(err)
	}
	return writeJSON(w, f)
}

func (s *Server) sayFinding(w http.ResponseWriter, r *http.Request,
	say func(id string, a remap.Answer) (anomaly.Finding, error)) error {
	var in api.Decision
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	f, err := say(r.PathValue("id"), remap.Answer{Key: r.Header.Get("Idempotency-Key"), Reason: in.Reason})
	if err != nil {
		return fromDesk(err)
	}
	return writeJSON(w, f)
}

// postCanary sends one canary through a forwarder and answers what it found.
func (s *Server) postCanary(w http.ResponseWriter, r *http.Request, by who) error {
	if s.cfg.Canaries == nil {
		return fmt.Errorf("%w: this daemon knows no way to send canaries; set probe.export or probe.mounts in its file",
			api.ErrConflict)
	}
	var in api.Decision
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	c, err := s.cfg.Canaries.Ask(r.Context(), by.Person, topology.ForwarderID(r.PathValue("id")),
		remap.Answer{Key: r.Header.Get("Idempotency-Key"), Reason: in.Reason})
	if err != nil {
		return fromDesk(err)
	}
	return writeJSON(w, c)
}

// getExclusions answers the feed. ?generation=N waits until the list is another one than that, at
// most half a lease. If-None-Match is answered 304 with the new lease in the header.
func (s *Server) getExclusions(w http.ResponseWriter, r *http.Request, _ who) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	f := desk.Feed()
	if text := r.URL.Query().Get("generation"); text != "" {
		known, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: generation=%q; want the number of a list that you have", api.ErrInvalid, text)
		}
		if f, err = desk.AwaitFeed(r.Context(), known); err != nil {
			return fromDesk(err)
		}
	}
	tag := fmt.Sprintf(`"%d"`, f.Generation)
	w.Header().Set("ETag", tag)
	w.Header().Set("Fairway-Valid-Until", f.ValidUntil.Format(time.RFC3339))
	if r.Header.Get("If-None-Match") == tag {
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return writeJSON(w, f)
}

func (s *Server) putExclusion(w http.ResponseWriter, r *http.Request, by who) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	var in api.Exclude
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	ttl, err := time.ParseDuration(in.TTL)
	if err != nil {
		return fmt.Errorf("%w: ttl %q; want how long, such as 4h", api.ErrInvalid, in.TTL)
	}
	a := remap.Answer{Key: r.Header.Get("Idempotency-Key"), Reason: in.Reason}
	e, err := desk.Exclude(r.Context(), by.Person, topology.ForwarderID(r.PathValue("node")), ttl, a)
	if err != nil {
		return fromDesk(err)
	}
	return writeJSON(w, e)
}

func (s *Server) deleteExclusion(w http.ResponseWriter, r *http.Request, by who) error {
	desk, err := s.desk()
	if err != nil {
		return err
	}
	a := remap.Answer{Key: r.Header.Get("Idempotency-Key"), Reason: r.URL.Query().Get("reason")}
	if err := desk.Return(r.Context(), by.Person, topology.ForwarderID(r.PathValue("node")), a); err != nil {
		return fromDesk(err)
	}
	return writeJSON(w, desk.Feed())
}
