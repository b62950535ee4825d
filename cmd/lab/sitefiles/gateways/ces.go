package gateways

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/cmd/lab/sitefiles"
	"fairway/cmd/lab/sitefiles/format"
)

// ces are the floating addresses of GPFS's protocol nodes, and the rules that they keep: a move needs a node that takes
// addresses; what happens to a node has the system spread them again, unless the policy says no.
type ces struct {
	policy    string
	addresses []*cesAddress
	suspended map[*Gateway]bool
	shown     map[string]string // what a lying mmces lists
}

type cesAddress struct {
	text string
	at   *Gateway // nil: unassigned
}

// The distribution policies; what "balanced-load" takes for load is not modelled, it counts addresses.
const (
	evenCoverage = "even-coverage"
	balancedLoad = "balanced-load"
	nodeAffinity = "node-affinity"
	noPolicy     = "none"
)

// grace is for how long clients of an address wait after it has moved, of NFSv3 here. NFSv4's is up to 90 s.
const grace = 3 * time.Second

const cluster = "gpfs.model"

// cesName is what CES calls a node.
func cesName(g *Gateway) string { return g.Name + ".model" }

// float gives the site n floating addresses, one client after another; the last spares gateways have none.
func (m *Model) float(n, spares int) {
	for _, g := range m.Gateways {
		g.free = workers
	}
	m.ces = &ces{policy: evenCoverage, suspended: map[*Gateway]bool{}, shown: map[string]string{}}
	if spares > 0 {
		m.ces.policy = noPolicy // any other one would use them
	}
	for i := range n {
		m.ces.addresses = append(m.ces.addresses, &cesAddress{fmt.Sprintf("10.2.3.%d", i+1),
			m.Gateways[i%(len(m.Gateways)-spares)]})
	}
	for i, c := range m.Clients {
		a := m.ces.addresses[i%len(m.ces.addresses)]
		c.address, c.on = a.text, a.at
	}
}

// floating lists the addresses that a gateway has.
func (m *Model) floating(g *Gateway) (out []string) {
	if m.ces == nil {
		return nil
	}
	for _, a := range m.ces.addresses {
		if a.at == g {
			out = append(out, a.text)
		}
	}
	return out
}

// moveAddress has a gateway, or none, answer at an address. Its clients keep their mount, and wait until the grace is
// over. What is under way ends where it began.
func (m *Model) moveAddress(a *cesAddress, to *Gateway) {
	a.at = to
	for _, c := range m.Clients {
		if c.address != a.text {
			continue
		}
		c.on = nil
		m.After(grace, func() {
			if c.on = a.at; c.on != nil {
				m.unpark(c)
			}
		})
	}
}

// spread is what the system does when something has happened to a node: no suspended one keeps an address, and under
// the policies that distribute no two nodes' numbers differ by more than one.
func (m *Model) spread() {
	most := func(less bool) *Gateway {
		var best *Gateway
		for _, g := range m.Gateways {
			n := len(m.floating(g))
			if m.ces.suspended[g] {
				continue
			}
			if best == nil || less && n < len(m.floating(best)) || !less && n > len(m.floating(best)) {
				best = g
			}
		}
		return best
	}
	for _, a := range m.ces.addresses {
		switch lost := a.at == nil || m.ces.suspended[a.at]; {
		case lost && m.ces.policy == noPolicy:
			if a.at != nil {
				m.moveAddress(a, nil)
			}
		case lost:
			if to := most(true); to != a.at {
				m.moveAddress(a, to)
			}
		}
	}
	for m.ces.policy == evenCoverage || m.ces.policy == balancedLoad {
		from, to := most(false), most(true)
		if from == nil || len(m.floating(from))-len(m.floating(to)) < 2 {
			return
		}
		all := m.floating(from)
		last := all[len(all)-1]
		m.moveAddress(m.ces.addresses[slices.IndexFunc(m.ces.addresses, func(a *cesAddress) bool {
			return a.text == last
		})], to)
	}
}

// cesTool is mmces, mmlscluster, mmdiag or one print of mmpmon on a node. What they refuse with is in
// this model's words.
func (s *Site) cesTool(node string, args []string) sitefiles.Answer {
	line := strings.Join(args, " ")
	refuse := func(why string, a ...any) sitefiles.Answer {
		return sitefiles.Answer{Err: args[0] + ": " + fmt.Sprintf(why, a...) + "\n", Code: 1}
	}
	me := s.model.gateway(func(g *Gateway) bool { return g.Name == node })
	switch {
	case me == nil || s.model.ces == nil:
		return refuse("%s does not belong to the cluster", node)
	case args[0] == "mmpmon":
		return sitefiles.Answer{Out: mmpmon(me, s.start.Add(s.model.Now()))}
	case line == "mmlscluster --ces":
		return sitefiles.Answer{Out: format.CESCluster(cluster, s.model.ces.policy)}
	case args[0] != "mmces" && line != "mmdiag --waiters":
		return refuse("no such program")
	}
	mode := s.tricks.On(node, strings.TrimPrefix(line, "mmces "))
	switch mode {
	case sitefiles.TrickHang:
		return sitefiles.Answer{Hang: true}
	case sitefiles.TrickBusy:
		return refuse("the cluster is locked by another command; try again later")
	}
	if args[0] == "mmdiag" {
		if mode != "" {
			return sitefiles.Answer{Out: "Waiting for 3 sec, monitored: nobody\n"}
		}
		return sitefiles.Answer{Out: format.Waiters(s.model.waiters(me), s.start.Add(s.model.Now()))}
	}
	words := args[1:]
	if slices.Equal(words, []string{"address", "list"}) {
		return sitefiles.Answer{Out: s.model.ces.list()}
	}
	if slices.Equal(words, []string{"node", "list"}) {
		return sitefiles.Answer{Out: format.CESNodes(s.model.cesNodes())}
	}
	to := s.model.gateway(func(g *Gateway) bool { return cesName(g) == words[len(words)-1] })
	switch {
	case len(words) == 3 && words[0] == "address" && words[1] == "policy":
		if !slices.Contains([]string{evenCoverage, balancedLoad, nodeAffinity, noPolicy}, words[2]) {
			return refuse("no policy %q", words[2])
		}
		s.model.ces.policy = words[2]
	case len(words) == 4 && words[0] == "node" && words[2] == "-N" && to != nil:
		if mode == "" {
			s.model.ces.suspended[to] = words[1] == "suspend"
			s.model.spread()
		}
	case len(words) == 6 && words[0] == "address" && words[1] == "move" && words[2] == "--ces-ip" &&
		words[4] == "--ces-node":
		return s.move(words[3], words[5], to, mode, refuse)
	default:
		return refuse("usage: %v", words)
	}
	return sitefiles.Answer{}
}

// move is "mmces address move".
func (s *Site) move(address, name string, to *Gateway, mode string,
	refuse func(string, ...any) sitefiles.Answer) sitefiles.Answer {
	c := s.model.ces
	i := slices.IndexFunc(c.addresses, func(a *cesAddress) bool { return a.text == address })
	switch {
	case i < 0:
		return refuse("%s is not a CES address", address)
	case to == nil:
		return refuse("%s is not a CES node", name)
	case c.suspended[to]:
		return refuse("%s does not take addresses now", name)
	case mode == sitefiles.TrickLie:
		c.shown[address] = name
	case mode != sitefiles.TrickIgnore && c.addresses[i].at != to:
		s.model.moveAddress(c.addresses[i], to)
	}
	return sitefiles.Answer{}
}

func cesFlags(suspended bool) string {
	if suspended {
		return "Suspended"
	}
	return "none"
}

func (m *Model) cesNodes() (rows []format.CESNode) {
	for _, g := range m.Gateways {
		rows = append(rows, format.CESNode{Name: cesName(g), Flags: cesFlags(m.ces.suspended[g])})
	}
	return rows
}

// waiters are what the threads of GPFS's daemon on a protocol node wait for, the longest first: what the NFS server has
// asked for and has not got. A hung node waits for another node's answer.
func (m *Model) waiters(g *Gateway) (rows []format.Waiter) {
	for _, c := range m.Clients {
		for i, one := range c.under {
			if one.on != g {
				continue
			}
			w := format.Waiter{Age: m.Now() - one.asked, Number: 23000 + i, Thread: "NSDThread",
				Reason: "for I/O completion on disk dm-1"}
			if one.op == Meta || g.Health.Hung {
				w.Thread, w.Reason = "SharedHashTabFetchHandlerThread", "on ThCond 0x7F138008EC10 (MsgRecordCondvar), "+
					"reason 'RPC wait' for tmMsgTellAcquire1 on node 10.2.0.9 <c0n8>"
			}
			rows = append(rows, w)
		}
	}
	slices.SortFunc(rows, func(a, b format.Waiter) int { return cmp.Compare(b.Age, a.Age) })
	return rows
}

func (c *ces) list() string {
	var rows []format.CESAddress
	for _, a := range c.addresses {
		r := format.CESAddress{Address: a.text, Node: "unassigned"}
		if a.at != nil {
			r.Node = cesName(a.at)
		}
		if lie := c.shown[a.text]; lie != "" {
			r.Node = lie
		}
		rows = append(rows, r)
	}
	return format.CESAddresses(rows)
}

// mmpmon are the counts of a protocol node: what its NFS server asked for.
func mmpmon(g *Gateway, at time.Time) string {
	r, w, m := &g.calls[Read], &g.calls[Write], &g.calls[Meta]
	return format.Mmpmon(format.FSIO{Addr: g.Addr, Node: cesName(g), Cluster: cluster, System: "fw01", Disks: 4,
		Read: r.bytes, Written: w.bytes, Reads: r.n, Write: w.n, Inodes: m.n}, at)
}

// Trick adds a trick of mmces; an empty mode takes all away.
func (s *Site) Trick(t sitefiles.Trick) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Mode == "" && s.model.ces != nil {
		clear(s.model.ces.shown)
	}
	return s.tricks.Take(t, s.Nodes())
}
