package webui

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"fairway/remap/alert"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

// health answers whether the daemon is well.
type health struct {
	picture *live.Picture
	driver  live.Observer // nil: remaps cannot be applied
	ingest  interface {
		StoreErr() error
		Stalled() time.Duration
	}
	desk    interface{ Unrecorded() error }
	alerts  alerts
	further []func(context.Context) api.Check
}

func alive(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

func (h *health) ready(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	snap := h.picture.Snapshot()
	age := time.Since(snap.Made)
	if age > 5*time.Second {
		return fmt.Errorf("%w: no picture has been made for %s", api.ErrUnreachable, age.Round(time.Second))
	}
	if bad := h.unkept(); len(bad) > 0 {
		return fmt.Errorf("%w: %s", api.ErrUnreachable, strings.Join(bad, "; "))
	}
	return api.WriteJSON(w, api.Readiness{Ready: true, Picture: snap.Made.UTC(), Newest: snap.Overview.At,
		Forwarders: len(snap.Overview.Forwarders)})
}

func (h *health) checks(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	all := append(h.picture.Checks(r.Context(), h.driver), h.disks(), h.called())
	for _, check := range h.further {
		all = append(all, check(r.Context()))
	}
	return api.WriteJSON(w, all)
}

// called says whether somebody is called when something needs a person.
func (h *health) called() api.Check {
	c := api.Check{Name: "alerts", Level: api.CheckOK}
	var receivers []alert.Status
	if h.alerts.sender != nil {
		receivers, _ = h.alerts.sender.Status()
	}
	if len(receivers) == 0 {
		c.Level, c.Text = api.CheckWarned, "nobody is called when a forwarder is slow: findings wait on a screen"
		c.Fix = "add [[alert.receiver]] to the daemon's settings (docs/alerts.md)"
		return c
	}
	var names, bad []string
	for _, r := range receivers {
		names = append(names, r.Receiver)
		if r.Error != "" {
			bad = append(bad, fmt.Sprintf("%s does not take alerts (%d wait): %s", r.Receiver, r.Waiting, r.Error))
		}
	}
	c.Text = "alerts go to " + strings.Join(names, ", ")
	if len(bad) > 0 {
		c.Level, c.Text = api.CheckFailed, strings.Join(bad, "; ")
		c.Fix = "mend the receiver or its settings; 'fairway alerts test' tries them all"
	}
	return c
}

// disks says whether what comes in and what is decided can be written down.
func (h *health) disks() api.Check {
	c := api.Check{Name: "disks", Level: api.CheckOK,
		Text: "the store keeps the frames, the journal takes records"}
	bad := h.unkept()
	if len(bad) > 0 {
		c.Level, c.Text = api.CheckFailed, strings.Join(bad, "; ")
		c.Fix = "free the disk of state_dir (df, fairwayd fsck); the log says when it goes on"
	}
	return c
}

// stalledAfter is how long messages may wait for the store, one of which is answered twice a second.
const stalledAfter = 10 * time.Second

// unkept is what cannot be written down now; nothing where all is well.
func (h *health) unkept() (bad []string) {
	if err := h.ingest.StoreErr(); err != nil {
		bad = append(bad, fmt.Sprintf("the store does not keep the frames, the agents hold them back: %v", err))
	}
	if age := h.ingest.Stalled(); age > stalledAfter {
		bad = append(bad, fmt.Sprintf("the store has made no frames durable for %s, and some wait",
			age.Round(time.Second)))
	}
	if err := h.desk.Unrecorded(); err != nil {
		bad = append(bad, fmt.Sprintf("nothing can be decided or moved: %v", err))
	}
	return bad
}

func profile(w http.ResponseWriter, r *http.Request, _ access.Caller) error {
	switch name := r.PathValue("profile"); name {
	case "profile":
		pprof.Profile(w, r)
	case "trace":
		pprof.Trace(w, r)
	case "cmdline":
		pprof.Cmdline(w, r)
	default:
		pprof.Handler(name).ServeHTTP(w, r)
	}
	return nil
}
