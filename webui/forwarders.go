package webui

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"fairway/anomaly"
	"fairway/collector/ingest"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/desk"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// forwarders answers one forwarder's page.
type forwarders struct {
	picture  *live.Picture
	ingest   *ingest.Hub
	desk     *desk.Desk
	rules    anomaly.Settings // of a finding's life
	canaries *desk.Canaries   // nil: no way to send any
}

func (h *forwarders) get(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	mine := asking(by, h.picture)
	if err := mine.onlyNow(r); err != nil {
		return err
	}
	at, err := past(r)
	if err != nil {
		return err
	}
	id := topology.ForwarderID(r.PathValue("id"))
	var d api.ForwarderDetail
	if at.IsZero() {
		d, err = h.picture.Forwarder(r.Context(), id, r.URL.Query().Get("series") != "0")
	} else {
		d, err = h.picture.ForwarderAt(r.Context(), id, at)
	}
	if err != nil {
		return err
	}
	if d.Life, err = h.life(r.Context(), id, at); err != nil {
		return err
	}
	if at.IsZero() {
		for i := range d.ClientNodes {
			d.ClientNodes[i].Way = wayOf(h.ingest, d.ClientNodes[i].ID)
		}
		o := h.desk.ForwarderOptions(by.Person, h.picture.Snapshot().Situation, h.noCanary)(id)
		d.Options = &o
		d.Targets = advise.Targets(h.picture.Snapshot().Situation, id, h.desk.Promised())
	}
	if d, err = mine.forwarder(d); err != nil {
		return err
	}
	return api.WriteJSON(w, d)
}

// noCanary says why no canary can be sent through a forwarder; empty: one can, within the sender's limits.
func (h *forwarders) noCanary(topology.ForwarderID) string {
	if h.canaries == nil {
		return "this daemon knows no way to send canaries; set probe.export or probe.mounts in its file"
	}
	return ""
}

// life is what is known of a forwarder's findings; of the past only those that had ended by then.
func (h *forwarders) life(ctx context.Context, id topology.ForwarderID, at time.Time) (*api.ForwarderLife, error) {
	all, err := h.desk.FindingsOf(ctx, id.Node())
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
			life.Next, life.NextFrom = h.rules.Next(f)
		case !f.Open():
			life.Earlier++
			if life.Last == nil || f.Since.After(life.Last.Since) {
				life.Last, life.LastWords = f, remap.FindingWords(f)
			}
		}
	}
	return life, nil
}

// canary sends one canary through a forwarder and answers what it found.
func (h *forwarders) canary(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	if why := h.noCanary(""); why != "" {
		return fmt.Errorf("%w: %s", api.ErrConflict, why)
	}
	var in api.Decision
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	c, err := h.canaries.Ask(r.Context(), by.Person, topology.ForwarderID(r.PathValue("id")), answerOf(r, in.Reason))
	if err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, c)
}
