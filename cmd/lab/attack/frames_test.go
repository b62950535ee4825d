package attack

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// got is how the daemon answered a message.
func got(m any, err error) string {
	switch m := m.(type) {
	case wire.Ack:
		return "taken"
	case wire.Reject:
		return "refused"
	default:
		_ = m
		return fmt.Sprintf("no answer (%v)", err)
	}
}

// TestAttackFarHours sends one message whose 65,000 frames are each of another hour since 1970, by the token of one
// compute node; then messages as far apart as they may be. After kill -9 the daemon is ready again.
func TestAttackFarHours(t *testing.T) {
	s := newSite(t, "")
	evil := s.agent(t, oneSecret, "cn1", topology.Compute)
	attack(t, s, "65,000 frames, each in another hour", func() string {
		var times []int64
		for i := range 65_000 {
			times = append(times, int64(i)*7_200_000+1000)
		}
		m, err := evil.send(frames("cn1", topology.Compute, times...), 20*time.Second)
		if r, ok := m.(wire.Reject); !ok || !strings.Contains(r.Text, "ago; its clock is wrong") {
			t.Errorf("answered %v, %v", m, err)
		}
		return got(m, err)
	})
	attack(t, s, "messages of frames in every two minutes of an hour, of every hour of a week", func() string {
		taken, hours := 0, 20
		if long {
			hours = 160
		}
		for h := range hours {
			var times []int64
			newest := time.Now().Add(-time.Duration(h) * time.Hour).UnixMilli()
			for i := range 3000 { // in an order that would open each block again and again
				times = append(times, newest-int64(i%29)*120_000-int64(i))
			}
			m, err := evil.send(frames("cn1", topology.Compute, times...), 30*time.Second)
			if _, ok := m.(wire.Ack); !ok {
				t.Errorf("answered %v, %v", m, err)
				return got(m, err)
			}
			taken++
		}
		return fmt.Sprintf("%d messages kept", taken)
	})
	s.kill()
	took := s.start()
	if used := s.cpu(); used > 20*time.Second {
		t.Errorf("after kill -9 the daemon was ready after %s, for which it used a processor for %s", took, used)
	}
}

// TestAttackRoles lets a compute node say that it is a forwarder with six clients.
func TestAttackRoles(t *testing.T) {
	s := newSite(t, "")
	many := s.agent(t, manySecret, "fwd1", topology.Forwarder)
	list := func(node string, clients ...string) []collector.Frame {
		f := frames(topology.NodeID(node), topology.Forwarder, time.Now().UnixMilli())
		f[0].RoutesComplete = true
		for _, c := range clients {
			f[0].Routes = append(f[0].Routes,
				collector.Route{Client: topology.NodeID(c), Forwarder: topology.ForwarderID(node)})
		}
		return f
	}
	clients := []string{"cn2", "cn3", "cn4"}
	if m, err := many.send(list("fwd1", clients...), 10*time.Second); got(m, err) != "taken" {
		t.Fatal(m, err)
	}
	evil := s.agent(t, oneSecret, "cn1", topology.Forwarder)
	attack(t, s, "a compute node that says it is a forwarder", func() string {
		m, err := evil.send(list("cn1", "cn2", "cn3", "cn4", "fwd2", "fwd3", "fwd4"), 10*time.Second)
		if m2, err := many.send(list("fwd1", clients...), 10*time.Second); got(m2, err) != "taken" {
			t.Error(m2, err)
		}
		time.Sleep(1500 * time.Millisecond) // a snapshot is made each second
		shown := s.observed()
		for _, node := range append(clients, "fwd2", "fwd3", "fwd4") {
			if want := map[bool]string{true: "fwd1"}[strings.HasPrefix(node, "cn")]; shown[node] != want {
				t.Errorf("%s is shown on %q, want %q", node, shown[node], want)
			}
		}
		return got(m, err)
	})
}

// TestAttackRoutes names a million clients in lists of a forwarder.
func TestAttackRoutes(t *testing.T) {
	s := newSite(t, "")
	evil := s.agent(t, manySecret, "fwd1", topology.Forwarder)
	lists := 5
	if long {
		lists = 24
	}
	attack(t, s, "lists of 50,000 more clients each", func() string {
		for i := range lists {
			f := frames("fwd1", topology.Forwarder, time.Now().UnixMilli())
			for n := range 50_000 {
				f[0].Routes = append(f[0].Routes,
					collector.Route{Client: topology.NodeID(fmt.Sprint("x", i, "-", n)), Forwarder: "fwd1"})
			}
			if m, err := evil.send(f, 20*time.Second); err != nil {
				t.Errorf("list %d: %v, %v", i, m, err)
				break
			}
		}
		shown := len(s.observed())
		if left := s.metric("fairway_ingest_dropped_clients_total"); shown > 4+64 || left < float64(lists*50_000-64) {
			t.Errorf("%d clients are shown, %.0f are counted as left out", shown, left)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			if a := s.askLocal("GET", "/api/v1/findings", ""); strings.Contains(a.body, "lists more clients") {
				break
			}
			if time.Now().After(end) {
				t.Error("a finding is missing")
				break
			}
		}
		return fmt.Sprintf("%d of %d shown, and a finding", shown, lists*50_000)
	})
}

// TestAttackMemory sends what is small on its way and large in memory: 8 million jobs of two bytes each in a message,
// one node's newest jobs after the other's, and messages before any hello that never end.
func TestAttackMemory(t *testing.T) {
	s := newSite(t, "")
	jobs := func(node string, n, frames int) (out []collector.Frame) {
		for i := range frames {
			f := collector.Frame{Node: topology.NodeID(node), Role: topology.Compute,
				TimeMillis: time.Now().UnixMilli(), Jobs: make([]collector.JobSamples, n)}
			if node == "" {
				f.Node = topology.NodeID(fmt.Sprint("jobs", i))
			}
			out = append(out, f)
		}
		return out
	}
	messages := 2
	if long {
		messages = 8
	}
	attack(t, s, "messages of 8 million jobs by the token of one node", func() string {
		refused := 0
		for range messages {
			m, err := s.agent(t, oneSecret, "cn1", topology.Compute).send(jobs("cn1", 8192, 1000), 30*time.Second)
			if got(m, err) == "taken" {
				t.Error("8 million jobs were taken")
			}
			refused++
		}
		return fmt.Sprintf("%d refused", refused)
	})
	attack(t, s, "8,192 jobs of each of 1,000 nodes by the token of all", func() string {
		evil := s.agent(t, manySecret, "evil", topology.Compute)
		all, left := jobs("", 8192, 1000), 0
		for at := 0; at < len(all); at += 100 {
			m, err := evil.send(all[at:at+100], 30*time.Second)
			if r, ok := m.(wire.Reject); ok && strings.Contains(r.Text, "at most") {
				left++
			} else if err != nil {
				t.Error(err)
				break
			}
		}
		if left == 0 {
			t.Error("all of them are kept")
		}
		return fmt.Sprintf("%d of 10 refused", left)
	})
	attack(t, s, "60 messages of 15 MB that never end, without a hello", func() string {
		open := 0
		for range 60 {
			h := http.Header{"Authorization": {"Bearer " + oneSecret}}
			ws, _, err := websocket.DefaultDialer.Dial("ws://"+s.addr+"/api/v1/ingest", h)
			if err != nil {
				t.Fatal(err)
			}
			defer ws.Close()
			w, err := ws.NextWriter(websocket.BinaryMessage)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(make([]byte, 15<<20)); err == nil {
				open++
			}
		}
		return fmt.Sprintf("%d taken", open)
	})
}

// TestAttackLog has messages refused as fast as they come, each of which is worth a line in the daemon's log.
func TestAttackLog(t *testing.T) {
	s := newSite(t, "")
	n := 10_000
	if long {
		n = 200_000
	}
	attack(t, s, "messages of another node, each refused", func() string {
		evil := s.agent(t, oneSecret, "cn1", topology.Compute)
		go func() { // what is answered is read
			for {
				if _, _, err := evil.ws.ReadMessage(); err != nil {
					return
				}
			}
		}()
		sent := 0
		for ; sent < n; sent++ {
			msg, err := wire.Append(nil, &wire.Frames{Seq: uint64(sent + 1),
				Frames: frames("cn2", topology.Compute, time.Now().UnixMilli())})
			if err == nil {
				err = evil.ws.WriteMessage(websocket.BinaryMessage, msg)
			}
			if err != nil {
				break
			}
		}
		info, err := os.Stat(s.log.Name())
		if err != nil {
			t.Fatal(err)
		}
		if sent < n/10 || info.Size() > int64(n)*50 {
			t.Errorf("%d messages made %d bytes of log", sent, info.Size())
		}
		return fmt.Sprintf("%d messages, %d kB of log", sent, info.Size()>>10)
	})
}

// TestAttackNames brings names that would write to an operator's terminal, in frames and as an operator's words.
func TestAttackNames(t *testing.T) {
	s := newSite(t, "")
	const escape = "\x1b]0;owned\x07\x1b[2J"
	evil := s.agent(t, manySecret, "cn3", topology.Compute)
	attack(t, s, "names with escape sequences", func() string {
		refused := 0
		for _, f := range []collector.Frame{
			{Node: "cn9" + escape}, {Node: "cn3", Jobs: []collector.JobSamples{{Job: "7" + escape}}},
			{Node: "cn3", Sources: []collector.SourceStatus{{Name: escape, Err: escape}}},
			{Node: "cn3", Routes: []collector.Route{{Client: "cn3", Forwarder: "f" + escape}}},
		} {
			f.Role, f.TimeMillis = topology.Compute, time.Now().UnixMilli()
			m, err := evil.send([]collector.Frame{f}, 10*time.Second)
			if r, ok := m.(wire.Reject); ok && strings.Contains(r.Text, "control") &&
				!strings.Contains(r.Text, "\x1b") {
				refused++
			} else {
				t.Errorf("answered %v, %v", m, err)
			}
		}
		// What a source says of its failure, and a job's name, are text.
		f := frames("cn3", topology.Compute, time.Now().UnixMilli())
		f[0].Sources = []collector.SourceStatus{{Name: "diod", Err: "bad" + escape}}
		if m, err := evil.send(f, 10*time.Second); got(m, err) != "taken" {
			t.Error(m, err)
		}
		if a := s.askLocal("POST", "/api/v1/dispatch",
			`{"job":"17","nodes":["cn3"],"user":"u\u001b[2J","app":"a\u001b]0;owned\u0007"}`); a.code != 200 {
			t.Errorf("dispatch: %d %s", a.code, a.body)
		}
		time.Sleep(1500 * time.Millisecond)
		fairway := binary(t, "fairway")
		for _, args := range [][]string{{"nodes"}, {"node", "cn3"}, {"jobs"}, {"job", "17"}, {"node", "x" + escape},
			{"job", escape}, {"audit"}, {"doctor"}, {"top", "--once"}} {
			c := exec.Command(fairway, append(args, "--socket", s.socket)...)
			c.Env = append(os.Environ(), "NO_COLOR=1", "FAIRWAY_SOCKET="+s.socket)
			out, _ := c.CombinedOutput()
			if strings.ContainsAny(string(out), "\x1b\x07") {
				t.Errorf("fairway %q writes %q", args, out)
			}
		}
		return fmt.Sprintf("%d of 4 refused", refused)
	})
}

// TestAttackFlood brings frames as fast as the daemon takes them. An acknowledgement waits for the sync that everybody
// shares, at most store.sync; beside the flood there is a neighbour who makes it so before the attack as well.
func TestAttackFlood(t *testing.T) {
	s := newSite(t, "")
	neighbour := s.agent(t, manySecret, "cn3", topology.Compute)
	done := make(chan struct{})
	s.wait.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_, _ = neighbour.send(frames("cn3", topology.Compute, time.Now().UnixMilli()), 30*time.Second)
			}
		}
	})
	defer close(done)
	evil := s.agent(t, oneSecret, "cn1", topology.Compute)
	length := 2 * time.Second
	if long {
		length = 20 * time.Second
	}
	attack(t, s, "frames of one node as fast as they are taken, 60 messages under way", func() string {
		var msgs [][]byte
		for i := range 60 {
			var times []int64
			for j := range 3000 {
				times = append(times, time.Now().UnixMilli()-int64(i*10_000+j)*10)
			}
			msg, err := wire.Append(nil,
				&wire.Frames{Seq: uint64(i + 1), Frames: frames("cn1", topology.Compute, times...)})
			if err != nil {
				t.Fatal(err)
			}
			msgs = append(msgs, msg)
		}
		go func() { // acknowledgements are read, so that the daemon goes on
			for {
				if _, _, err := evil.ws.ReadMessage(); err != nil {
					return
				}
			}
		}()
		sent := 0
		for end := time.Now().Add(length); time.Now().Before(end); sent++ {
			if err := evil.ws.WriteMessage(websocket.BinaryMessage, msgs[sent%len(msgs)]); err != nil {
				break // it brought too much
			}
		}
		return fmt.Sprintf("%d messages of 3,000 frames", sent)
	})
}

// metric reads one value of the daemon's metrics.
func (s *site) metric(name string) (v float64) {
	s.t.Helper()
	for line := range strings.Lines(s.askLocal("GET", "/metrics", "").body) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(text, &v); err != nil {
				s.t.Error(err)
			}
			return v
		}
	}
	s.t.Errorf("no metric %s", name)
	return 0
}
