package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Address names a screen: what `y` copies, `fairway open` opens and the browser's bar shows.
type Address struct {
	Page   string // overview, forwarders, plans, ...
	ID     string // of the object; "" for a list
	Metric string // overview: occ, bw, queue, mdwait, err
	View   string // overview: "" is the grid, "table"
	Sort   string // column name, "-" before it for ascending
	Filter string
}

var pagesWithID = []string{"forwarders", "plans", "jobs", "findings"}
var pagesAlone = []string{"overview", "plans", "jobs", "audit", "findings"}

// ParseAddress reads an address, with or without scheme and host.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return Address{}, fmt.Errorf("address %q: %w: %v", text, ErrInvalid, err)
	}
	page, id, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if page == "" {
		page = "overview"
	}
	known := slices.Contains(pagesAlone, page) && id == "" || slices.Contains(pagesWithID, page) && id != ""
	if !known || strings.Contains(id, "/") {
		return Address{}, fmt.Errorf("address %q: %w: no such screen; try /overview, /jobs, /plans, /audit or /forwarders/NAME", text, ErrInvalid)
	}
	q := u.Query()
	return Address{Page: page, ID: id, Metric: q.Get("metric"), View: q.Get("view"), Sort: q.Get("sort"), Filter: q.Get("filter")}, nil
}

// String is the address as path and query; ParseAddress reads it back.
func (a Address) String() string {
	path := "/" + a.Page
	if a.ID != "" {
		path += "/" + url.PathEscape(a.ID)
	}
	q := url.Values{}
	for _, p := range [][2]string{{"metric", a.Metric}, {"view", a.View}, {"sort", a.Sort}, {"filter", a.Filter}} {
		if p[1] != "" {
			q.Set(p[0], p[1])
		}
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path
}
