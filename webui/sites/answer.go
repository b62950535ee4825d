package sites

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap/advise"
	"fairway/webui/api"
)

// Answer is what the daemon of one site reports. Another daemon wrote it, so that what is read of it is bounded: the
// fields below alone, so many rows, so many letters of each text.
type Answer struct {
	Site, Addr string
	Err        error     // why nothing is known of it
	Since      time.Time // since when that is so
	Overview   Overview
	Jobs       List[Job]
	// Uses are those of the targets that Accused lists, nil where the site does not report any; UsesErr says why it
	// could not be asked.
	Uses    List[Use]
	UsesErr error
}

// Overview is what is read of an api.Overview.
type Overview struct {
	At           time.Time      `json:"at"`
	Simulated    bool           `json:"simulated"`
	StaleAfter   float64        `json:"stale_after_seconds"`
	CalmWord     Text           `json:"calm_word"`
	ComputeNodes int            `json:"compute_nodes"`
	Jobs         *int           `json:"jobs"`
	Forwarders   List[struct{}] `json:"forwarders"` // which they are is the site's own page
	Findings     List[Finding]  `json:"findings"`
	Now          *api.LayerNow  `json:"now"`
	Needs        List[Card]     `json:"needs"`
}

// Text is a bounded text.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	err := json.Unmarshal(b, &s)
	*t = Text(clip(s))
	return err
}

// Finding is what is read of an anomaly.Finding.
type Finding struct {
	ID    string          `json:"id"`
	Node  topology.NodeID `json:"node"`
	Kind  anomaly.Kind    `json:"kind"`
	State anomaly.State   `json:"state"`
}

// Open reports whether the finding's node is not well yet.
func (f *Finding) Open() bool { return (&anomaly.Finding{State: f.State}).Open() }

func (f *Finding) bound() {
	f.ID, f.Node, f.Kind, f.State = clip(f.ID), clip(f.Node), clip(f.Kind), clip(f.State)
}

// Card is what is read of an advise.Card.
type Card struct {
	Finding  string          `json:"finding"`
	Plan     string          `json:"plan"`
	Node     topology.NodeID `json:"node"`
	Stage    advise.Stage    `json:"stage"`
	Sentence string          `json:"sentence"`
	Second   string          `json:"second"`
	Since    time.Time       `json:"since"`
	Victims  List[Victim]    `json:"victims"`
}

func (c *Card) bound() {
	c.Finding, c.Plan, c.Node, c.Stage = clip(c.Finding), clip(c.Plan), clip(c.Node), clip(c.Stage)
	c.Sentence, c.Second = clip(c.Sentence), clip(c.Second)
}

func (c *Card) most() int { return mostCards }

// Victim is what is read of an advise.Victim.
type Victim struct {
	Job     topology.JobID `json:"job"`
	Waiting int            `json:"waiting"`
	Share   float64        `json:"share"`
	Text    string         `json:"text"`
}

func (v *Victim) bound() { v.Job, v.Text, v.Share = clip(v.Job), clip(v.Text), min(max(0, v.Share), 1) }

func (v *Victim) most() int { return mostVictims }

// Job is what is read of an api.JobRow.
type Job struct {
	ID   topology.JobID `json:"id"`
	User string         `json:"user"`
	App  string         `json:"app"`
	End  time.Time      `json:"end"`
	Now  *JobNow        `json:"now"`
}

// JobNow is what is read of an api.JobNow.
type JobNow struct {
	MovedBytesPerSec *float64 `json:"moved_bytes_per_sec"`
}

func (j *Job) bound() { j.ID, j.User, j.App = clip(j.ID), clip(j.User), clip(j.App) }

// Use is an api.TargetUse of another daemon.
type Use struct{ api.TargetUse }

func (u *Use) bound() { u.Target, u.Job, u.By = clip(u.Target), clip(u.Job), clip(u.By) }

// List is the first rows of a list; what comes behind them is not made values of.
type List[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *List[T]) UnmarshalJSON(b []byte) error {
	if *l = nil; string(b) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return fmt.Errorf("a list is expected, not %s", clip(string(b[:min(len(b), mostLetters)])))
	}
	*l = List[T]{}
	for most := mostRows; d.More() && len(*l) < most; {
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		if r, ok := any(&v).(interface{ bound() }); ok {
			r.bound()
		}
		if r, ok := any(&v).(interface{ most() int }); ok {
			most = r.most()
		}
		*l = append(*l, v)
	}
	return nil
}

const (
	// mostTargets are asked about and shown, mostLetters of a text that another daemon wrote.
	mostTargets = 16
	mostLetters = 300
	// mostRows of a list are looked at, fewer of the cards of a site and of those who wait for one.
	mostRows    = 4096
	mostCards   = 256
	mostVictims = 3
)

// clip bounds a text of another daemon, and takes out what is not seen or goes on in another line.
func clip[T ~string](text T) T {
	text = text[:min(len(text), 8*mostLetters)] // more bytes than so many letters have
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return '?'
		}
		return r
	}, string(text))
	if r := []rune(clean); len(r) > mostLetters {
		return T(r[:mostLetters-1]) + "…"
	}
	return T(clean)
}
