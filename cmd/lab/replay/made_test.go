package replay

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/tsdb/window"
)

// made is a record of three kernel-NFS gateways and six clients that is made anew in the kernel's formats.
type made struct {
	r       *rand.Rand
	clients [6]counters
	served  [3][2]int // operations and bytes
}

// counters are a client's: operations and milliseconds by class, messages sent and answered.
type counters struct{ ops, millis, sent, answered [3]int }

// state is what a gateway does in a second.
type state struct {
	times         int // as long as usual
	frozen, quiet bool
}

// second counts one second of all nodes and returns what each would read at its end.
func (m *made) second(at time.Time, gateways [3]state) (out []Moment) {
	for c := range m.clients {
		n, g := &m.clients[c], gateways[c%3]
		for class, usual := range [3][2]int{{4, 20}, {20, 40}, {10, 15}} {
			ops := usual[0] * 2 / (1 + g.times)
			if n.sent[0]++; g.frozen {
				continue
			}
			n.sent[0], n.answered[0] = n.sent[0]+ops-1, n.answered[0]+ops
			n.ops[class] += ops
			n.millis[class] += ops * usual[1] * g.times * (80 + m.r.IntN(40)) / 100
			m.served[c%3][0], m.served[c%3][1] = m.served[c%3][0]+ops, m.served[c%3][1]+ops*32768
		}
		if !g.frozen { // what waited is answered
			n.answered[0] = n.sent[0]
		}
		addr := fmt.Sprintf("10.31.0.1%d", 1+c%3)
		out = append(out, Moment{At: at, Node: fmt.Sprint("cn", c+1), Texts: map[string][]byte{
			"proc/self/mounts": fmt.Appendf(nil, "%s:/ /mnt/pfs nfs4 rw,vers=4.2,addr=%s 0 0\n", addr, addr),
			"proc/self/mountstats": fmt.Appendf(nil, "device %s:/ mounted on /mnt/pfs with fstype nfs4 statvers=1.1\n"+
				"\tbytes:\t0 0 0 0 %d %d 0 0\n\txprt:\ttcp 0 0 2 0 0 %d %d 1 9 0 31 7 5\n\tper-op statistics\n"+
				"\t READ: %[6]d %[6]d 0 0 0 0 0 %[7]d 0\n\t WRITE: %[8]d %[8]d 0 0 0 0 0 %[9]d 0\n"+
				"\t GETATTR: %[10]d %[10]d 0 0 0 0 0 %[11]d 0\n", addr, n.ops[0]*32768, n.ops[1]*32768,
				n.sent[0], n.answered[0], n.ops[0], n.millis[0], n.ops[1], n.millis[1], n.ops[2], n.millis[2])}})
	}
	for g := range m.served {
		if s := m.served[g]; !gateways[g].frozen && !gateways[g].quiet {
			out = append(out, Moment{At: at, Node: fmt.Sprint("gw", g+1), Texts: map[string][]byte{
				"proc/net/rpc/nfsd": fmt.Appendf(nil, "io %[1]d %[1]d\nth 8 0\nproc3 22%[3]s %[2]d %[2]d%[3]s%[3]s\n",
					s[1]/2, s[0]/2, strings.Repeat(" 0", 6)),
				"proc/fs/nfsd/pool_stats": fmt.Appendf(nil, "# pool packets-arrived sockets-enqueued threads-woken\n"+
					"0 %[1]d %[1]d %[1]d\n", s[0])}})
		}
	}
	return out
}

// TestAMadeRecordOfNFSIsNamed: a gateway ten times as slow is slow, whether its agent reports or not; one that is
// frozen is hung, and then dead; nobody else is accused.
func TestAMadeRecordOfNFSIsNamed(t *testing.T) {
	const begin = 120
	for name, c := range map[string]struct {
		state  state
		word   anomaly.Condition
		within int
	}{
		"slow":                         {state{times: 10}, anomaly.Slow, 60},
		"slow, and its agent is quiet": {state{times: 10, quiet: true}, anomaly.Slow, 60},
		"frozen":                       {state{times: 1, frozen: true}, anomaly.Hung, 20},
		"frozen, and for longer":       {state{times: 1, frozen: true}, anomaly.Dead, 45},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, first := &made{r: rand.New(rand.NewPCG(1, 1))}, time.Now().Add(time.Second)
				var record []Moment
				for s := range begin + c.within + 10 {
					now := [3]state{{times: 1}, {times: 1}, {times: 1}}
					if s >= begin {
						now[0] = c.state
					}
					record = append(record, m.second(first.Add(time.Duration(s)*time.Second), now)...)
				}
				f := &Fault{Node: "gw1", Kind: string(c.word), Begin: first.Add(begin * time.Second)}
				f.FoundBy = f.Begin.Add(time.Duration(c.within) * time.Second)
				named(t, "nfs-6.1", record, f)
			})
		})
	}
}

// named plays a record and asks that a fault is named in time, and nobody else.
func named(t *testing.T, site string, record []Moment, f *Fault) {
	t.Helper()
	_, err := Play(t.Context(), sites[site], record, func(now time.Time, open []anomaly.Finding, _ *window.Board) {
		f.See(now, open)
		for i := range open {
			if g := &open[i]; g.State == anomaly.Confirmed && string(g.Node) != f.Node {
				t.Errorf("%s is accused: %s", g.Node, g.Sentence)
			}
		}
	})
	if found, _ := f.Right(); err != nil || !found {
		t.Errorf("%v: named %s after %s, asked %s; last %q", err, f.Condition(), after(f.Named, f.Begin),
			after(f.FoundBy, f.Begin), f.Word)
	}
}
