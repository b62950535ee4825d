// Package layout finds which of several routers that serve the same senders is slow: one of them, or one of those that
// they send to. It compares, in the same seconds, what each of them takes with what the others take for the same, and
// judges by compare's sequential test.
//
// Routers of Lustre's network are compared within their group, which are the routers between the same nets. What shows
// a slow one is the time that messages spend in it: unlike bytes and unlike the times that clients see it shows at any
// load, and it does not move with the storage behind.
package layout

import (
	"maps"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/collector/topology"
)

// Model is the version that findings carry.
const Model = "layout-1"

// Router is a router's second. A value that is not known is NaN.
type Router struct {
	Node     topology.NodeID
	Group    string  // routers between the same nets have the same
	Inside   float64 // messages in it, mean over the second
	Messages float64 // forwarded, 1/s
	Bytes    float64 // forwarded, bytes/s
	// BuffersFree is the least share of free buffers of its pools.
	BuffersFree float64
	// Sending are the messages on their way to each peer, Waiting those of them that wait for a credit.
	Sending, Waiting map[topology.TargetID]float64
	Senders          int // how many have anything on its way through it
	// Starved are the threads of its network drivers that had no processor, mean over the second; 0 where nobody
	// counts them. A message that waits for such a thread is not yet, or not any more, counted as inside.
	Starved float64
	// NoBuffer are the messages in it that wait for a buffer.
	NoBuffer float64
}

const (
	blockSeconds = 5
	// fewMessages in a block say nothing of it.
	fewMessages = 100
	// alike is by how much mean message sizes of routers that are compared may differ, log: a factor of two.
	alike = 0.7
	// busyAlike is the least load of a router that is compared with: one with less has shorter queues.
	busyAlike = 0.5
	// busier is how much more than its peers a router may forward before its queues may be longer, too.
	busier = 1.15
	// routerMargin is what a router may be slower than its peers, and slowBy what is bet on beyond that, log: evidence
	// grows from half of slowBy above the margin on. aloneMargin is that where one peer speaks alone.
	routerMargin, slowBy, aloneMargin = 0.08, 0.2, 0.4
	// A habit is learnt over habitFast blocks, later over habitSlow of them, and is at most mostHabit: what is more is
	// a fault.
	habitFast, habitSlow, mostHabit = 24, 1080, 0.25
	// knownAfter is how many healthy blocks show what a load takes.
	knownAfter = 12
	// mostBet and leastBet bound what one block says, log: three blocks at least accuse.
	mostBet, leastBet = 6, -2
	// doubtAt is the share of the wealth of an alarm from which a router is in doubt, teachBelow that from which it
	// teaches nobody.
	doubtAt, teachBelow = 0.3, 0.2
	// leastNoise is the standard deviation of a block's mean, at least, and priorBlocks what that counts for.
	leastNoise, priorBlocks = 0.08, 50
	// samplesPerSecond is how often the messages in a router are counted.
	samplesPerSecond = 20
	// loneCeiling bounds the wealth of a router that only its own past speaks against, of the threshold.
	loneCeiling = 0.9
	// peerSeconds after it sent to a peer a router still serves it: a second lists those with something under way.
	peerSeconds = 60
	// hungSeconds in which hungSenders wait for a router that forwards nothing accuse it.
	hungSeconds, hungSenders = 5, 2
)

// Group compares routers. It has no clock; its methods must not be called concurrently.
type Group struct {
	learnt
	bar      compare.Bar
	now      int64
	named    map[topology.TargetID]*peer
	verdicts []anomaly.Verdict
}

// learnt is what outlives a restart. Who holds routers up shows itself again in seconds.
type learnt struct {
	Routers compare.Subjects[router, *router]
	Usual   map[load]*compare.Mean // log, of what healthy routers took
	Noise   compare.Mean           // of healthy blocks, absolute
}

// load is what routers of a group are compared at over time: the octave of message size, the half octave of messages.
type load struct {
	Group        string
	Size, Amount int
}

// router is one of those that are compared, and what is saved of it.
type router struct {
	compare.Case
	Group string
	Habit compare.Mean // by how much longer than its peers' its messages take, log
	Ratio float64      // smoothed log ratio to the peers
	// Hung counts the seconds in which it has forwarded nothing while senders waited, up to the newest.
	Hung int

	sum    block
	seen   int64
	dry    int // blocks in a row in which its buffers were exhausted
	newest measured
	// peers are what it sends to, and when it last did.
	peers map[topology.TargetID]int64
}

// measured is what a router's newest block was.
type measured struct {
	known   bool    // enough was forwarded
	x       float64 // log of the transit time
	size    float64 // log of the mean message
	rate    float64 // messages a second
	own     bool    // only the past spoke
	blocked bool    // what waits, waits for one peer
	starved float64 // share of x in which messages waited for a processor
	ratio   float64 // of x to that of its peers; 0 without any
}

// block gathers seconds.
type block struct {
	seconds, inside, messages, bytes float64
	starved, noBuffer                float64
	free, freeSeconds                float64
	sending, waiting                 map[topology.TargetID]float64
}

// Ratio is how many times as long as its peers' a router's messages took in the newest block; not a number where that
// is not known.
func (g *Group) Ratio(id topology.NodeID) float64 {
	if r := g.Routers.Known(id); r != nil && r.newest.ratio > 0 {
		return r.newest.ratio
	}
	return math.NaN()
}

// NewGroup makes a comparison whose healthy routers are accused once in every on average.
func NewGroup(every time.Duration) *Group {
	return &Group{named: map[topology.TargetID]*peer{}, bar: compare.Bar{Kind: anomaly.FailSlow, Model: Model,
		Doubt: doubtAt, Alarm: compare.Threshold(every, blockSeconds*time.Second, 1)}}
}

// Second takes one second of the routers and returns the verdicts on those that were seen, and on what holds them
// up. The slice is used again by the next call.
func (g *Group) Second(now time.Time, rows []Router) []anomaly.Verdict {
	g.now = now.Unix()
	g.verdicts = g.verdicts[:0]
	for i := range rows {
		g.take(&rows[i])
	}
	if g.now%blockSeconds == 0 {
		g.closeBlock()
	}
	for id, r := range g.Routers.All() {
		if r.seen == g.now {
			g.decide(id, r)
		}
	}
	if g.now%blockSeconds == 0 {
		g.name()
	}
	return g.verdicts
}

// Forget drops the evidence about a router that is judged by a better view.
func (g *Group) Forget(id topology.NodeID) { g.Routers.Forget(id) }

// MarshalBinary saves what was learnt and the evidence so far.
func (g *Group) MarshalBinary() ([]byte, error) { return anomaly.Save(&g.learnt) }

// UnmarshalBinary takes up a saved state. On an error the group is as it was.
func (g *Group) UnmarshalBinary(b []byte) error { return anomaly.Load(b, &g.learnt) }

// stands says that a router has forwarded nothing for long enough while senders waited.
func (r *router) stands() bool { return r.Hung >= hungSeconds }

func (g *Group) take(o *Router) {
	r := g.Routers.Get(o.Node)
	r.Group, r.seen = o.Group, g.now
	// Counters that are not known (not a number) do not say that nothing was forwarded.
	if hangs := o.Senders >= hungSenders && o.Messages < 1; hangs {
		r.Hung++
	} else {
		if r.stands() && !r.Alarm { // what it took before it stood still, and after, is the stop's doing
			r.Forget()
		}
		r.Hung = 0
	}
	if math.IsNaN(o.Inside) || math.IsNaN(o.Messages) {
		return
	}
	b := &r.sum
	b.seconds++
	b.inside, b.messages = b.inside+o.Inside, b.messages+o.Messages
	b.starved, b.noBuffer = b.starved+o.Starved, b.noBuffer+o.NoBuffer
	if o.Bytes > 0 {
		b.bytes += o.Bytes
	}
	if !math.IsNaN(o.BuffersFree) {
		b.free, b.freeSeconds = b.free+o.BuffersFree, b.freeSeconds+1
	}
	if b.waiting == nil {
		b.sending, b.waiting = map[topology.TargetID]float64{}, map[topology.TargetID]float64{}
	}
	if r.peers == nil {
		r.peers = map[topology.TargetID]int64{}
	}
	for id, n := range o.Sending {
		b.sending[id] += n
		r.peers[id] = g.now
	}
	for id, n := range o.Waiting {
		b.waiting[id] += n
	}
}

// closeBlock compares the routers over the last seconds. What a block teaches is not used in it.
func (g *Group) closeBlock() {
	for _, r := range g.Routers.All() {
		r.measure()
	}
	g.findPeers()
	opinions := map[*router]opinion{}
	for _, r := range g.Routers.All() {
		opinions[r] = g.judge(r)
	}
	for _, r := range g.Routers.All() {
		g.apply(r, opinions[r])
		r.sum = block{}
		maps.DeleteFunc(r.peers, func(_ topology.TargetID, at int64) bool { return g.now-at > peerSeconds })
	}
}

// measure sums the block up.
func (r *router) measure() {
	b := &r.sum
	r.newest = measured{}
	if b.seconds == 0 || b.messages < fewMessages || b.inside <= 0 {
		return
	}
	r.newest.known, r.newest.x = true, r.took(nil)
	r.newest.starved = b.starved / (b.inside + b.starved)
	r.newest.size, r.newest.rate = math.Log(max(b.bytes/b.messages, 1)), b.messages/b.seconds
}

// took is the log of the transit time of the block without what waits for some receivers.
func (r *router) took(without []topology.TargetID) float64 {
	b := &r.sum
	inside := b.inside
	for _, id := range without {
		inside = max(inside-b.waiting[id], min(inside, fewWaiting))
	}
	return math.Log((inside + b.starved) / b.messages)
}

func (r *router) load() load {
	return load{r.Group, int(math.Round(r.newest.size / math.Ln2)),
		int(math.Round(2 * math.Log2(max(r.newest.rate, 1))))}
}

// opinion is what a block says of a router.
type opinion struct {
	known  bool
	apart  float64 // from its peers, log, its habit left in
	peers  bool
	alike  bool    // they forward messages about as large
	excess float64 // beyond what peers, past and habit explain, log
	sigma  float64
	margin float64
}

// judge compares a router with its peers in the same seconds and with what healthy routers took at that load.
func (g *Group) judge(r *router) (o opinion) {
	if !r.newest.known {
		return o
	}
	times, rates, sizes := g.peersOf(r, nil, nil)
	own := r.Habit.Mean * r.Habit.N / (r.Habit.N + habitFast)
	o.margin, o.sigma = routerMargin, g.sigma(r)
	if len(times) == 1 {
		o.margin = aloneMargin
	}
	usual, known := g.expect(r.load())
	switch o.peers = len(times) > 0; {
	case o.peers:
		o.known, o.apart = true, r.newest.x-anomaly.Median(times)
		o.alike = anomaly.Median(sizes)-r.newest.size <= alike
		o.excess = o.apart - own
		if r.newest.rate > busier*anomaly.Median(rates) { // its queues may be longer for its load
			if !known {
				o.excess = min(o.excess, 0)
			} else {
				o.excess = min(o.excess, r.newest.x-usual-own)
			}
		}
		// How much longer a router always takes is not known when it is first seen: it may have older hardware.
		o.margin += mostHabit * max(0, 1-r.Habit.N/habitFast)
		if o.excess > o.margin { // which is rare: to look at all peers of all routers takes long
			near := g.near(r)
			if times, _, _ := g.peersOf(r, near, nil); len(near) > 0 && len(times) > 0 {
				o.excess = min(o.excess, r.newest.x-anomaly.Median(times))
			}
			if slow := g.slowReceivers(r); len(slow) > 0 {
				times, _, _ = g.peersOf(r, nil, slow)
				o.excess = min(o.excess, r.took(slow)-anomaly.Median(times)-own)
			}
		}
	case known:
		o.known, o.excess, r.newest.own = true, r.newest.x-usual-own, true
	}
	return o
}

// peersOf are the transit times, the loads and the message sizes of the routers that a router may be compared with: of
// its group, with messages about as large or larger, and at least half as many. Larger ones take longer: a slow router
// at full load forwards smaller messages than its peers, because senders give their bulk to the others. The times are
// without what waits for some receivers.
func (g *Group) peersOf(r *router, among []*router, without []topology.TargetID) (times, rates, sizes []float64) {
	for _, p := range g.Routers.All() {
		if p != r && (among == nil || slices.Contains(among, p)) && p.Group == r.Group && !p.Alarm && p.newest.known &&
			p.newest.size >= r.newest.size-alike &&
			p.newest.rate >= busyAlike*r.newest.rate {
			x := p.newest.x
			if len(without) > 0 {
				x = p.took(without)
			}
			x += max(0, r.newest.size-p.newest.size) // at most by as much as they are larger
			times, rates = append(times, x), append(rates, p.newest.rate)
			sizes = append(sizes, p.newest.size)
		}
	}
	return times, rates, sizes
}

// near are the routers with the same clients and servers, where some have others: with static routes each group of
// clients has routers of its own, and a slow server holds up those most whose clients write to it most. A router as
// slow as these has what its clients have.
func (g *Group) near(r *router) (near []*router) {
	others := false
	for _, p := range g.Routers.All() {
		if p == r || p.Group != r.Group || len(p.peers) == 0 {
			continue
		}
		same := 0
		for id := range r.peers {
			if _, ok := p.peers[id]; ok {
				same++
			}
		}
		if 2*same > len(r.peers)+len(p.peers)-same {
			near = append(near, p)
		} else {
			others = true
		}
	}
	if !others {
		return nil
	}
	return near
}

// expect is what healthy routers took at a load; where none has shown that, at a higher one: it takes as long
// there, or longer.
func (g *Group) expect(at load) (x float64, known bool) {
	for range habitFast {
		if h := g.Usual[at]; h != nil && h.N >= knownAfter {
			return h.Mean, true
		}
		at.Amount++
	}
	return 0, false
}

// sigma is the standard deviation of a healthy block.
func (g *Group) sigma(r *router) float64 {
	sightings := max(1, samplesPerSecond*r.sum.inside)
	prior := leastNoise + 1/math.Sqrt(sightings)
	return max(leastNoise, (1.25*g.Noise.Mean*g.Noise.N+prior*priorBlocks)/(g.Noise.N+priorBlocks))
}

// apply bets with an opinion and learns from it.
func (g *Group) apply(r *router, o opinion) {
	if !o.known || r.newest.blocked || r.dry > 0 {
		return
	}
	before := r.Wealth()
	if o.peers {
		r.newest.ratio = math.Exp(o.apart)
		r.Ratio += (o.apart - r.Ratio) / 4
		if before < 1 { // sentences are of the time since the first evidence
			r.Ratio = o.apart
		}
	}
	bet := max(leastBet, min(compare.Against(o.excess-o.margin, o.sigma*o.sigma, slowBy), mostBet))
	if r.newest.own { // only its past speaks, which accuses nobody
		bet = min(bet, max(0, loneCeiling*g.bar.Alarm-before))
	}
	r.Bet(&g.bar, 0, g.now, bet)
	if r.Alarm || before >= teachBelow*g.bar.Alarm {
		return
	}
	if o.peers && o.alike {
		r.Habit.Teach(o.apart, habitFast, habitSlow)
		r.Habit.Mean = max(-mostHabit, min(mostHabit, r.Habit.Mean))
		g.Noise.Teach(min(math.Abs(o.excess), 1), habitFast, habitSlow)
	}
	at := r.load()
	if g.Usual == nil {
		g.Usual = map[load]*compare.Mean{}
	}
	anomaly.Entry(g.Usual, at).Teach(r.newest.x, habitFast, habitSlow)
}
