package lnet

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"fairway/cmd/lab/conform/recorded"
	"fairway/collector"
)

// growing is a tree whose files change while the source's sampler reads them.
type growing struct {
	mu    sync.Mutex // guards files
	files fstest.MapFS
}

func (c *growing) Open(name string) (fs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files.Open(name)
}

func (c *growing) put(name string, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[name] = &fstest.MapFile{Data: text}
}

// peerShown is a router and a server as lnetctl of different releases lists them: the entry's dash and blanks, and what
// it knows.
func peerShown(dash string, release string) string {
	pad := strings.Repeat(" ", len(dash))
	var b strings.Builder
	b.WriteString("peer:\n")
	for _, nids := range [][]string{{"10.7.0.1@tcp1", "10.8.0.1@tcp2"}, {"10.8.0.9@tcp2"}} {
		fmt.Fprintf(&b, "    %sprimary nid: %s\n    %sMulti-Rail: True\n    %speer ni:\n", dash, nids[0], pad, pad)
		for i, nid := range nids {
			line := func(indent int, text string) {
				fmt.Fprintf(&b, "    %s%s%s%s\n", pad, pad, strings.Repeat(" ", indent), text)
			}
			fmt.Fprintf(&b, "    %s%snid: %s\n", pad, dash, nid)
			line(0, "state: up")
			line(0, "min_rtr_credits: 4294967294")
			line(0, "statistics:")
			line(4, fmt.Sprintf("send_count: %d", 100+i))
			line(4, "recv_count: 4294967295")
			if release >= "2.17" {
				line(4, "get_rtt_samples: 3")
				line(4, "get_rtt_avg_nsec: 2000000")
				line(4, "put_ack_samples: 1")
				line(4, "put_ack_avg_nsec: 6000000")
			}
			if release >= "2.11" {
				line(0, "received_stats:")
				for _, kind := range []string{"put: 5", "get: 7", "reply: 11", "ack: 13", "hello: 0"} {
					line(4, kind)
				}
			}
		}
	}
	return b.String()
}

// TestReleasesOfLnetctl: what lnetctl says is read by its grammar, however a release writes it.
func TestReleasesOfLnetctl(t *testing.T) {
	for _, dash := range []string{"- ", "-     ", "-   "} {
		for _, release := range []string{"2.10", "2.12", "2.18"} {
			text := peerShown(dash, release)
			peers, err := ParsePeerShow([]byte(text))
			if err != nil || len(peers) != 3 {
				t.Fatalf("%s with %q: %d peers, %v", release, dash, len(peers), err)
			}
			p := peers[1]
			want := PeerInterface{Primary: "10.7.0.1@tcp1", NID: "10.8.0.1@tcp2", State: "up", Counted: true,
				Messages: 101 + 1<<32 - 1}
			if release != "2.10" {
				want.ByKind, want.FromPut, want.FromReply, want.FromAck = true, 5, 11, 13
			}
			if release == "2.18" {
				want.RoundTrips = RoundTrip{Count: 4, NanosecondsSum: 12e6}
			}
			if p != want {
				t.Errorf("%s with %q: %+v", release, dash, p)
			}
		}
	}
	for name, text := range map[string]string{
		"2.12": "route:\n    - net: o2ib1\n      gateway: 10.7.0.1@tcp\n      hop: 4294967295\n      priority: 3\n" +
			"      state: down\n",
		"2.18": "route:\n-     net: o2ib1\n      gateway: 10.7.0.1@tcp\n      hop: -1\n      priority: 3\n" +
			"      state: down\n      type: single-hop\n",
	} {
		routes, err := ParseRouteShow([]byte(text))
		if want := []Route{{"o2ib1", -1, 3, "down", "10.7.0.1@tcp"}}; err != nil || !slices.Equal(routes, want) {
			t.Errorf("routes of %s: %+v, %v", name, routes, err)
		}
	}
	rules, err := ParseRules([]byte("udsp:\n-     idx: 0\n      src: NA\n      dst: *@tcp\n      rte: 10.8.0.1@tcp2\n" +
		"      action:\n            priority: -1\n-     idx: 4294967295\n"))
	if err == nil {
		t.Errorf("a rule with the index -1 is one: %+v", rules)
	}
	rules, err = ParseRules([]byte("udsp:\n    - idx: 2\n      dst: *@tcp\n      rte: fe80::1@tcp2\n" +
		"    - idx: 3\n      dst: [5-8].1.1.1@tcp\n"))
	if want := []Rule{{2, "*@tcp", "fe80::1@tcp2"}, {3, "[5-8].1.1.1@tcp", ""}}; err != nil ||
		!slices.Equal(rules, want) {
		t.Errorf("rules %+v, %v", rules, err)
	}
	nids, err := ParseNetShow([]byte("net:\n-     net type: lo\n      local NI(s):\n      -     nid: 0@lo\n" +
		"            status: up\n-     net type: tcp1\n      local NI(s):\n      -     nid: 10.7.0.1@tcp1\n" +
		"            interfaces:\n                  0: eth0\n"))
	if err != nil || !slices.Equal(nids, []string{"10.7.0.1@tcp1"}) {
		t.Errorf("own network ids %v, %v", nids, err)
	}
}

// TestWhatLnetctlDoesNotSay: an answer without what was asked for is an error, never an empty list or a zero.
func TestWhatLnetctlDoesNotSay(t *testing.T) {
	refused := "show:\n    - peer:\n          errno: -1\n          descr: \"cannot get peer information: Operation " +
		"not permitted\"\n"
	for _, text := range []string{refused, "peer\n", "peer:\n  - nid: [\n", "peer: no\n",
		peerShown("- ", "2.18") + "x: [",
		strings.Replace(peerShown("- ", "2.18"), "send_count: 100", "send_count: -3", 1),
		strings.Replace(peerShown("- ", "2.18"), "nid: 10.8.0.9@tcp2\n        state: up", "state: up", 1)} {
		if peers, err := ParsePeerShow([]byte(text)); err == nil {
			t.Errorf("%.60q...: %d peers and no error", text, len(peers))
		}
	}
	if _, err := ParseNetShow(nil); err == nil {
		t.Error("a node without any network id")
	}
	if _, _, err := ParseGlobal(nil, "drop_asym_route"); err == nil {
		t.Error("no settings at all")
	}
	if peers, err := ParsePeerShow(nil); err != nil || len(peers) != 0 {
		t.Errorf("a node without peers: %v, %v", peers, err)
	}
	if routes, err := ParseRouteShow([]byte("route:\n    - net: o2ib\n      hop: 1\n")); err == nil {
		t.Errorf("a route over nothing: %+v", routes)
	}
}

// TestTablesByTheirHeading: a column more, one less or another order are read; a table that is another one is an error.
func TestTablesByTheirHeading(t *testing.T) {
	peers, err := ParsePeers([]byte("nid refs state last max health rtr min tx min queue\n" +
		"10.7.0.1@tcp 1 up -1 8 1000 4294967294 -2 4294967293 -3 77\n"))
	if want := []Peer{{"10.7.0.1@tcp", "up", 8, -2, -3, 77}}; err != nil || !slices.Equal(peers, want) {
		t.Errorf("%+v, %v", peers, err)
	}
	for first, want := range map[string]bool{"enabled": true, "disabled": false, "starting": false, "stopping": false} {
		routing, routes, err := ParseRoutes([]byte("Routing " + first + "\nnet      hops priority   state router\n" +
			"tcp2       -1        0      up 10.7.0.1@tcp1\n"))
		if err != nil || routing != want || len(routes) != 1 || routes[0].Hops != -1 {
			t.Errorf("%s: %t, %+v, %v", first, routing, routes, err)
		}
	}
	if routing, _, err := ParseRoutes([]byte("net hops priority state router\n")); err == nil || routing {
		t.Error("without its first line")
	}
	if _, out, err := ParseRoutes([]byte("Routing disabled\nnet gateway priority state\na b 1 up\n")); err == nil {
		t.Errorf("another table: %+v", out)
	}
	if out, err := ParsePeers([]byte("nid refs state\n10.7.0.1@tcp 1 up\n")); err == nil {
		t.Errorf("a heading without credits: %+v", out)
	}
}

// TestStepBack: a counter that went back while one that cannot wrap did so too began anew; alone near 2^32 it wrapped.
func TestStepBack(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		messages            float64 // below 0: not known
	}{
		{"wraps", "5 28 0 1 1 4294967290 0 10 10 90000 0", "5 28 0 1 1 94 0 10 10 99000 0", 100},
		{"is set to 0", "5 28 0 1 1 3500000000 0 1000 1000 90000 0", "5 28 0 1 1 900 0 10 10 9000 0", -1},
		{"is set to 0, and moves much", "5 28 0 1 1 3500000000 0 10 1000 90000 0",
			"5 28 0 1 1 900 0 10 10 99000 0", -1},
	} {
		fsys := &growing{files: router(c.before, peers)}
		s := New(fsys)
		var r collector.Reading
		for i, line := range []string{c.before, c.after} {
			fsys.put("sys/kernel/debug/lnet/stats", []byte(line))
			r = collector.Reading{Now: time.Unix(int64(50+i), 0)}
			if err := s.Read(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
		v, known := collector.SampleOf(r.Samples, collector.RoutedOps)
		if known != (c.messages >= 0) || known && v != c.messages || known == (r.Resets > 0) {
			t.Errorf("%s: %g messages a second (known: %t), %d resets", c.name, v, known, r.Resets)
		}
	}
}

// TestRecordOfLNet reads every table and every answer of lnetctl in a record of a real LNet 2.18, and counts what its
// routers forwarded: the differences of its own counters.
func TestRecordOfLNet(t *testing.T) {
	files := recorded.Open(t, "lnet-2.18", "cn1.log", "oss1.log", "rtr1.log", "rtr2.log")
	for name, file := range files {
		fsys := &growing{files: fstest.MapFS{}}
		s := New(fsys)
		read, down := map[string]int{}, 0
		var first, last Stats
		var routed, lasted float64
		var at time.Time
		for _, f := range recorded.FramesOf(t, file) {
			if f.Err != "" {
				continue
			}
			var err error
			switch f.Name {
			case "lnetctl_peer_show_-v_4":
				var all []PeerInterface
				if all, err = ParsePeerShow(f.Text); err == nil && (len(all) < 4 || !all[0].ByKind || !all[0].Counted) {
					err = fmt.Errorf("%+v", all)
				}
			case "lnetctl_route_show_-v":
				_, err = ParseRouteShow(f.Text)
			case "lnetctl_net_show_-v_4":
				_, err = ParseNetShow(f.Text)
			case "lnetctl_global_show":
				_, _, err = ParseGlobal(f.Text, "drop_asym_route")
			}
			if read[f.Name]++; err != nil {
				t.Fatalf("%s at %v: %s: %v", name, f.At, f.Name, err)
			}
			if !strings.HasSuffix(f.Name, "/lnet/stats") {
				fsys.put(f.Name, f.Text)
				continue
			}
			r := collector.Reading{Now: at} // the second before is whole
			if !at.IsZero() {
				if err := s.Read(t.Context(), &r); err != nil {
					t.Fatalf("%s at %v: %v", name, at, err)
				}
				if v, known := collector.SampleOf(r.Samples, collector.RoutedBytes); known {
					st, _ := ParseStats(fsys.files[f.Name].Data)
					routed += v * s.bytes.Seconds()
					lasted += float64(st.RoutedBytes - last.RoutedBytes)
				}
				last, _ = ParseStats(fsys.files[f.Name].Data)
				for _, to := range r.Targets {
					if up, known := collector.SampleOf(to.Samples, collector.RouteUp); known && up == 0 {
						down++
					}
				}
			}
			fsys.put(f.Name, f.Text)
			at = f.At
			if first == (Stats{}) {
				first = last
			}
		}
		s.Close()
		router := strings.HasPrefix(name, "rtr")
		if router != (routed > 0) || lasted > 0 && (routed < .999*lasted || routed > 1.001*lasted) {
			t.Errorf("%s forwarded %.0f bytes, its counter says %.0f", name, routed, lasted)
		}
		if !router && down < 30 {
			t.Errorf("%s saw a route down in %d seconds only: rtr1 was dead", name, down)
		}
		t.Logf("%s: %v, %.0f bytes forwarded, %d seconds of routes that are down", name, read, routed, down)
	}
}

func FuzzShow(f *testing.F) {
	f.Add(peerShown("- ", "2.10"))
	f.Add(peerShown("-     ", "2.18"))
	f.Add("route:\n    - net: o2ib1\n      gateway: 10.0.0.1@tcp\n      priority: 5\n      state: up\n")
	f.Add("udsp:\n    - idx: 2\n      dst: *@tcp\n")
	f.Fuzz(func(t *testing.T, text string) {
		peers, err := ParsePeerShow([]byte(text))
		if err == nil && len(peers) == 0 && strings.TrimSpace(text) != "" && !strings.Contains(text, "peer") {
			t.Error("no peers, and no error")
		}
		routes, _ := ParseRouteShow([]byte(text))
		rules, _ := ParseRules([]byte(text))
		if n := strings.Count(text, "-"); len(routes)+len(rules) > n+strings.Count(text, "[") {
			t.Errorf("%d routes, %d rules", len(routes), len(rules))
		}
	})
}
