package browsertest_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
)

// issuer is a provider with real keys and signed tokens: go-oidc's own test server with the two pages
// it lacks. Whoever comes is signed in as its claims say.
type issuer struct {
	*oidctest.Server
	url  string
	keys map[string]crypto.PrivateKey

	mu sync.Mutex // guards everything that follows
	// claims are of the next tokens, beside those that belong to the sign-in; a nil one is left out.
	claims map[string]any
	key    string                // that signs
	denies bool                  // the person says no
	asked  map[string]url.Values // by code
}

const oidcSecret = "the client's own secret"

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{Server: &oidctest.Server{}, keys: map[string]crypto.PrivateKey{}, key: "published",
		asked: map[string]url.Values{}}
	for _, name := range []string{"published", "stranger's"} {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		i.keys[name] = k
		if name == "published" {
			i.PublicKeys = []oidctest.PublicKey{{PublicKey: k.Public(), KeyID: "published", Algorithm: oidc.RS256}}
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/", i.Server)
	mux.HandleFunc("GET /auth", i.auth)
	mux.HandleFunc("POST /token", i.token)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	i.url = s.URL
	i.SetIssuer(s.URL)
	return i
}

// auth is where people would type their password.
func (i *issuer) auth(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != "fairway" ||
		q.Get("code_challenge_method") != "S256" || !strings.Contains(q.Get("scope"), "openid") {
		http.Error(w, "not a request for a code with PKCE: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	back := url.Values{"state": {q.Get("state")}, "code": {rand.Text()}}
	i.asked[back.Get("code")] = q
	if i.denies {
		back = url.Values{"state": {q.Get("state")}, "error": {"access_denied"}, "error_description": {"not today"}}
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token gives a code's token once, to the client that knows its verifier.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q, ok := i.asked[r.FormValue("code")]
	delete(i.asked, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	name, secret, _ := r.BasicAuth()
	if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || name != "fairway" ||
		secret != url.QueryEscape(oidcSecret) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	claims := map[string]any{"iss": i.url, "aud": "fairway", "sub": "4711", "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Minute).Unix(), "nonce": q.Get("nonce"),
		"preferred_username": "olga", "groups": []string{"staff", "hpc-ops"}}
	maps.Copy(claims, i.claims)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	b, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer",
		"id_token": oidctest.SignIDToken(i.keys[i.key], "published", oidc.RS256, string(b))})
}

func oidcSite(t *testing.T, i *issuer) *simsite.Site { return oidcSiteAt(t, i.url) }

// oidcSiteAt is a site whose people sign in at an issuer's address.
func oidcSiteAt(t *testing.T, issuer string) *simsite.Site {
	return simsite.New(t, simsite.Options{Access: func(a *access.Config) {
		a.OIDC = &access.OIDC{Issuer: issuer, ClientID: "fairway", ClientSecret: oidcSecret,
			Scopes: []string{"groups"}, NameClaim: "preferred_username", GroupsClaim: "groups",
			Roles: map[string]remap.Role{"hpc-ops": remap.Operator, "hpc-root": remap.Admin, "users": remap.Viewer}}
	}})
}

// browse goes where the server sends it, as a browser does, and returns where that ends.
func browse(t *testing.T, jar *visitor, address string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest("GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	res, err := (&http.Client{Jar: jar}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if secret, ok := strings.CutPrefix(res.Request.URL.Fragment, "session="); ok {
		jar.secret = secret
	}
	return res, string(b)
}

// visitor is a browser: its cookies, and the session's secret that its page keeps.
type visitor struct {
	http.CookieJar
	secret string
}

func newJar(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{CookieJar: jar}
}

// who reads the session that a browser has.
func who(s *simsite.Site, jar *visitor) (v api.Session) {
	s.T.Helper()
	r, err := http.NewRequest("GET", "http://"+s.TCP+"/api/v1/session", nil)
	if err != nil {
		s.T.Fatal(err)
	}
	r.Header.Set(access.SecretHeader, jar.secret)
	res, err := (&http.Client{Jar: jar}).Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		s.T.Fatal(err)
	}
	return v
}

func TestSignInAtAProvider(t *testing.T) {
	i := newIssuer(t)
	s := oidcSite(t, i)
	for _, c := range []struct {
		name   string
		claims map[string]any
		set    func()
		role   remap.Role // "" is refused
		status int
		says   string
	}{
		{name: "as it should be", role: remap.Operator},
		{name: "the largest of several roles",
			claims: map[string]any{"groups": []string{"users", "hpc-root", "hpc-ops"}}, role: remap.Admin},
		{name: "one group as a text", claims: map[string]any{"groups": "users"}, role: remap.Viewer},
		{name: "several audiences", claims: map[string]any{"aud": []string{"other", "fairway"}}, role: remap.Operator},
		{name: "no group with a role", claims: map[string]any{"groups": []string{"staff"}},
			status: http.StatusForbidden, says: "none of them has a role here"},
		{name: "no groups", claims: map[string]any{"groups": nil}, status: http.StatusForbidden, says: "in 0 groups"},
		{name: "no name", claims: map[string]any{"preferred_username": nil}, status: http.StatusUnauthorized,
			says: "no usable claim"},
		{name: "a name that moves the cursor", claims: map[string]any{"preferred_username": "x\x1b[2J"},
			status: http.StatusUnauthorized, says: "no usable claim"},
		{name: "wrong nonce", claims: map[string]any{"nonce": "another"}, status: http.StatusUnauthorized,
			says: "(nonce)"},
		{name: "no nonce", claims: map[string]any{"nonce": nil}, status: http.StatusUnauthorized, says: "(nonce)"},
		{name: "wrong audience", claims: map[string]any{"aud": "grafana"}, status: http.StatusUnauthorized,
			says: "expected audience"},
		{name: "wrong issuer", claims: map[string]any{"iss": "https://evil.example"}, status: http.StatusUnauthorized,
			says: "issued by a different provider"},
		{name: "expired", claims: map[string]any{"exp": time.Now().Add(-time.Hour).Unix()},
			status: http.StatusUnauthorized, says: "token is expired"},
		{name: "signed by a stranger", set: func() { i.key = "stranger's" }, status: http.StatusUnauthorized,
			says: "failed to verify signature"},
		{name: "the person says no", set: func() { i.denies = true }, status: http.StatusUnauthorized,
			says: "not today"},
	} {
		t.Run(c.name, func(t *testing.T) {
			i.mu.Lock()
			i.claims, i.key, i.denies = c.claims, "published", false
			if c.set != nil {
				c.set()
			}
			i.mu.Unlock()
			jar := newJar(t)
			res, body := browse(t, jar, "http://"+s.TCP+access.OIDCStartPath)
			v := who(s, jar)
			if c.role != "" {
				if v.Role != c.role || v.Name != "olga" || v.Via != "session" || v.Expires == nil ||
					res.Request.URL.Path != "/" {
					t.Errorf("%+v, at %s: %s", v, res.Request.URL, body)
				}
				return
			}
			if v.Name != "" || res.StatusCode != c.status || !strings.Contains(body, c.says) ||
				!strings.Contains(body, "<h1>You are not signed in</h1>") {
				t.Errorf("%+v, status %d, want %d and %q: %s", v, res.StatusCode, c.status, c.says, body)
			}
			if strings.Contains(body, oidcSecret) || strings.Contains(body, "\x1b") {
				t.Errorf("the page shows too much: %q", body)
			}
		})
	}
}

// An answer that this browser did not ask for signs nobody in, and an answer counts once.
func TestAnswersOfOtherSignIns(t *testing.T) {
	i := newIssuer(t)
	s := oidcSite(t, i)
	stop := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	step := func(jar http.CookieJar, address string) *url.URL {
		stop.Jar = jar
		res, err := stop.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		u, err := res.Location()
		if err != nil {
			t.Fatalf("%s: %d, no redirect", address, res.StatusCode)
		}
		return u
	}
	mine, other := newJar(t), newJar(t)
	back := step(mine, step(mine, "http://"+s.TCP+access.OIDCStartPath).String()).String()
	for name, c := range map[string]struct {
		jar  *visitor
		says string
	}{"a browser that asked for nothing": {newJar(t), "did not begin a sign-in"},
		"a browser that asked for something else": {other, "(state)"}} {
		if c.jar == other {
			step(other, "http://"+s.TCP+access.OIDCStartPath)
		}
		if res, body := browse(t, c.jar, back); res.StatusCode != http.StatusUnauthorized ||
			!strings.Contains(body, c.says) || who(s, c.jar).Name != "" {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	flow := mine.Cookies(&url.URL{Scheme: "http", Host: s.TCP, Path: access.OIDCBackPath})
	if len(flow) != 1 || flow[0].Name != "fairway_oidc" {
		t.Fatalf("cookies of the sign-in: %v", flow)
	}
	if _, body := browse(t, mine, back); who(s, mine).Name != "olga" {
		t.Fatalf("the one who asked is not signed in: %s", body)
	}
	mine.SetCookies(&url.URL{Scheme: "http", Host: s.TCP, Path: access.OIDCBackPath},
		[]*http.Cookie{{Name: "fairway_oidc", Value: flow[0].Value, Path: access.OIDCBackPath}})
	if res, body := browse(t, mine, back); res.StatusCode != http.StatusUnauthorized ||
		!strings.Contains(body, "did not take the code") {
		t.Errorf("the same answer again: %d %s", res.StatusCode, body)
	}
}

// A provider that is away refuses the sign-in with its name, for programs as a problem document.
func TestProviderAway(t *testing.T) {
	i := newIssuer(t)
	s := oidcSiteAt(t, i.url+"/nowhere")
	res, b := s.Ask("GET", access.OIDCStartPath, "", nil)
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(b), "/nowhere") ||
		!strings.Contains(res.Header.Get("Content-Type"), "problem") {
		t.Errorf("%d %s", res.StatusCode, b)
	}
	if v := who(s, newJar(t)); v.SignInAt == "" {
		t.Errorf("the page does not know the provider: %+v", v)
	}
	s = simsite.New(t, simsite.Options{})
	if res, b := s.Ask("GET", access.OIDCStartPath, "", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("without a provider: %d %s", res.StatusCode, b)
	}
}

// The button, in a real browser: cookies, redirects and the page's policy together.
func TestSignInButton(t *testing.T) {
	b := newTab(t, 1000, 700)
	i := newIssuer(t)
	s := oidcSite(t, i)
	s.Run(1)
	b.open("http://" + s.TCP + "/overview")
	b.frames(1)
	b.key("i")
	b.says("Sign in at " + strings.TrimPrefix(i.url, "http://"))
	b.shot("sign-in-oidc")
	b.until("the button is pressed",
		fmt.Sprintf("(() => { const a = document.querySelector('dialog a[href=%q]'); a?.click(); return a; })()",
			access.OIDCStartPath))
	b.until("the page knows who came", `document.body && document.body.innerText.includes("olga (operator)")`)
}
