package webui_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/remap"
	"fairway/webui/access"
)

var update = flag.Bool("update", false, "rewrite the tables in docs")

// authorityDoc is the table that people read; who may do what is tested against it, not against the
// code that made it.
const authorityDoc = "../docs/access.md"

var authorityLine = regexp.MustCompile(`^(\w+) +(/\S*) +(\w+) +([\w ]+)$`)

func authorityTable(routes []access.Route) string {
	var b strings.Builder
	for i := range routes {
		t := &routes[i]
		need := string(t.Need)
		if need == "" {
			need = "anybody"
		}
		fmt.Fprintf(&b, "%-6s %-38s %-9s %s\n", t.Method, t.Path, need, strings.Join(t.On.Names(), " "))
	}
	return b.String()
}

// allowedRoles is the meaning of the table's third column, written out once more.
var allowedRoles = map[string][]string{
	"anybody":   {"", "user", "viewer", "operator", "admin", "agent", "scheduler", "join"},
	"user":      {"user", "viewer", "operator", "admin"},
	"viewer":    {"viewer", "operator", "admin"},
	"operator":  {"operator", "admin"},
	"admin":     {"admin"},
	"agent":     {"agent"},
	"join":      {"join"},
	"scheduler": {"scheduler", "operator", "admin"},
}

// caller is one way to come in with a role.
type caller struct {
	name  string
	role  string
	on    access.Listener
	dress func(*http.Request)
}

func callers(s *simsite.Site) []caller {
	bearer := func(secret string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }
	}
	peerOf := func(uid, gid uint32) func(*http.Request) {
		return func(r *http.Request) {
			*r = *r.WithContext(access.WithCredentials(r.Context(), uid, gid))
		}
	}
	proxied := func(user, groups string) func(*http.Request) {
		return func(r *http.Request) {
			r.RemoteAddr = "198.51.100.7:1234"
			r.Header.Set("X-Remote-User", user)
			r.Header.Set("X-Remote-Groups", groups)
			r.Header.Set("Origin", "http://"+r.Host)
		}
	}
	cookie := func(role remap.Role) func(*http.Request) {
		value := signIn(s, "carl", role)
		return func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: access.CookieName, Value: value.cookie})
			r.Header.Set(access.SecretHeader, value.secret)
			r.Header.Set("Origin", "http://"+r.Host)
		}
	}
	return []caller{
		{"nobody by tcp", "", access.TCP, func(*http.Request) {}},
		{"viewer's token", "viewer", access.TCP, bearer(simsite.ViewerSecret)},
		{"operator's token", "operator", access.TCP, bearer(simsite.OperatorSecret)},
		{"admin's token", "admin", access.TCP, bearer(simsite.AdminSecret)},
		{"agent's token", "agent", access.TCP, bearer(simsite.AgentSecret)},
		{"hook's token", "scheduler", access.TCP, bearer(simsite.HookSecret)},
		{"operator's token", "operator", access.UnixSocket, bearer(simsite.OperatorSecret)},
		{"agent's token", "agent", access.IngestPort, bearer(simsite.AgentSecret)},
		{"admin's token", "admin", access.IngestPort, bearer(simsite.AdminSecret)},
		{"root", "admin", access.UnixSocket, peerOf(0, 0)},
		{"member of ops", "operator", access.UnixSocket, peerOf(4242, 7001)},
		{"member of slurm", "scheduler", access.UnixSocket, peerOf(4242, 7002)},
		{"stranger on the host", "", access.UnixSocket, peerOf(4242, 9999)},
		{"nobody by unix", "", access.UnixSocket, func(*http.Request) {}},
		{"proxy's operator", "operator", access.TCP, proxied("pia", "staff, hpc-ops")},
		{"proxy's guest", "viewer", access.TCP, proxied("gus", "staff")},
		{"session of a user", "user", access.TCP, cookie(remap.User)},
		{"member of users", "user", access.UnixSocket, peerOf(4242, 7003)},
		{"session of a viewer", "viewer", access.TCP, cookie(remap.Viewer)},
		{"session of an operator", "operator", access.TCP, cookie(remap.Operator)},
	}
}

func authoritySite(t *testing.T) *simsite.Site {
	return simsite.New(t, simsite.Options{Access: func(a *access.Config) {
		a.Anonymous = ""
		a.Groups = map[string]remap.Role{"7001": remap.Operator, "7002": access.RoleScheduler, "7003": remap.User}
		a.Proxy = &access.Proxy{From: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")},
			UserHeader:   "X-Remote-User",
			GroupsHeader: "X-Remote-Groups",
			Roles:        map[string]remap.Role{"hpc-ops": remap.Operator}, Default: remap.Viewer}
	}})
}

func TestAuthorityTable(t *testing.T) {
	s := authoritySite(t)
	doc, err := os.ReadFile(authorityDoc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(doc), "<!-- table -->\n")
	if !ok {
		t.Fatalf("%s has no place for the table", authorityDoc)
	}
	old, tail, _ := strings.Cut(rest, "<!-- end -->\n")
	const title, foot = "```\n", "```\n"
	if want := title + authorityTable(s.Server.Routes()) + foot; old != want {
		if !*update {
			t.Fatalf(
				"%s does not have the routes as they are; read what changed, then go test ./webui -run Authority "+
					"-update", authorityDoc)
		}
		if err := os.WriteFile(authorityDoc, []byte(head+"<!-- table -->\n"+want+"<!-- end -->\n"+tail),
			0o644); err != nil {
			t.Fatal(err)
		}
		old = want
	}
	tried := 0
	for _, line := range strings.Split(strings.TrimPrefix(old, title), "\n") {
		m := authorityLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, c := range callers(s) { // new sessions for each line: one of them signs out
			tryRoute(t, s, c, m[1], m[2], m[3], m[4])
			tried++
		}
	}
	if tried < 20*len(allowedRoles) {
		t.Errorf("only %d calls were tried", tried)
	}
}

var wildcard = regexp.MustCompile(`\{[^}]+\}`)

// tryRoute makes one call and compares whether it was let in.
func tryRoute(t *testing.T, s *simsite.Site, c caller, method, path, need, on string) {
	t.Helper()
	path = wildcard.ReplaceAllString(path, "cmdline") // no such plan, node or job; a profile that ends at once
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader("{}"))
	r.Header.Set("Idempotency-Key", fmt.Sprintf("%s %s %s", c.name, method, path))
	c.dress(r)
	w := httptest.NewRecorder()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s.Server.HTTP(c.on).Handler.ServeHTTP(w, r.WithContext(ctx))
	what := fmt.Sprintf("%s %s by %s (%s, %s)", method, path, c.name, c.role, c.on)
	if !strings.Contains(" "+on+" ", " "+c.on.String()+" ") {
		// any other address is a page of the console
		page := strings.HasPrefix(w.Header().Get("Content-Type"), "text/html")
		if w.Code < 400 && !page {
			t.Errorf("%s: %d on a listener that the table does not have", what, w.Code)
		}
		return
	}
	allowed := false
	for _, role := range allowedRoles[need] {
		allowed = allowed || role == c.role
	}
	refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden
	if method+" "+path == "POST /api/v1/session" {
		return // signing in has rules of its own: an Origin, and a proof in the body
	}
	if allowed == refused {
		t.Errorf("%s: %d, allowed by the table: %v\n%.200s", what, w.Code, allowed, w.Body)
	}
	if refused && !strings.Contains(w.Body.String(), "detail") {
		t.Errorf("%s is refused without a word: %s", what, w.Body)
	}
}

// What another site's page sends in a visitor's name is refused, whatever the visitor may do.
func TestForeignOrigins(t *testing.T) {
	s := authoritySite(t)
	session := callers(s)[19]
	for _, c := range []struct {
		name, method, path, origin, site string
		want                             int
	}{
		{"a write from here", "POST", "/api/v1/plans", "http://localhost", "same-origin", http.StatusBadRequest},
		{"a write from elsewhere", "POST", "/api/v1/plans", "http://evil.example", "cross-site", http.StatusForbidden},
		{"a write without an origin", "POST", "/api/v1/plans", "", "", http.StatusForbidden},
		// the browser keeps the answer from the page
		{"a read from elsewhere", "GET", "/api/v1/overview", "http://evil.example", "cross-site", http.StatusOK},
		{"a feed from elsewhere", "GET", "/api/v1/live", "http://evil.example", "cross-site", http.StatusForbidden},
		{"a feed without an origin", "GET", "/api/v1/live", "", "", http.StatusForbidden},
	} {
		r := httptest.NewRequest(c.method, "http://localhost"+c.path, strings.NewReader("{}"))
		session.dress(r)
		r.Header.Set("Idempotency-Key", c.name)
		r.Header.Del("Origin")
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		w := httptest.NewRecorder()
		s.Server.HTTP(access.TCP).Handler.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d: %s", c.name, w.Code, c.want, w.Body)
		}
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s: another site may read the answer (%s)", c.name, got)
		}
	}
	r := httptest.NewRequest("GET", "http://rebound.example/api/v1/overview", nil)
	session.dress(r)
	w := httptest.NewRecorder()
	if s.Server.HTTP(access.TCP).Handler.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("a name that points here but is not ours: %d", w.Code)
	}
}
