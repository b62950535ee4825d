package daemontest

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"fairway/remap"
	"fairway/webui/api"
)

// TestFirstOperatorSignsIn starts a daemon that lets nobody act but its own user, who then comes into
// the browser by a link, once.
func TestFirstOperatorSignsIn(t *testing.T) {
	t.Parallel() // it mostly waits
	d := newRealDaemon(t, "")
	// The daemon answers before it has written that line.
	wait(t, "the first start says how to make the first operator", func() bool {
		return strings.Contains(d.logged(), "access.groups")
	})
	var before, link api.SignInLink
	for _, l := range []*api.SignInLink{&before, &link} {
		out := d.fairway(0, "a link", "http://"+d.addr+"/#signin=", "sign-in-link", "--json")
		if err := json.Unmarshal([]byte(out), l); err != nil || l.Role != remap.Admin {
			t.Fatalf("%+v, %v", l, err)
		}
	}
	for _, c := range []struct {
		what    string
		address string
		status  int
	}{{"a link that another one ended", before.Address, 401}, {"a link", link.Address, 200},
		{"a used link", link.Address, 401}} {
		_, code, _ := strings.Cut(c.address, "#signin=")
		body, err := json.Marshal(api.SignIn{Code: code})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest("POST", "http://"+d.addr+"/api/v1/session", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", "http://"+d.addr)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var s api.Session
		err = json.NewDecoder(resp.Body).Decode(&s)
		resp.Body.Close()
		if resp.StatusCode != c.status || c.status == 200 &&
			(err != nil || s.Name != link.Name || s.Role != remap.Admin) {
			t.Errorf("%s: %d, %+v, %v", c.what, resp.StatusCode, s, err)
		}
	}
	if log := d.logged(); !strings.Contains(log, "a sign-in link was made") {
		t.Errorf("the log has no line of the link:\n%s", log)
	}
	d.fairway(5, "by TCP", "on this listener", "sign-in-link", "--addr", "http://"+d.addr)
}

// logged is the daemon's log so far.
func (d *realDaemon) logged() string {
	d.t.Helper()
	text, err := os.ReadFile(d.log.Name())
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}
