package webui_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"testing"

	"fairway/cmd/lab/simsite"
)

// Long answers of the API are compressed for who asks for that and are the same; short ones, refusals, and the
// session's are not.
func TestAnswersAreCompressed(t *testing.T) {
	s := simsite.New(t, simsite.Options{Forwarders: 64, Compute: 256, Steady: true})
	s.Run(3)
	asked := func(path string, how string) (*http.Response, []byte) {
		return s.Ask("GET", path, simsite.ViewerSecret, nil, "Accept-Encoding", how)
	}
	eventually(t, "the forwarders are shown", func() bool {
		_, b := asked("/api/v1/overview", "identity")
		return len(b) > 10_000
	})
	for _, path := range []string{"/api/v1/overview", "/api/v1/forwarders/fwd001", "/api/v1/metrics",
		"/api/v1/openapi.json"} {
		res, b := asked(path, "gzip")
		if res.Header.Get("Content-Encoding") != "gzip" || res.Header.Get("Vary") == "" {
			t.Errorf("%s: %v", path, res.Header)
			continue
		}
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil || len(plain) < 2*len(b) || plain[0] != '{' && plain[0] != '[' {
			t.Errorf("%s: %d bytes of %d, %v", path, len(b), len(plain), err)
		}
		t.Logf("%s: %d bytes, %d compressed", path, len(plain), len(b))
	}
	for path, code := range map[string]int{"/api/v1/plans": 200, "/api/v1/session": 200,
		"/api/v1/forwarders/nosuch": 404,
		"/api/v1/series?node=":      400} {
		if res, _ := asked(path, "gzip"); res.Header.Get("Content-Encoding") != "" || res.StatusCode != code {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
	}
}
