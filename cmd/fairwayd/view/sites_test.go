package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/fairwayd/config"
	"fairway/cmd/lab/simsite"
	"fairway/cmd/program"
	"fairway/collector/topology"
	"fairway/webui/api"
	"fairway/webui/client"
	"fairway/webui/sites"
)

// TestConsolesOfOtherMachines: those of the file that a browser reaches, without their tokens.
func TestConsolesOfOtherMachines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sites.toml")
	t.Setenv("FAIRWAY_SITES", path)
	log := slog.New(slog.DiscardHandler)
	if got := Consoles(log); got != nil {
		t.Errorf("without a file: %+v", got)
	}
	const text = "[site.b]\naddr = \"https://b.site:7117/,https://b2.site:7117\"\n[site.a]\naddr = " +
		"\"http://a.site\"\n" +
		"token_file = \"/t\"\n[site.c]\naddr = \"unix:/run/s\"\n"
	for content, want := range map[string][]api.Site{
		text: {{Name: "a", Addr: "http://a.site"}, {Name: "b", Addr: "https://b.site:7117"}}, "[site.b]\n": nil} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Consoles(log); !slices.Equal(got, want) {
			t.Errorf("%q: %+v, want %+v", content, got, want)
		}
	}
}

// A view of several sites is asked for by their names in the file.
func TestViewOfSitesNamesThem(t *testing.T) {
	known := map[string]program.Site{"a": {Addr: "https://a", TokenFile: "/t"}, "b": {Addr: "unix:/s"}}
	many := strings.Split(strings.Repeat("a,", mostSites)+"a", ",")
	for _, c := range []struct {
		of   []string
		want string
	}{
		{[]string{"b", "a"}, "[{b unix:/s } {a https://a /t}]"},
		{[]string{"a", "x"}, `has no site "x"; it has a, b`},
		{[]string{"a", "a"}, `"a" is there twice`},
		{many, "65 machines; at most 64"},
	} {
		places, err := placesOf(known, c.of)
		got := fmt.Sprint(places)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%.20q: %s, want %s", c.of, got, c.want)
		}
	}
}

// The view takes its listener, asks, and ends with its context; the page and the API are there for who may read, and
// nothing of a machine is.
func TestViewOfSitesServes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sites.toml")
	socket := filepath.Join(dir, "s")
	if err := os.WriteFile(path, []byte("[site.a]\naddr = \"unix:"+dir+"/none\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAIRWAY_SITES", path)
	conf := config.Default()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- serveSites(ctx, &conf, "", socket, []string{"a"}, "test", slog.New(slog.DiscardHandler))
	}()
	c, err := client.New("unix:"+socket, "")
	if err != nil {
		t.Fatal(err)
	}
	var v sites.View
	for t.Context().Err() == nil {
		if v, err = c.ViewOfSites(ctx); err == nil && v.Sites[0].State == sites.NoAnswer &&
			strings.Contains(v.Sites[0].Why, "none") {
			break
		}
		runtime.Gosched()
	}
	if v.Sentence != "Nothing is known of 1 machine" {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := c.Overview(ctx); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("an overview: %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	err = serveSites(t.Context(), &conf, "", socket, []string{"x"}, "test", slog.New(slog.DiscardHandler))
	if program.Code(err) != program.Usage {
		t.Errorf("of a name that is not known: %v", err)
	}
}

// A daemon that knows other machines asks them while it accuses a target, and names whose job does most there.
func TestWatchShared(t *testing.T) {
	const ost = "scratch-OST0003"
	var mu sync.Mutex
	asked := 0
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		mu.Unlock()
		switch r.URL.Path {
		case "/api/v1/overview":
			_ = api.WriteJSON(w, api.Overview{At: time.Now()})
		case "/api/v1/jobs":
			_, _ = io.WriteString(w, `[{"id":"812","user":"eva","app":"cm1"}]`)
		default:
			_, _ = io.WriteString(w, `{"targets":[{"target":"`+ost+`","job":"812","write_bytes_per_sec":9e9}]}`)
		}
	}))
	t.Cleanup(peer.Close)
	s := simsite.New(t, simsite.Options{})
	s.Run(1)
	places := []client.Place{{Name: "b", Addr: peer.URL}, {Name: "gone", Addr: "unix:/none"}}
	watch := func() (shared func([]topology.NodeID) []api.SharedTarget, end func()) {
		ctx, stop := context.WithCancel(t.Context())
		var tasks sync.WaitGroup
		return watchShared(ctx, "a", s.Picture, places, tasks.Go), func() { stop(); tasks.Wait() }
	}
	_, end := watch()
	end()
	if asked > 0 {
		t.Errorf("nothing is accused, and the other was asked %d times", asked)
	}
	s.FindMu.Lock()
	s.Find = append(s.Find, anomaly.Finding{ID: "F-0001", Node: ost, Kind: anomaly.TargetSlow,
		State: anomaly.Confirmed, Since: time.Now()})
	s.FindMu.Unlock()
	s.Run(1)
	shared, end := watch()
	defer end()
	want := []string{"b's job 812 (eva, cm1) writes 9 GB/s there, 100 % of what b reports",
		"a does not report what it moves there, nor any traffic", "nothing is known of gone"}
	var got []string
	for t.Context().Err() == nil && !slices.Equal(got, want) {
		if v := shared([]topology.NodeID{ost}); len(v) == 1 {
			got = v[0].Lines
		}
		mu.Lock()
		often := asked > 20
		mu.Unlock()
		if often {
			t.Fatalf("got %q, want %q", got, want)
		}
		runtime.Gosched()
	}
}
