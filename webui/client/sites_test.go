package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/webui/api"
	"fairway/webui/sites"
)

// TestEachSiteCostsItselfOnly: what one answers, however wrong, is in its own row, and mended it is as any other.
func TestEachSiteCostsItselfOnly(t *testing.T) {
	at := time.Now().UTC().Format(time.RFC3339)
	good := `{"at":"` + at + `","calm_word":"all well"}`
	answers := map[string]string{"good": good, "old": `{"at":"` + at + `"}`, "other": `{"at":[]}`, "proxy": `<html>`,
		"huge": strings.Repeat(" ", mostAnswer) + good, "locked": good}
	token := filepath.Join(t.TempDir(), "token")
	var places []Place
	names := []string{"good", "old", "other", "proxy", "huge", "locked", "no token", "clear"}
	for _, name := range names {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name == "locked" && r.Header.Get("Authorization") != "Bearer right" {
				api.WriteProblem(w, r, fmt.Errorf("%w: this token is not known", api.ErrNotAllowed))
				return
			}
			_, _ = io.WriteString(w, answers[name])
		}))
		t.Cleanup(s.Close)
		p := Place{Name: name, Addr: s.URL}
		switch name {
		case "locked":
			p.TokenFile = token
		case "no token":
			p.TokenFile = token + "no"
		case "clear":
			p.Addr, p.TokenFile = "http://far.example:1", token
		}
		places = append(places, p)
	}
	write := func(text string) {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong")
	s := NewSites(places)
	since := s.Answers()[5].Since
	ask := func(want ...string) {
		t.Helper()
		for i := range places {
			s.ask(t.Context(), i, nil)
		}
		for i, r := range sites.Merge(s.Answers(), time.Now()).Sites {
			if got := r.State + " " + r.Why; !strings.HasPrefix(got, want[i]) {
				t.Errorf("%s: %.150s, want %s", r.Site, got, want[i])
			}
			if (r.Why == "") != r.Since.IsZero() {
				t.Errorf("%s: since %v", r.Site, r.Since)
			}
		}
	}
	want := []string{"all well ", "not known ", "not known GET api/v1/overview: the answer is not what this version",
		"not known GET api/v1/overview: the answer is not what",
		"not known GET api/v1/overview: the answer is larger than",
		"not known not allowed: this token is not known", "not known token file: open ", "not known address "}
	ask(want...)
	if got := s.Answers()[5].Since; !got.Equal(since) {
		t.Errorf("refused since %v, asked since %v", got, since)
	}
	write("right")
	answers["huge"], answers["proxy"] = good, good
	want[3], want[4], want[5] = "all well ", "all well ", "all well "
	ask(want...)
	answers["good"] = ""
	want[0] = "not known "
	ask(want...)
	if got := s.Answers()[0].Since; !got.After(since) {
		t.Errorf("it was well until now, and is unknown since %v", got)
	}
	if used := s.share.used.Load(); used != 0 {
		t.Errorf("%d bytes are not given back", used)
	}
}

// TestAllAnswersShareABudget: what does not fit is refused, and what was read of it is given back.
func TestAllAnswersShareABudget(t *testing.T) {
	var all share
	read := func(n int64) (*taken, error) {
		a := &taken{from: io.LimitReader(zeros{}, n), share: &all}
		_, err := io.Copy(io.Discard, a)
		return a, err
	}
	first, err := read(mostAnswers - 10)
	if err != nil {
		t.Fatal(err)
	}
	second, err := read(11)
	if !errors.Is(err, errShare) {
		t.Errorf("too much: %v", err)
	}
	first.giveBack()
	second.giveBack()
	if _, err := read(11); err != nil || all.used.Load() != 11 {
		t.Errorf("afterwards: %v, %d bytes used", err, all.used.Load())
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestUsesComeWithNames: targets are asked about with the jobs' names, and a site that may not say who uses them is
// still one that answers.
func TestUsesComeWithNames(t *testing.T) {
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked += r.URL.RequestURI() + " "
		switch r.URL.Path {
		case "/api/v1/overview":
			_, _ = io.WriteString(w, `{"at":"2026-01-02T03:04:05Z"}`)
		case "/api/v1/jobs":
			_, _ = io.WriteString(w, `[{"id":"7","user":"olga"}]`)
		default:
			api.WriteProblem(w, r, fmt.Errorf("%w: for viewers", api.ErrNotAllowed))
		}
	}))
	t.Cleanup(s.Close)
	all := NewSites([]Place{{Name: "a", Addr: s.URL}})
	all.ask(t.Context(), 0, []topology.NodeID{"OST1", "OST 2"})
	a := all.Answers()[0]
	if a.Err != nil || !errors.Is(a.UsesErr, api.ErrNotAllowed) || len(a.Jobs) != 1 || a.Jobs[0].User != "olga" {
		t.Errorf("%+v", a)
	}
	if want := "/api/v1/overview /api/v1/jobs?limit=1000 /api/v1/flow?target=OST1&target=OST+2 "; asked != want {
		t.Errorf("asked %q, want %q", asked, want)
	}
}
