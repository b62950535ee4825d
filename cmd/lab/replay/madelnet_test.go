package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
)

// madeLNet is a record of four routers between three clients and a server that is made anew in LNet's formats.
type madeLNet struct {
	r      *rand.Rand
	routed [4]uint64
	trips  [3][4]struct{ n, ns uint64 } // of each client through each router
}

// routerState is what one router does in a second.
type routerState struct {
	times        uint64 // as long as usual
	frozen, down bool
}

func (s routerState) passes() bool { return !s.frozen && !s.down }

// second counts one second of all nodes and returns what each would read at its end.
func (m *madeLNet) second(at time.Time, routers [4]routerState) (out []Moment) {
	const root = "sys/kernel/debug/lnet/"
	for r, state := range routers {
		if !state.passes() {
			continue
		}
		m.routed[r] += 60 / state.times
		nis := "nid status alive refs peer rtr max tx min\n"
		for net := 1; net <= 2; net++ {
			nis += fmt.Sprintf("10.%d.0.1%d@tcp%d up 0 5 8 0 256 256 250\n", net, r+1, net)
		}
		out = append(out, Moment{At: at, Node: fmt.Sprint("rtr", r+1), Texts: map[string][]byte{
			root + "stats": fmt.Appendf(nil, "9 31 0 5 5 %d 0 200 200 %d 0\n", m.routed[r], m.routed[r]*65536),
			root + "nis":   []byte(nis), root + "routes": []byte("Routing enabled\nnet hops priority state router\n"),
			root + "buffers": []byte("pages count credits min\n0 512 512 500\n1 4096 4096 4000\n256 256 250 200\n"),
			root + "peers":   []byte("nid refs state last max rtr min tx min queue\n")}})
	}
	for c := range m.trips {
		peers := "nid refs state last max rtr min tx min queue\n"
		routes := "Routing disabled\nnet hops priority state router\n"
		shown, ways := "peer:\n", "route:\n"
		for r, state := range routers {
			nid, up, credits, t := fmt.Sprintf("10.1.0.1%d@tcp1", r+1), "up", 8, &m.trips[c][r]
			if state.passes() {
				n := 10 / state.times
				t.n, t.ns = t.n+n, t.ns+n*state.times*2e7*(80+m.r.Uint64N(40))/100
			} else {
				credits = 2
			}
			if state.down {
				up = "down"
			}
			peers += fmt.Sprintf("%s 4 %s -1 8 8 8 %d -2 0\n", nid, up, credits)
			routes += fmt.Sprintf("tcp2 -1 0 %s %s\n", up, nid)
			ways += fmt.Sprintf("-     net: tcp2\n      gateway: %s\n      state: %s\n", nid, up)
			shown += fmt.Sprintf("-     primary nid: %[1]s\n      peer ni:\n      -     nid: %[1]s\n"+
				"            statistics:\n                  send_count: %[2]d\n                  recv_count: %[2]d\n"+
				"                  get_rtt_samples: %[2]d\n                  get_rtt_avg_nsec: %[3]d\n", nid, t.n,
				t.ns/max(t.n, 1))
		}
		out = append(out, Moment{At: at, Node: fmt.Sprint("cn", c+1), Texts: map[string][]byte{
			root + "stats": []byte("6 33 0 635 774 0 0 18091392 23067568 0 0\n"), root + "peers": []byte(peers),
			root + "routes": []byte(routes),
			root + "nis": fmt.Appendf(nil, "nid status alive refs peer rtr max tx min\n"+
				"10.1.0.2%d@tcp1 up -1 13 8 0 256 250 223\n", c+1),
			"lnetctl_peer_show_-v_4": []byte(shown), "lnetctl_route_show_-v": []byte(ways),
			"lnetctl_global_show": []byte("global:\n    discovery: 1\n")}})
	}
	return out
}

// TestAMadeRecordOfLNetIsNamed: a router through which round trips take ten times as long is slow, one that takes
// messages and passes none on while it reports nothing is hung, one that its senders call down is dead.
func TestAMadeRecordOfLNetIsNamed(t *testing.T) {
	const begin = 200
	for word, c := range map[anomaly.Condition]struct {
		state  routerState
		within int
	}{
		anomaly.Slow: {routerState{times: 10}, 90},
		anomaly.Hung: {routerState{times: 1, frozen: true}, 60},
		anomaly.Dead: {routerState{times: 1, down: true}, 60},
	} {
		t.Run(string(word), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, first := &madeLNet{r: rand.New(rand.NewPCG(1, 1))}, time.Now().Add(time.Second)
				var record []Moment
				for s := range begin + c.within + 5 {
					now := [4]routerState{{times: 1}, {times: 1}, {times: 1}, {times: 1}}
					if s >= begin {
						now[1] = c.state
					}
					record = append(record, m.second(first.Add(time.Duration(s)*time.Second), now)...)
				}
				f := &Fault{Node: "rtr2", Kind: string(word), Begin: first.Add(begin * time.Second)}
				f.FoundBy = f.Begin.Add(time.Duration(c.within) * time.Second)
				named(t, "lnet-2.18", record, f)
			})
		})
	}
}
