package attack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/webui/access"
)

// lines are of a second of each node, in Influx's protocol.
func lines(nodes ...string) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "read_bytes,host=%s value=1 %d\n", n, time.Now().UnixNano())
	}
	return b.String()
}

// TestAttackLines brings lines of invented names without end, and of nodes that others speak for.
func TestAttackLines(t *testing.T) {
	const secret = "another-collectors-token"
	s := newSite(t, fmt.Sprintf("[[access.token]]\nname = \"flood\"\nrole = \"agent\"\nsha256 = %q\n"+
		"[access.token.limits]\nnodes = 1000\nframes_per_sec = 10000.0\n", access.HashToken(secret)))
	bodies := 20
	if long {
		bodies = 200
	}
	attack(t, s, "lines of 1,000 invented names each, by a token for 1,000 nodes", func() string {
		codes := map[int]int{}
		for i := range bodies {
			var names []string
			for n := range 1000 {
				names = append(names, fmt.Sprint("x", i, "-", n))
			}
			codes[s.ask("POST", "/api/v2/write", secret, lines(names...)).code]++
		}
		if codes[204] != 1 || codes[400]+codes[429] != bodies-1 {
			t.Errorf("answers %v", codes)
		}
		return fmt.Sprint(codes)
	})
	own := s.agent(t, manySecret, "cn4", topology.Compute)
	if m, err := own.send(frames("cn4", topology.Compute, time.Now().UnixMilli()), 30*time.Second); got(m,
		err) != "taken" {
		t.Fatal(m, err)
	}
	go func() { // an agent reads, and so answers pings
		for {
			if _, _, err := own.ws.ReadMessage(); err != nil {
				return
			}
		}
	}()
	attack(t, s, "lines of a node whose agent is connected, 50 times", func() string {
		codes := map[int]int{}
		for range 50 {
			codes[s.ask("POST", "/api/v2/write", manySecret, lines("cn4")).code]++
		}
		if codes[403] != 50 {
			t.Errorf("answers %v", codes)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			if a := s.askLocal("GET", "/api/v1/findings", ""); strings.Contains(a.body, "second_speaker") {
				break
			} else if time.Now().After(end) {
				t.Errorf("no finding of a second speaker: %s", a.body)
				break
			}
		}
		return fmt.Sprint(codes)
	})
}
