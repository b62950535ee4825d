package attack

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// TestAttackQueries asks for what takes gigabytes, from one address and without a name.
func TestAttackQueries(t *testing.T) {
	s := newSite(t, "")
	now := time.Now().Unix()
	bombs := []string{`max_over_time(vector(1)[1d:1ms])`, `sum_over_time(vector(time())[50y:1ms])`,
		`{__name__=~".+"}`, `count_over_time(max_over_time(vector(1)[1h:1ms])[1d:1s])`,
		`label_replace(vector(1), "x", "` + strings.Repeat("x", 500_000) + `", "", "")`}
	attack(t, s, "range queries with a sub-query of 1 ms, 3 at a time", func() string {
		codes := map[int]int{}
		var mu sync.Mutex
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				for _, q := range bombs {
					form := url.Values{"query": {q}, "start": {fmt.Sprint(now - 10_000)}, "end": {fmt.Sprint(now)},
						"step": {"1s"}}
					a := s.ask("POST", "/prometheus/api/v1/query_range", "", form.Encode())
					mu.Lock()
					codes[a.code]++
					mu.Unlock()
				}
			})
		}
		wait.Wait()
		return fmt.Sprint(codes)
	})
	attack(t, s, "100 slow queries at a time from one address", func() string {
		q := `sum_over_time(vector(time())[5m:10ms])` + strings.Repeat(` + sum_over_time(vector(time())[5m:10ms])`, 2)
		form := url.Values{"query": {q}, "start": {fmt.Sprint(now - 600)}, "end": {fmt.Sprint(now)}, "step": {"1s"}}
		codes, noRetry := map[int]int{}, 0
		var mu sync.Mutex
		var wait sync.WaitGroup
		for range 100 {
			wait.Go(func() {
				a := s.ask("POST", "/prometheus/api/v1/query_range", "", form.Encode())
				mu.Lock()
				defer mu.Unlock()
				codes[a.code]++
				if a.code == 429 && (a.after == "" || !strings.Contains(a.body, `"code":"too_often"`)) {
					noRetry++
				}
			})
		}
		// An operator's query has its turn meanwhile.
		time.Sleep(100 * time.Millisecond)
		if a := s.askLocal("GET", "/prometheus/api/v1/query?query=1", ""); a.code != 200 {
			t.Errorf("an operator's query: %d %s", a.code, a.body)
		}
		// So has another viewer's, for whom one of the slow ones gives way.
		other := answer{}
		for range 5 {
			if other = s.ask("GET", "/prometheus/api/v1/query?query=1", viewerSecret, ""); other.code != 429 {
				break
			}
		}
		if other.code != 200 {
			t.Errorf("another viewer's query: %d %s", other.code, other.body)
		}
		wait.Wait()
		if codes[429] < 50 || noRetry > 0 {
			t.Errorf("answers %v, %d refusals without Retry-After", codes, noRetry)
		}
		return fmt.Sprint(codes)
	})
}

// TestAttackExpressions asks what grows by itself: labels made longer by each call, expressions that are deep, regular
// expressions that keep hundreds of groups.
func TestAttackExpressions(t *testing.T) {
	s := newSite(t, "")
	grow := func(of, from string, times int) string {
		return `label_replace(` + of + `,"x","` + strings.Repeat("$1", times) + `","` + from + `","(.*)")`
	}
	const all = `fairway_read_bytes_per_second`
	attack(t, s, "long labels, deep expressions and slow regular expressions, 4 at a time", func() string {
		codes := map[int]int{}
		var mu sync.Mutex
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for _, c := range []struct{ call, q string }{
					{"query", `count(label_join(` + all + `,"x","` + strings.Repeat("s", 30_000) + `"` +
						strings.Repeat(`,"node"`, 100) + `))`},
					{"query", `count(` + grow(grow(grow(all, "node", 1000), "x", 1000), "x", 30) + `)`},
					{"query", `label_replace(` + all + `,"x","$1","node","` + strings.Repeat("(.*.*.*)", 500) + `")`},
					{"query", strings.Repeat("1+", 30_000) + "1"},
					{"format_query", strings.Repeat("1+", 200_000) + "1"},
				} {
					a := s.ask("POST", "/prometheus/api/v1/"+c.call, "", url.Values{"query": {c.q}}.Encode())
					if a.code != 400 && a.code != 422 && a.code != 429 {
						t.Errorf("%s %.60s: %d %.200s", c.call, c.q, a.code, a.body)
					}
					mu.Lock()
					codes[a.code]++
					mu.Unlock()
				}
			})
		}
		wait.Wait()
		return fmt.Sprint(codes)
	})
}

// TestAttackArchive has an operator's token ask the archive for gigabytes.
func TestAttackArchive(t *testing.T) {
	s := newSite(t, "")
	if a := s.ask("GET", "/api/v1/archive/sql?q="+url.QueryEscape("select 1"), operatorSecret, ""); a.code != 200 {
		if strings.Contains(a.body, "keeps no I/O-log archive") {
			t.Skip("skipped: fairwayd is built without cgo, and so without the archive")
		}
		t.Fatal(a)
	}
	attack(t, s, "SQL with texts of 1.2 GB, 4 at a time", func() string {
		codes := map[int]int{}
		var mu sync.Mutex
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for _, q := range []string{`select repeat('x', 20000000) from range(60)`,
					`select repeat('x', 100000) from range(5000)`, `select list(range) from range(300000000)`} {
					a := s.ask("GET", "/api/v1/archive/sql?q="+url.QueryEscape(q), operatorSecret, "")
					mu.Lock()
					codes[a.code]++
					mu.Unlock()
					if a.code != 400 && a.code != 429 {
						t.Errorf("%s: %d %.200s", q, a.code, a.body)
					}
				}
			})
		}
		wait.Wait()
		return fmt.Sprint(codes)
	})
}

// feed opens a live feed over TCP, or over the unix socket for token "".
func (s *site) feed(token string) (*websocket.Conn, int) {
	d, h := *websocket.DefaultDialer, http.Header{}
	if token == "unix" {
		d.NetDial = func(string, string) (net.Conn, error) { return net.Dial("unix", s.socket) }
	} else if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	ws, res, err := d.Dial("ws://"+s.addr+"/api/v1/live", h)
	if err != nil && res != nil {
		return nil, res.StatusCode
	}
	return ws, 101
}

// TestAttackFeeds opens as many idle feeds as it gets, nameless and with a viewer's token.
func TestAttackFeeds(t *testing.T) {
	s := newSite(t, "")
	attack(t, s, "1,100 idle live feeds", func() string {
		open := 0
		for i := range 1100 {
			token := ""
			if i%2 == 1 {
				token = viewerSecret
			}
			if ws, code := s.feed(token); ws != nil {
				defer ws.Close()
				open++
			} else if code != 429 {
				t.Errorf("feed %d: %d", i, code)
				break
			}
		}
		for _, who := range []string{"unix", operatorSecret} {
			ws, code := s.feed(who)
			if ws == nil {
				t.Errorf("an operator's feed: %d", code)
				continue
			}
			defer ws.Close()
			if _, _, err := ws.ReadMessage(); err != nil {
				t.Error(err)
			}
		}
		return fmt.Sprintf("%d feeds", open)
	})
}

// quickHash is of the password "right", at a cost that tests can pay.
const quickHash = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$lG6SS0+rxfmB9QPObS9DrA"

// signIn tries a password from a local address; it returns the cookies.
func (s *site) signIn(from, name, password string, cookies ...*http.Cookie) (int, []*http.Cookie) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c := http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
	r, err := http.NewRequest("POST", "http://"+s.addr+"/api/v1/session",
		strings.NewReader(fmt.Sprintf(`{"name":%q,"password":%q}`, name, password)))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Origin", "http://"+s.addr)
	r.Header.Set("Content-Type", "application/json")
	for _, one := range cookies {
		r.AddCookie(one)
	}
	res, err := c.Do(r)
	if err != nil {
		s.t.Error(err)
		return 0, nil
	}
	res.Body.Close()
	return res.StatusCode, res.Cookies()
}

// TestAttackSignIn guesses at passwords, invents names and makes links without end: people still sign in.
func TestAttackSignIn(t *testing.T) {
	s := newSite(t, "[[access.account]]\nname = \"olga\"\nrole = \"operator\"\nhash = \""+quickHash+"\"\n")
	code, known := s.signIn("127.0.0.1", "olga", "right")
	if code != 200 {
		t.Fatal(code)
	}
	tries := 60
	if long {
		tries = 300
	}
	attack(t, s, "wrong passwords of olga from 30 addresses, as many invented names", func() string {
		codes, begun := map[int]int{}, time.Now()
		for i := range tries {
			code, _ := s.signIn(fmt.Sprintf("127.0.1.%d", i%30+1), "olga", "wrong")
			codes[code]++
			code, _ = s.signIn("127.0.2.1", fmt.Sprint("name", i), "wrong")
			codes[code]++
		}
		if code, _ := s.signIn("127.0.3.1", "olga", "right", known...); code != 200 {
			t.Errorf("olga signs in from her device: %d", code)
		}
		const aMinute = 75 // may be tried in it, of both kinds
		if codes[429] < 2*tries-aMinute*(1+int(time.Since(begun)/time.Minute)) || codes[200] > 0 {
			t.Errorf("answers %v", codes)
		}
		return fmt.Sprint(codes)
	})
	attack(t, s, "4,095 links that sign in", func() string {
		codes := map[int]int{}
		for range 4095 {
			codes[s.askLocal("POST", "/api/v1/sign-in-link", "").code]++
		}
		if code, _ := s.signIn("127.0.3.1", "olga", "right", known...); code != 200 {
			t.Errorf("olga signs in: %d", code)
		}
		return fmt.Sprint(codes)
	})
	attack(t, s, "60 sessions of one person", func() string {
		for range 4 { // as often as a minute allows
			_, _ = s.signIn("127.0.4.1", "olga", "right", known...)
		}
		a := s.askLocal("GET", "/api/v1/sessions", "")
		n := strings.Count(a.body, `"name":"olga"`)
		if a.code != 200 || n == 0 || n > 8 {
			t.Errorf("%d: %d sessions of olga", a.code, n)
		}
		return fmt.Sprintf("%d sessions", n)
	})
}

// TestAttackCookie replays what a browser sends to another port of the host: the session's cookie.
func TestAttackCookie(t *testing.T) {
	s := newSite(t, "[[access.account]]\nname = \"olga\"\nrole = \"operator\"\nhash = \""+quickHash+"\"\n")
	code, cookies := s.signIn("127.0.0.1", "olga", "right")
	if code != 200 {
		t.Fatal(code)
	}
	var pairs []string
	for _, c := range cookies {
		pairs = append(pairs, c.Name+"="+c.Value)
	}
	attack(t, s, "a stolen session cookie on every write, with 100 guessed secrets", func() string {
		codes := map[int]int{}
		for i := range 100 {
			for _, c := range []struct{ method, path string }{{"POST", "/api/v1/plans"},
				{"PUT", "/api/v1/exclusions/fwd1"},
				{"DELETE", "/api/v1/exclusions/fwd1"}, {"POST", "/api/v1/standing"}, {"GET", "/api/v1/checks"}} {
				h := []string{"Cookie", strings.Join(pairs, "; "), "Origin", "http://" + s.addr, "Idempotency-Key", "k"}
				if i > 0 {
					h = append(h, "X-Fairway-Session", fmt.Sprint("guess", i))
				}
				codes[s.ask(c.method, c.path, "", "", h...).code]++
			}
		}
		if codes[401] != 500 {
			t.Errorf("answers %v", codes)
		}
		return fmt.Sprint(codes)
	})
}

// TestAttackAddresses asks for what is not there, and slowly.
func TestAttackAddresses(t *testing.T) {
	s := newSite(t, "")
	attack(t, s, "unknown addresses, 50 requests that never end", func() string {
		for _, path := range []string{"/wp-admin.php", "/.git/config", "/api/v1/nothing", "/static/../../etc/passwd",
			"/overview/../../x"} {
			if a := s.ask("GET", path, "", ""); a.code != 404 && a.code != 400 {
				t.Errorf("%s: %d", path, a.code)
			}
		}
		for range 50 {
			c, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprintf(c, "POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
		}
		return "404"
	})
}
