package client

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
