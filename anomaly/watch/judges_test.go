package watch

import "testing"

// TestJudgesHaveNames: a judge is a row of its own.
func TestJudgesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, j := range judgesOf(&Detectors{}) {
		if j.name == "" || seen[j.name] || j.second == nil {
			t.Errorf("%q: no name, or twice, or it judges nothing", j.name)
		}
		seen[j.name] = true
	}
}
