package access

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/remap"
	"fairway/webui/access/budget"
)

// TestPlainRequestsOfACallerAreBounded: of a hundred requests of one caller for a list one is under way, some wait and
// the rest are refused at once; another caller, and whoever asks whether the daemon lives, are answered meanwhile.
func TestPlainRequestsOfACallerAreBounded(t *testing.T) {
	const all, queued = 100, 64
	limits := budget.Defaults()
	limits.Requests, limits.Wait = 8, time.Hour // one each
	gate, err := NewGate(Config{Anonymous: remap.Viewer, Limits: limits,
		Tokens: []Token{{Name: "dashboard", Role: remap.Viewer, SHA256: HashToken("secret")}}}, []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	begun, goOn := make(chan struct{}, all), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	site := &Site{Answered: func(*Route, int, time.Duration) {}, Routes: []Route{
		{"GET", "/list", remap.Viewer, TCP, func(w http.ResponseWriter, _ *http.Request, by Caller) error {
			if by.Name == "" {
				begun <- struct{}{}
				<-goOn
			}
			_, err := io.WriteString(w, by.Name)
			return err
		}, 0},
		{"GET", "/alive", "", TCP, func(http.ResponseWriter, *http.Request, Caller) error { return nil }, Probe},
	}}
	server := httptest.NewServer(gate.Handler(TCP, site))
	defer server.Close()
	defer release()
	ask := func(path, auth string) *http.Response {
		r, err := http.NewRequest("GET", server.URL+path, nil)
		if err != nil {
			t.Error(err)
			return &http.Response{}
		}
		if auth != "" {
			r.Header.Set("Authorization", auth)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return &http.Response{}
		}
		res.Body.Close()
		return res
	}
	answers := make(chan *http.Response, all)
	for range all {
		go func() { answers <- ask("/list", "") }()
	}
	<-begun
	for range all - queued - 1 {
		var res *http.Response
		select {
		case res = <-answers:
		case <-begun:
			t.Fatal("two requests of one caller are under way")
		}
		if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
			t.Errorf("beyond the queue: %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
		}
	}
	if res := ask("/list", "Bearer secret"); res.StatusCode != http.StatusOK {
		t.Errorf("another caller got %d", res.StatusCode)
	}
	if res := ask("/alive", ""); res.StatusCode != http.StatusOK {
		t.Errorf("a probe from the same address got %d", res.StatusCode)
	}
	if n := len(begun); n != 0 {
		t.Errorf("%d further requests of the caller are under way", n)
	}
	release()
	for range queued + 1 {
		if res := <-answers; res.StatusCode != http.StatusOK {
			t.Errorf("one that waited got %d", res.StatusCode)
		}
	}
}

// TestPagesTakeAPlace: of a hundred requests of one address for the console's pages one is under way.
func TestPagesTakeAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := budget.Defaults()
		limits.Requests = 8 // one each
		gate, err := NewGate(Config{Limits: limits}, []string{"127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex // guards what follows
		underWay, most, codes := 0, 0, map[int]int{}
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			underWay += by
			most = max(most, underWay)
		}
		h := gate.Handler(TCP, &Site{Pages: func(w http.ResponseWriter, r *http.Request) {
			count(1)
			time.Sleep(time.Millisecond)
			count(-1)
		}})
		for i := range 100 {
			go func() {
				r := httptest.NewRequest("GET", "http://127.0.0.1/static/app.js", nil)
				r.RemoteAddr = fmt.Sprint("192.0.2.1:", 1000+i)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				mu.Lock()
				defer mu.Unlock()
				codes[w.Code]++
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most != 1 || codes[http.StatusOK] != 65 || codes[http.StatusTooManyRequests] != 35 {
			t.Errorf("%d under way together, answers %v", most, codes)
		}
	})
}

// TestWhoseBudget: jobs start by the scheduler's token, which goes before viewers; nodes that join by one token
// count by their addresses.
func TestWhoseBudget(t *testing.T) {
	for _, c := range []struct {
		by   Caller
		on   Listener
		want budget.Who
	}{
		{Caller{Person: remap.Person{Name: "vera", Role: remap.Viewer}}, TCP, budget.Who{Key: "vera"}},
		{Caller{Person: remap.Person{Name: "vera", Role: remap.Viewer}}, UnixSocket,
			budget.Who{Key: "vera", Rank: budget.Socket}},
		{Caller{Person: remap.Person{Name: "slurm", Role: RoleScheduler}}, TCP,
			budget.Who{Key: "slurm", Rank: budget.Operators}},
		{Caller{Person: remap.Person{Name: "join cn*", Role: RoleJoin}, Remote: "192.0.2.7:1000"}, IngestPort,
			budget.Who{Key: "192.0.2.7"}},
		{Caller{Remote: "[2001:db8::1]:1000"}, TCP, budget.Who{Key: "2001:db8::/64"}},
	} {
		if got := whoAsks(c.by, c.on); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.by.Person, got, c.want)
		}
	}
}
