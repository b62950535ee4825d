package client

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"fairway/remap/dispatch"
	"fairway/webui/api"
)

// TestTheNextAddressIsAsked where one does not answer or has no leader, with the same body and key.
func TestTheNextAddressIsAsked(t *testing.T) {
	var asked []string
	server := func(name string, status int) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			asked = append(asked, fmt.Sprintf("%s %s %s %s", name, r.URL.Path, r.Header.Get("Idempotency-Key"), b))
			if status != http.StatusOK {
				api.WriteProblem(w, r, api.ErrUnreachable)
				return
			}
			_, _ = io.WriteString(w, `{"job":"1"}`)
		}))
		t.Cleanup(s.Close)
		return s
	}
	gone := server("gone", http.StatusOK)
	gone.Close()
	alone, leads := server("alone", http.StatusServiceUnavailable), server("leads", http.StatusOK)
	c, err := New(strings.Join([]string{gone.URL, alone.URL + "/below", leads.URL}, ", "), "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		a, err := c.Dispatch(t.Context(), dispatch.Request{Job: "1"})
		if err != nil || a.Job != "1" {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if len(asked) != 3 { // the one that answered is asked first the second time
		t.Fatalf("asked %q", asked)
	}
	first, second := strings.Fields(asked[0]), strings.Fields(asked[1])
	if first[1] != "/below/api/v1/dispatch" || second[0] != "leads" || second[1] != "/api/v1/dispatch" ||
		strings.Join(first[2:], " ") != strings.Join(second[2:], " ") || len(second) < 4 {
		t.Errorf("asked %q", asked)
	}
}

// TestNoPathLeadsToAnotherHost: an answer that sends a caller on may name no other host by two slashes.
func TestNoPathLeadsToAnotherHost(t *testing.T) {
	for _, base := range []string{"https://a.example", "https://a.example/fairway"} {
		first, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		p := &place{base: *first}
		for _, path := range []string{"//evil.example/x", "///evil.example/x", "/%2f/evil.example", "/..//evil.example",
			"/api/v1/jobs/a%2Fb"} {
			u := *first
			u.RawPath = first.EscapedPath() + path
			u.Path, _ = url.PathUnescape(u.RawPath)
			if at := p.move(&u, first); at.Host != "a.example" || at.Scheme != "https" {
				t.Errorf("%s%s leads to %s", base, path, at)
			}
		}
	}
}
