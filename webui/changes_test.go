package webui

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

// applied is what a browser makes of a patch.
func applied(have, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	if list, ok := have.([]any); ok {
		out := append([]any{}, list...)
		for k, v := range p[patchedElements].(map[string]any) {
			var i int
			fmt.Sscan(k, &i)
			out[i] = applied(out[i], v)
		}
		return out
	}
	out := map[string]any{}
	if was, ok := have.(map[string]any); ok {
		for k, v := range was {
			out[k] = v
		}
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = applied(out[k], v)
		}
	}
	return out
}

var overviews = []string{
	`{"at":"1","rows":[{"id":"a","v":{"r":1.23456789,"q":3}},{"id":"b","v":{"r":2.5}}],"names":["x"],"needs":[]}`,
	`{"at":"2","rows":[{"id":"a","v":{"r":1.23457111,"q":3}},{"id":"b","v":{"r":2.75,"w":1}}],"names":["x","y"],` +
		`"needs":[{"id":"F"}]}`,
	`{"at":"3","rows":[{"id":"a","v":{"q":3}},{"id":"b","v":{"r":2.75}}],"names":["z","y"],"needs":[{"id":"F","n":1}]}`,
	`{"at":"3","rows":[{"id":"b","v":{"r":2.75}}],"names":[],"needs":[]}`,
	`{"at":"3","rows":[{"id":"b","v":{"r":2.75}}],"names":[],"needs":[]}`,
}

// Patches lead from the first overview to each later one, and hold what changed alone.
func TestPatchesLeadToTheNewestOverview(t *testing.T) {
	var c changes
	have := decodedJSON(t, overviews[0])
	if p, err := c.next([]byte(overviews[0])); err != nil || p != nil {
		t.Fatalf("the first has a patch: %s, %v", p, err)
	}
	for i, text := range overviews[1:] {
		p, err := c.next([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		have = applied(have, decodedJSON(t, string(p)))
		if want := decodedJSON(t, text); i > 0 && !reflect.DeepEqual(have, want) {
			t.Errorf("%s\nmakes %v,\nwant  %v", p, have, want)
		}
		switch {
		case i == 0 && strings.Contains(string(p), "1.23"):
			t.Errorf("a change that no screen shows is sent: %s", p)
		case i == 1 && strings.Contains(string(p), "2.75"):
			t.Errorf("what stayed is sent: %s", p)
		case i == 3 && string(p) != "{}":
			t.Errorf("nothing changed, and %s is sent", p)
		}
	}
}

// The browser applies a patch as the server means it.
func TestTheBrowserAppliesPatches(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: no node")
	}
	source, err := staticFS.ReadFile("static/live.js")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(source), "export function patched")
	text, _, ended := strings.Cut(text, "\n}\n")
	if !found || !ended {
		t.Fatal("live.js has no function patched")
	}
	var c changes
	script := "function patched" + text + "\n}\nlet have = " + overviews[0] + ";\n"
	for i, o := range overviews {
		p, err := c.next([]byte(o))
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			script += "have = patched(have, " + string(p) + ");\n"
		}
	}
	out, err := exec.CommandContext(t.Context(), node, "-e",
		script+"console.log(JSON.stringify(have))").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := decodedJSON(t, overviews[len(overviews)-1]); !reflect.DeepEqual(decodedJSON(t, string(out)), want) {
		t.Errorf("%s, want %v", out, want)
	}
}

func decodedJSON(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
