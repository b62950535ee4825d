package attack

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAttackPlain keeps a hundred plain requests going without a name, and as many with a viewer's token.
func TestAttackPlain(t *testing.T) {
	s := newSite(t, "")
	each, lasts := 20, time.Second
	if long {
		each, lasts = 100, 20*time.Second
	}
	attack(t, s, fmt.Sprint(2*each, " requests for lists at a time, by an address and by a viewer"), func() string {
		many := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * each}}
		defer many.CloseIdleConnections()
		codes, noRetry := map[int]int{}, 0
		var mu sync.Mutex
		var wait sync.WaitGroup
		end := time.Now().Add(lasts)
		for i := range 2 * each {
			token := ""
			if i%2 == 1 {
				token = viewerSecret
			}
			wait.Go(func() {
				for n := i; time.Now().Before(end); n++ {
					path := []string{"/api/v1/nodes", "/api/v1/overview", "/api/v1/machine", "/api/v1/flow",
						"/metrics"}[n%5]
					a := s.askBy(&many, "http://"+s.addr, "GET", path, token, "")
					mu.Lock()
					codes[a.code]++
					if a.code == 429 && (a.after == "" || !strings.Contains(a.body, `"code":"too_often"`)) {
						noRetry++
					}
					mu.Unlock()
				}
			})
		}
		// An operator and whoever looks after the daemon are answered meanwhile.
		for _, who := range []struct{ path, token string }{{"/api/v1/overview", operatorSecret}, {"/readyz", ""}} {
			if a := s.ask("GET", who.path, who.token, ""); a.code != 200 {
				t.Errorf("%s meanwhile: %d %s", who.path, a.code, a.body)
			}
		}
		wait.Wait()
		if codes[200] == 0 || noRetry > 0 || len(codes) > 2 || len(codes) == 2 && codes[429] == 0 {
			t.Errorf("answers %v, %d refusals without Retry-After", codes, noRetry)
		}
		return fmt.Sprint(codes)
	})
}
