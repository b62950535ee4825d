package webui_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/remap"
	"fairway/remap/policy/evacuate"
)

// TestRules: who may look sees the site's rules, and what they would have done about the findings of a range.
func TestRules(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	if v := get[evacuate.View](s, "/api/v1/rules"); len(v.Rules) != 1 || v.Rules[0].Name != "night" ||
		v.Rules[0].AtMost == 0 || v.Rules[0].Loss == 0 || v.Rules[0].Acted != 0 || v.Log == nil {
		t.Errorf("the rules are %+v; want night with its bounds", v)
	}
	s.Run(0)
	s.StartTwo()
	job, at := s.Jobs.Running()[0], time.Now().Add(-time.Hour)
	if err := s.Desk.RecordFindings(t.Context(), []anomaly.Change{{At: at, From: anomaly.Suspect,
		Finding: anomaly.Finding{ID: "F-0007", Node: "fwd001", Kind: anomaly.FailSlow, Condition: anomaly.Slow,
			Factor: 10, State: anomaly.Confirmed, Since: at, Changed: at,
			Impact: []anomaly.Impact{{Job: job.ID, Share: 0.5}}}}}); err != nil {
		t.Fatal(err)
	}
	for query, found := range map[string]int{"": 1, "?from=-30m": 0} {
		v := get[evacuate.Tested](s, "/api/v1/rules/test"+query)
		if len(v.Would) != found || !v.From.Before(v.To) {
			t.Errorf("%q: %+v, want %d", query, v, found)
		}
		for _, w := range v.Would {
			if w.Finding != "F-0007" || w.Forwarder != "fwd001" || w.Job != job.ID || w.Rule != "night" ||
				w.Does != evacuate.Act {
				t.Errorf("%q: %+v", query, w)
			}
		}
	}
	for query, says := range map[string]string{"from=soon": "soon", "from=-1h&to=-2h": "is not before to"} {
		res, b := s.Ask("GET", "/api/v1/rules/test?"+query, simsite.ViewerSecret, nil)
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(b), says) {
			t.Errorf("%s: %d %s", query, res.StatusCode, b)
		}
	}
	if res, _ := s.Ask("GET", "/api/v1/rules", "", nil, signIn(s, "otto", remap.User).headers(s)...); res.StatusCode !=
		http.StatusForbidden {
		t.Errorf("a user of jobs sees the rules: %d", res.StatusCode)
	}
}
