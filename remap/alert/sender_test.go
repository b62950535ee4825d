package alert

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/remap/desk"
)

func writeFile(path string, b []byte) error { return os.WriteFile(path, b, 0o600) }

// count is a webhook that counts what it is given.
type count struct {
	mu    sync.Mutex
	got   map[string]int // by id and state
	seen  map[string]bool
	again int           // messages that were given again
	slow  chan struct{} // when set, requests wait for it
}

func (c *count) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.slow != nil {
		<-c.slow
	}
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[m.ID] {
		c.again++
		return
	}
	c.seen[m.ID] = true
	for _, a := range m.Alerts {
		key := fmt.Sprint(a.ID, " ", a.Ended.IsZero())
		c.got[key]++
	}
}

func (c *count) of(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[key]
}

func newCount(t testing.TB) (*count, *httptest.Server) {
	c := &count{got: map[string]int{}, seen: map[string]bool{}}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	return c, s
}

func hook(t testing.TB, name, url string) Receiver { return hookIn(t, t.TempDir(), name, url) }

func hookIn(t testing.TB, dir, name, url string) Receiver {
	key := filepath.Join(dir, name)
	if err := writeFile(key, []byte("sesame")); err != nil {
		t.Fatal(err)
	}
	return Receiver{Name: name, Kind: kindWebhook, URL: url, SecretFile: key}
}

func start(t testing.TB, d *desk.Desk, dir string, receivers ...Receiver) (*Sender, func()) {
	s, err := New(Config{Settings: Settings{Receivers: receivers}, Journal: d, Path: filepath.Join(dir, "alerts"),
		Site: "hpc1", BaseURL: "http://h", User: olga, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	return s, func() { stop(); <-done }
}

// TestAReceiverThatHangsDelaysNobody: of two receivers one never answers; the other has a finding at once, the desk
// records as before, and the status names the one that hangs.
func TestAReceiverThatHangsDelaysNobody(t *testing.T) {
	dir := t.TempDir()
	d := openDesk(t, dir)
	defer d.Close()
	good, goodServer := newCount(t)
	hung, hungServer := newCount(t)
	hung.slow = make(chan struct{})
	s, stop := start(t, d, dir, hook(t, "hung", hungServer.URL), hook(t, "good", goodServer.URL))
	defer stop()
	defer close(hung.slow)
	for i := range 20 {
		if err := d.RecordFindings(t.Context(),
			[]anomaly.Change{finding(i, anomaly.Confirmed, time.Now())}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the good one has all", func() bool { return good.of("F-0019 true") == 1 })
	eventually(t, "the other has them waiting", func() bool {
		all, open := s.Status()
		return len(all) == 2 && all[0].Waiting == 20 && all[1].Waiting == 0 && all[1].Sent == 20 && open == 20
	})
	if err := s.Test(remap.Person{Name: "eve", Role: remap.Viewer}); err == nil {
		t.Error("a viewer sent a test alert")
	}
	if err := s.Test(remap.Person{Name: "olga", Role: remap.Operator}); err != nil {
		t.Error(err)
	}
	eventually(t, "the test arrives", func() bool {
		all, _ := s.Status()
		return all[1].Sent == 21
	})
}

// TestAReceiverComesBack: what it missed while it was away arrives, and nothing a second time.
func TestAReceiverComesBack(t *testing.T) {
	dir := t.TempDir()
	d := openDesk(t, dir)
	defer d.Close()
	c := &count{got: map[string]int{}, seen: map[string]bool{}}
	addr := freePort(t)
	s, stop := start(t, d, dir, hook(t, "pager", "http://"+addr))
	defer stop()
	record := func(i int, st anomaly.State) {
		t.Helper()
		if err := d.RecordFindings(t.Context(), []anomaly.Change{finding(i, st, time.Now())}); err != nil {
			t.Fatal(err)
		}
	}
	fails := func(waiting int) {
		t.Helper()
		eventually(t, "the failure shows", func() bool {
			all, _ := s.Status()
			return all[0].Failed > 0 && strings.Contains(all[0].Error, "refused") && all[0].Waiting == waiting
		})
	}
	record(1, anomaly.Confirmed)
	fails(1) // what was tried once is tried again as it was: the second finding must not be in it while it is open
	record(2, anomaly.Confirmed)
	record(2, anomaly.Returned)
	fails(2)
	back, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("the receiver's port: %v", err)
	}
	server := &http.Server{Handler: c}
	go func() { _ = server.Serve(back) }()
	defer server.Close()
	eventually(t, "both arrive", func() bool { return c.of("F-0001 true") == 1 && c.of("F-0002 false") == 1 })
	if c.of("F-0002 true") != 0 {
		t.Error("somebody is called about what has ended")
	}
	eventually(t, "the status is well again", func() bool {
		all, _ := s.Status()
		return all[0].Error == "" && all[0].Waiting == 0
	})
}

// TestHelperProcess is the daemon of TestNothingIsLostOverKills: it records a finding after the other, each
// confirmed and then returned, and writes its number when it is on disk.
func TestHelperProcess(t *testing.T) {
	dir := os.Getenv("FAIRWAY_ALERT_DIR")
	if dir == "" {
		t.Skip("only a helper of TestNothingIsLostOverKills")
	}
	d := openDesk(t, dir)
	_, stop := start(t, d, dir, hookIn(t, dir, "pager", os.Getenv("FAIRWAY_ALERT_URL")))
	defer stop()
	next := 0
	_, err := fmt.Sscan(os.Getenv("FAIRWAY_ALERT_NEXT"), &next)
	if err != nil {
		t.Fatal(err)
	}
	for i := next; os.Getenv("FAIRWAY_ALERT_DRAIN") == ""; i++ {
		if err := d.RecordFindings(t.Context(),
			[]anomaly.Change{finding(i, anomaly.Confirmed, time.Now())}); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("recorded %d\n", i)
		time.Sleep(5 * time.Millisecond)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has seen enough
}

// TestNothingIsLostOverKills kills the daemon while findings come and go out. Every finding that was recorded
// arrives, and none in two messages. A kill between a receiver's answer and the note of it repeats that message, which
// the receiver knows by its ID.
func TestNothingIsLostOverKills(t *testing.T) {
	kills := 12
	if s := os.Getenv("FAIRWAY_KILLS"); s != "" {
		if _, err := fmt.Sscan(s, &kills); err != nil {
			t.Fatal(err)
		}
	}
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(7, 7))
	c, server := newCount(t)
	next := 0
	child := func(drain string) (*exec.Cmd, io.WriteCloser, *bufio.Scanner) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
		cmd.Env = append(os.Environ(), "FAIRWAY_ALERT_DIR="+dir, "FAIRWAY_ALERT_URL="+server.URL,
			fmt.Sprint("FAIRWAY_ALERT_NEXT=", next), "FAIRWAY_ALERT_DRAIN="+drain)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, in, bufio.NewScanner(out)
	}
	for range kills {
		cmd, _, lines := child("")
		for left := 1 + rnd.IntN(30); lines.Scan(); {
			var i int
			if _, err := fmt.Sscanf(lines.Text(), "recorded %d", &i); err != nil {
				continue
			}
			next = i + 1
			if left--; left == 0 {
				time.Sleep(time.Duration(rnd.IntN(5000)) * time.Microsecond)
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
		next++ // one more may be on disk and not have been reported
	}
	cmd, in, _ := child("1")
	defer func() { _ = cmd.Wait() }()
	defer in.Close()
	d := 0
	eventually(t, "every finding has arrived", func() bool {
		for ; d < next; d++ {
			if c.of(fmt.Sprintf("F-%04d true", d)) == 0 && !missingFromJournal(dir, d) {
				return false
			}
		}
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, n := range c.got {
		if n > 1 {
			t.Errorf("%s came in %d messages", key, n)
		}
	}
	t.Logf("%d kills, %d findings, %d messages given again after a kill", kills, len(c.got), c.again)
	if len(c.got) < kills {
		t.Errorf("only %d findings arrived over %d kills", len(c.got), kills)
	}
}

// missingFromJournal says whether a finding was not recorded after all.
func missingFromJournal(dir string, i int) bool {
	b, err := os.ReadFile(filepath.Join(dir, "journal"))
	return err == nil && !strings.Contains(string(b), fmt.Sprintf(`"F-%04d"`, i))
}

// TestEachKindEndsWithItsTime: a receiver that takes a connection and nothing else, or never answers, holds a message
// no longer than its try, so that the daemon can end.
func TestEachKindEndsWithItsTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			if _, err := l.Accept(); err != nil { // it is kept and never read
				return
			}
		}
	}()
	m := &message{Site: "hpc1"}
	for range 100_000 { // more than the connection's buffers hold
		m.Alerts = append(m.Alerts, Alert{ID: "F-1", Kind: "fail_slow", Summary: strings.Repeat("x", 200)})
	}
	at := l.Addr().String()
	for kind, r := range map[string]Receiver{
		kindAlertmanager: {URL: "http://" + at}, kindWebhook: {URL: "http://" + at}, kindSyslog: {Address: "tcp:" + at},
		kindMail:    {Server: at, TLS: "none", From: "a@b.c", To: []string{"d@e.f"}},
		kindCommand: {Command: []string{"sleep", "3600"}},
	} {
		r.Kind = kind
		ch, err := newChannel(&r)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := ch.send(ctx, m); err == nil {
			t.Errorf("%s: it was delivered to nobody", kind)
		}
		cancel()
	}
}
