package attack

import (
	"context"
	"fmt"
	"net"
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

// TestAttackConnections holds more connections open than the daemon has files for.
func TestAttackConnections(t *testing.T) {
	s := prepare(t, "")
	s.enter = []string{"sh", "-c", `ulimit -n 2000 && exec "$@"`, "sh"}
	s.start()
	from := func(addr string) net.Dialer { return net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}} }
	attack(t, s, "2,500 idle connections from one address, where the daemon has 2,000 files", func() string {
		d := from("127.0.6.1")
		for range 2500 {
			c, err := d.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") // then it may be idle for minutes
		}
		other := from("127.0.6.2")
		client := http.Client{Transport: &http.Transport{DialContext: other.DialContext, DisableKeepAlives: true},
			Timeout: 30 * time.Second}
		if a := s.askBy(&client, "http://"+s.addr, "GET", "/api/v1/overview", viewerSecret, ""); a.code != 200 {
			t.Errorf("a viewer elsewhere: %d %s", a.code, a.body)
		}
		fresh := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", s.socket)
			}}, Timeout: 30 * time.Second}
		if a := s.askBy(&fresh, "http://unix", "GET", "/api/v1/checks", "", ""); a.code != 200 {
			t.Errorf("an operator on the socket: %d %s", a.code, a.body)
		}
		return "three quarters of the places"
	})
}
