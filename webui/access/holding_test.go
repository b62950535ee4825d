package access

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"fairway/remap"
	"fairway/webui/access/budget"
)

// TestWhoDoesNotReadGivesWay: the answer of a query that nobody reads keeps the only place; whoever waits for it gets
// it.
func TestWhoDoesNotReadGivesWay(t *testing.T) {
	limits := budget.Defaults()
	limits.Queries, limits.Wait = 2, 8*time.Second // one of two is an operator's
	gate, err := NewGate(Config{Anonymous: remap.Viewer, Limits: limits,
		Tokens: []Token{{Name: "dashboard", Role: remap.Viewer, SHA256: HashToken("secret")}}}, []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 1<<20)
	site := &Site{Answered: func(*Route, int, time.Duration) {}, Routes: []Route{{"GET", "/q", remap.Viewer, TCP,
		func(w http.ResponseWriter, r *http.Request, by Caller) error {
			if by.Name == "" {
				for range 64 {
					if _, err := w.Write(large); err != nil {
						return nil
					}
				}
			}
			_, err := fmt.Fprint(w, by.Name)
			return err
		}, Query}}}
	server := httptest.NewServer(gate.Handler(TCP, site))
	defer server.Close()
	evil, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer evil.Close()
	fmt.Fprint(evil, "GET /q HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	if _, err := evil.Read(make([]byte, 1)); err != nil { // it has its place, and reads no further
		t.Fatal(err)
	}
	r, err := http.NewRequest("GET", server.URL+"/q", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer secret")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("another viewer got %d", res.StatusCode)
	}
}
