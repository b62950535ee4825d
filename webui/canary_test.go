package webui_test

import (
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/remap/journal"
	"fairway/webui/api"
)

// A canary by the API writes, reads and stats a real file; its limits and its role hold, and who
// asked for it and what it found is in the audit and on the forwarder's page.
func TestACanaryByTheAPI(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	eventually(t, "the picture has the forwarders",
		func() bool { return len(get[api.Overview](s, "/api/v1/overview").Forwarders) == 8 })
	res, b := post(s, "/api/v1/forwarders/fwd001/canary", simsite.OperatorSecret, api.Decision{})
	if res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	d := get[api.ForwarderDetail](s, "/api/v1/forwarders/fwd001")
	if c := d.Canary; c == nil || c.Took.Read == nil || *c.Took.Write <= 0 || c.By != "olga" || c.Bytes != 8192 ||
		c.Error != "" {
		t.Errorf("the page's canary is %+v", c)
	}
	for _, c := range []struct {
		path, secret string
		status       int
		says         string
	}{
		{"/api/v1/forwarders/fwd001/canary", simsite.OperatorSecret, 409, "at most one in 10s"},
		{"/api/v1/forwarders/fwd002/canary", simsite.ViewerSecret, 403, "needs the role operator"},
		{"/api/v1/forwarders/fwd007/canary", simsite.OperatorSecret, 409,
			"no way to fwd007 is known; set probe.export"},
		{"/api/v1/forwarders/c00001/canary", simsite.OperatorSecret, 400, "not a forwarding node"},
	} {
		if res, b := post(s, c.path, c.secret, api.Decision{}); res.StatusCode != c.status ||
			!strings.Contains(string(b), c.says) {
			t.Errorf("POST %s: %d %s, want %d with %q", c.path, res.StatusCode, b, c.status, c.says)
		}
	}
	audit := get[[]api.AuditEntry](s, "/api/v1/audit?subject=fwd001")
	if len(audit) != 2 || audit[0].Action != string(journal.StepCanaryDone) || audit[0].Actor != "olga" ||
		!strings.Contains(audit[0].Result, "write ") ||
		audit[1].Action != string(journal.StepCanary) || time.Since(audit[1].At) > time.Minute {
		t.Errorf("audit: %+v", audit)
	}
}
