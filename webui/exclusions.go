package webui

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
)

// exclusions answers the feed of forwarders that the batch system keeps out of allocation.
type exclusions struct {
	desk interface {
		Feed() remap.Feed
		AwaitFeed(ctx context.Context, known uint64) (remap.Feed, error)
		Exclude(ctx context.Context, by remap.Person, f topology.ForwarderID, ttl time.Duration,
			a remap.Answer) (remap.Exclusion, error)
		Maintain(ctx context.Context, by remap.Person, f topology.ForwarderID, from time.Time, ttl time.Duration,
			a remap.Answer) (remap.Exclusion, error)
		Return(ctx context.Context, by remap.Person, f topology.ForwarderID, a remap.Answer) error
	}
}

// get answers the feed. ?generation=N waits until the list is another one than that, at
// most half a lease. If-None-Match is answered 304 with the new lease in the header.
func (h *exclusions) get(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	f := h.desk.Feed()
	if text := r.URL.Query().Get("generation"); text != "" {
		known, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: generation=%q; want the number of a list that you have", api.ErrInvalid, text)
		}
		if f, err = h.desk.AwaitFeed(r.Context(), known); err != nil {
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
	return api.WriteJSON(w, f)
}

func (h *exclusions) put(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	var in api.Exclude
	if err := api.ReadJSON(w, r, &in); err != nil {
		return err
	}
	ttl, err := time.ParseDuration(in.TTL)
	if err != nil {
		return fmt.Errorf("%w: ttl %q; want how long, such as 4h", api.ErrInvalid, in.TTL)
	}
	a := answerOf(r, in.Reason)
	f := topology.ForwarderID(r.PathValue("node"))
	var e remap.Exclusion
	switch {
	case in.Maintenance:
		e, err = h.desk.Maintain(r.Context(), by.Person, f, in.From, ttl, a)
	case !in.From.IsZero():
		err = fmt.Errorf("%w: from: only maintenance is planned ahead", api.ErrInvalid)
	default:
		e, err = h.desk.Exclude(r.Context(), by.Person, f, ttl, a)
	}
	if err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, e)
}

func (h *exclusions) remove(w http.ResponseWriter, r *http.Request, by access.Caller) error {
	a := answerOf(r, r.URL.Query().Get("reason"))
	if err := h.desk.Return(r.Context(), by.Person, topology.ForwarderID(r.PathValue("node")), a); err != nil {
		return fromDesk(err)
	}
	return api.WriteJSON(w, h.desk.Feed())
}
