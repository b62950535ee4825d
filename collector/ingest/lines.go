package ingest

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"fairway/collector"
	"fairway/collector/ingest/lineproto"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// Bounds of others' collectors, which bring Influx lines by HTTP; see also Limits.
const (
	maxPosts   = 4 // of one token at a time
	maxLineAge = time.Hour
	readWithin = 30 * time.Second
)

// Busy is a refusal that ends by itself: the sender may come back after Wait.
type Busy struct {
	wire.Reject
	Wait time.Duration
}

// Post takes one body of Influx line protocol (collector/ingest/lineproto) from another collector and
// returns when its samples are durable. Errors that are a wire.Reject or Busy are the sender's; a
// body of which a part was bad is stored but for that part, and the error says so.
func (h *Hub) Post(w http.ResponseWriter, r *http.Request, by Speaker) error {
	p := h.sender(&by)
	select {
	case p.room <- struct{}{}:
		defer func() { <-p.room }()
	default:
		return h.refusePost(&by, r, Busy{wire.Reject{Code: wire.RejectBusy,
			Text: fmt.Sprintf("%d requests of token %q are under way already", maxPosts, by.Name)}, time.Second})
	}
	body, err := readBody(w, r, by.Limits.MessageBytes)
	if err != nil {
		return h.refusePost(&by, r, err)
	}
	precision, err := lineproto.ParsePrecision(r.URL.Query().Get("precision"))
	if err != nil {
		return h.refusePost(&by, r, wire.Reject{Code: wire.RejectMalformed, Text: err.Error()})
	}
	frames, rep, err := lineproto.Parse(body, lineproto.Options{Now: time.Now(), Precision: precision})
	h.stats.bytes.Add(uint64(len(body)))
	h.stats.lines.Add(uint64(rep.Lines))
	h.stats.badLines.Add(uint64(rep.Bad))
	h.stats.unknownFields.Add(uint64(rep.Unknown))
	if err != nil {
		return h.refusePost(&by, r, wire.Reject{Code: wire.RejectLimit, Text: err.Error()})
	}
	h.stats.frames.Add(uint64(len(frames)))
	frames, err = h.checkLines(frames, &by, r.RemoteAddr, time.Now())
	var busy Busy
	if errors.As(err, &busy) {
		return h.refusePost(&by, r, busy)
	}
	if rep.Err != nil {
		err = wire.Reject{Code: wire.RejectMalformed,
			Text: fmt.Sprintf("%d of %d lines cannot be read, the others are kept; %v", rep.Bad, rep.Lines, rep.Err)}
	}
	if stored := h.keep(r, p, frames); stored != nil {
		return stored
	}
	if err != nil {
		return h.refusePost(&by, r, err)
	}
	return nil
}

// keep shows and stores the frames of lines. A node that an agent brings is shown as that says.
func (h *Hub) keep(r *http.Request, p *sender, frames []collector.Frame) error {
	if len(frames) == 0 {
		return nil
	}
	var shown []collector.Frame
	for i := range frames {
		f := &frames[i]
		h.bind(f)
		if f.Role == topology.RoleUnknown && h.cfg.Role != nil {
			f.Role = h.cfg.Role(f.Node)
		}
		if !h.Connected(f.Node) {
			shown = append(shown, *f)
		}
	}
	if h.cfg.Observe != nil && len(shown) > 0 {
		h.cfg.Observe(shown, time.Now())
	}
	if err := h.append(r.Context(), p, frames); err != nil {
		return fmt.Errorf("the lines were not stored; send them again: %w", err)
	}
	return nil
}

func (h *Hub) refusePost(by *Speaker, r *http.Request, err error) error {
	h.stats.rejected.Add(1)
	h.cfg.Log.Warn("lines were refused", "token", by.Name, "remote", r.RemoteAddr, "err", err)
	return err
}

// readBody reads a body of at most limit bytes, also after it was unpacked.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	tooLarge := wire.Reject{Code: wire.RejectLimit, Text: fmt.Sprintf("a body of more than %d bytes; send smaller ones",
		limit)}
	// A sender that trickles its body holds up its own token only, and not for ever.
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	var in io.Reader = http.MaxBytesReader(w, r.Body, limit)
	switch r.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, wire.Reject{Code: wire.RejectMalformed, Text: "the body is not gzip: " + err.Error()}
		}
		in = z
	default:
		return nil, wire.Reject{Code: wire.RejectMalformed, Text: "Content-Encoding is neither gzip nor identity"}
	}
	body, err := io.ReadAll(io.LimitReader(in, limit+1))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over) || int64(len(body)) > limit:
		return nil, tooLarge
	case err != nil:
		return nil, wire.Reject{Code: wire.RejectMalformed, Text: "the body ends early: " + err.Error()}
	}
	return body, nil
}

// checkLines takes out the frames that this token may not bring; the error says why of the first. All of
// them are refused, with Busy, when the token brings them too fast.
func (h *Hub) checkLines(frames []collector.Frame, by *Speaker, remote string, now time.Time) ([]collector.Frame,
	error) {
	p := h.sender(by)
	if wait, ok := p.reserve(len(frames), now, 0); !ok {
		return nil, p.busy(wait)
	}
	had := len(frames)
	var first wire.Reject
	frames = slices.DeleteFunc(frames, func(f collector.Frame) bool {
		code, why := p.refuses(&f, by, now)
		if why == "" {
			code, why = wire.RejectForbidden, h.writes(by, remote, f.Node, now)
		}
		if why != "" && first.Code == 0 {
			first.Code, first.Text = code, why
		}
		return why != ""
	})
	if left := had - len(frames); left > 0 {
		first.Text = fmt.Sprintf("%d of %d nodes x seconds are left out, the others are kept; %s", left, had,
			first.Text)
		if first.Code == wire.RejectLimit || len(frames) > 0 {
			// Telegraf sends a body again for ever that is forbidden, and halves of one that is too large. Neither
			// helps here: as after InfluxDB's partial writes, the lines are to be dropped.
			first.Code = wire.RejectMalformed
		}
		return frames, first
	}
	return frames, nil
}

func (p *sender) refuses(f *collector.Frame, by *Speaker, now time.Time) (code wire.RejectCode, why string) {
	at := time.UnixMilli(f.TimeMillis)
	switch {
	case at.After(now.Add(maxAhead)) || now.Sub(at) > maxLineAge:
		return wire.RejectMalformed,
			fmt.Sprintf(
				"node %s has a line of %s, more than an hour from now; look at its clock and at the "+
					"precision parameter", f.Node, at.UTC().Format(time.RFC3339))
	case len(f.Samples) > p.limits.SamplesPerFrame:
		return wire.RejectLimit, fmt.Sprintf("node %s: %d samples in one second, at most %d", f.Node, len(f.Samples),
			p.limits.SamplesPerFrame)
	}
	if !topology.CleanName(string(f.Node)) {
		return wire.RejectMalformed, fmt.Sprintf("node %q: the name has control characters", f.Node)
	}
	return p.admits(f.Node, by, now)
}
