package browsertest_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"fairway/cmd/lab/simsite"
)

// TestAFileThatDoesNotComeIsAskedForAgain: a network that changes while a page loads takes its requests with it; the
// page opens all the same, and where the file never comes it says so.
func TestAFileThatDoesNotComeIsAskedForAgain(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	at, err := url.Parse("http://" + s.TCP)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file   string
		broken int64
		says   string
	}{
		"a module, once":    {"/static/grid.js", 1, ""},
		"its style, twice":  {"/static/app.css", 2, ""},
		"the page's script": {"/static/app.js", 1 << 30, "A file of this page has not come"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			proxy := httputil.NewSingleHostReverseProxy(at)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, c.file) && asked.Add(1) <= c.broken {
					panic(http.ErrAbortHandler)
				}
				proxy.ServeHTTP(w, r)
			}))
			defer front.Close()
			b := newTab(t, 1100, 700)
			b.expect = append(b.expect, "ERR_EMPTY_RESPONSE")
			b.open(front.URL + "/overview")
			if c.says == "" {
				b.frames(1)
				return
			}
			b.says(c.says)
		})
	}
}
