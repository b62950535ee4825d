package screen

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"fairway/collector/topology"
	"fairway/webui/api"
)

// Address names a screen: what `y` copies, `fairway open` opens and the browser's bar shows.
type Address struct {
	Page   string // overview, forwarders, plans, ...
	ID     string // of the object; "" for a list
	Part   string // of the object's pages: "", or partWhy or partDomains of a job
	Metric string // overview: occ, bw, queue, mdwait, err
	View   string // overview: "" is the grid, "table"
	Sort   string // column name, "-" before it for ascending
	Filter string
	Sel    string // overview: the forwarder under the cursor
	At     string // a second of the past, RFC 3339 or -15m before now; "" is live
	Speed  string // of the replay that begins there, seconds a second: 1, 2, 5, 10, 30 or 60; "" stands still
	Span   string // occupancy: hour, day or month
	Logs
	WhatIf
	AuditFilter
	// File domains of a job: which file, and what is given.
	Domains api.DomainsQuery
}

// Logs says which I/O logs are listed: reads or writes, and whether also of jobs that are not slow.
type Logs struct {
	Op  string
	All bool
}

// WhatIf is what is asked: shares under a policy, on a forwarder, or the set of a pattern.
type WhatIf struct{ Policy, Forwarder, Set string }

// AuditFilter is who did it, to what, and when; From and To are RFC 3339, or -2h before now.
type AuditFilter struct{ Actor, Subject, From, To string }

// The pages of a job beside its own: its explanation, the ended runs like it, and the
// domains of its shared files.
const (
	PartWhy     = "why"
	PartRuns    = "runs"
	PartDomains = "domains"
)

// pageHistory is another name for the overview of a minute ago.
const pageHistory = "history"

var pagesWithID = []string{"forwarders", "plans", "jobs", "findings"}
var pagesAlone = []string{"overview", "plans", "jobs", "audit", "findings", "logs", "whatif", "occupancy"}

// query are the texts that an address carries after its path.
func (a *Address) query() []struct {
	name string
	text *string
} {
	return []struct {
		name string
		text *string
	}{{"metric", &a.Metric}, {"view", &a.View}, {"sort", &a.Sort}, {"filter", &a.Filter}, {"sel", &a.Sel},
		{"at", &a.At}, {"speed", &a.Speed}, {"op", &a.Op}, {"policy", &a.Policy}, {"forwarder", &a.Forwarder},
		{"set", &a.Set},
		{"actor", &a.Actor}, {"subject", &a.Subject}, {"from", &a.From}, {"to", &a.To}, {"span", &a.Span}}
}

// ParseAddress reads an address, with or without scheme and host.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return Address{}, fmt.Errorf("address %q: %w: %v", text, api.ErrInvalid, err)
	}
	var a Address
	page, id, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if a.Page = page; page == "" || page == pageHistory {
		a.Page = "overview"
	}
	if job, part, ok := strings.Cut(id, "/"); ok && a.Page == "jobs" &&
		(part == PartWhy || part == PartRuns || part == PartDomains) {
		id, a.Part = job, part
	}
	a.ID = id
	known := slices.Contains(pagesAlone, a.Page) && id == "" || slices.Contains(pagesWithID, a.Page) && id != ""
	if !known || strings.Contains(id, "/") {
		return Address{},
			fmt.Errorf(
				"address %q: %w: no such screen; try /overview, /jobs, /plans, /audit, /logs, /occupancy, /whatif, "+
					"/history or /forwarders/NAME", text, api.ErrInvalid)
	}
	q := u.Query()
	for _, p := range a.query() {
		*p.text = q.Get(p.name)
	}
	a.All = q.Get("all") == "1"
	if a.Part == PartDomains {
		if a.Domains, err = api.ParseDomainsQuery(q); err != nil {
			return Address{}, fmt.Errorf("address %q: %w", text, err)
		}
	}
	if a.At == "live" {
		a.At = ""
	}
	if page == pageHistory && a.At == "" {
		a.At = "-" + ReplayBack.String()
	}
	for _, p := range []struct{ name, text string }{{"at", a.At}, {"from", a.From}, {"to", a.To}} {
		if _, ok := api.ParseTime(p.text, time.Time{}); p.text != "" && !ok {
			return Address{},
				fmt.Errorf(
					"address %q: %w: %s=%s is neither a time such as 2026-11-21T11:42:00Z nor an age such as -2h", text,
					api.ErrInvalid, p.name, p.text)
		}
	}
	return a, nil
}

// String is the address as path and query; ParseAddress reads it back.
func (a Address) String() string {
	path := "/" + a.Page
	if a.ID != "" {
		path += "/" + url.PathEscape(a.ID)
	}
	if a.Part != "" {
		path += "/" + a.Part
	}
	q := url.Values{}
	for _, p := range a.query() {
		if *p.text != "" {
			q.Set(p.name, *p.text)
		}
	}
	if a.All {
		q.Set("all", "1")
	}
	maps.Copy(q, a.Domains.Values())
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path
}

// AtForwarder is the address of a forwarder's screen.
func AtForwarder(id topology.ForwarderID) Address { return Address{Page: "forwarders", ID: string(id)} }

// AtFinding is the address of a finding's screen.
func AtFinding(id string) Address { return Address{Page: "findings", ID: id} }

// AtPlan is the address of a plan's screen.
func AtPlan(id string) Address { return Address{Page: "plans", ID: id} }

// AtDecision is the address of a plan's screen that asks at once whether to approve it.
func AtDecision(id string) Address { return Address{Page: "plans", ID: id, View: "approve"} }

// AtJob is the address of a job's screen, or of a part of it.
func AtJob(id topology.JobID, part string) Address {
	return Address{Page: "jobs", ID: string(id), Part: part}
}

// ReplayBack is how long ago a replay begins.
const ReplayBack = time.Minute
