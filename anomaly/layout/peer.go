package layout

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

const (
	// onePeer is the share of what waits in a router that, going to one peer, is that peer's doing.
	onePeer = 0.6
	// fewWaiting messages, mean over a block, say nothing of whom they wait for.
	fewWaiting = 1
	// exhausted is the mean share of free buffers below which messages wait for one; creditWaits is the share of the
	// messages inside that may wait for a credit before the receivers, and not the buffers, hold them up.
	exhausted, creditWaits = 0.05, 0.1
	// bufferWaits is the share of the messages inside that wait for a buffer from which there are too few.
	bufferWaits = 0.15
	// freely is how many times as long as its peers' a router's messages may be on their way out.
	freely = 2
	// starvedShare is the share of a slow router's time in which its threads wait for a processor that makes
	// that the cause.
	starvedShare = 0.15
	// namedBlocks is for how many blocks in a row a peer or the buffers must be at fault before it is named.
	namedBlocks = 3
	// hungConfidence is that of a router that forwards nothing, at least.
	hungConfidence = 0.83
)

// peer is one that messages wait for.
type peer struct {
	blocks  int
	since   int64
	routers int
	share   float64
}

// findPeers looks for what holds routers up that is not theirs: one slow receiver, and buffers that are too few.
func (g *Group) findPeers() {
	at := map[topology.TargetID]*peer{}
	for _, r := range g.Routers.All() {
		total, most, who := r.waits()
		if r.sum.seconds > 0 && total >= fewWaiting*r.sum.seconds && most > onePeer*total && g.elsewhere(r, who, 0) {
			r.newest.blocked = true
			p := anomaly.Entry(at, who)
			p.routers, p.share = p.routers+1, max(p.share, most/total)
		}
		b := &r.sum
		dry := b.freeSeconds > 0 && b.free < exhausted*b.freeSeconds || b.noBuffer > bufferWaits*b.inside
		if dry && total <= creditWaits*b.inside && g.sendsFreely(r) {
			r.dry++
		} else {
			r.dry = 0
		}
	}
	for id, p := range g.named {
		if at[id] == nil {
			p.blocks = 0
		}
	}
	for id, p := range at {
		was := g.named[id]
		if was == nil || was.blocks == 0 {
			g.named[id] = &peer{blocks: 1, since: g.now - blockSeconds, routers: p.routers, share: p.share}
			continue
		}
		was.blocks, was.routers, was.share = was.blocks+1, p.routers, p.share
	}
}

// elsewhere says that messages wait for a peer at the other routers, too, as far as these send to it, and at some of
// them at least.
func (g *Group) elsewhere(r *router, who topology.TargetID, least int) bool {
	sending, waiting := 0, 0
	for _, p := range g.Routers.All() {
		if p == r || p.Group != r.Group || p.sum.sending[who] < fewWaiting {
			continue
		}
		if sending++; p.sum.waiting[who] >= fewWaiting {
			waiting++
		}
	}
	return waiting >= least && 2*waiting >= sending
}

// slowReceivers are those for which messages wait in a router as they do in the others. Such a receiver is asked for
// more than it can take, and in which routers the queue for it stands is the senders' choice: it stays for minutes.
func (g *Group) slowReceivers(r *router) (slow []topology.TargetID) {
	for id, n := range r.sum.waiting {
		if n >= fewWaiting && g.elsewhere(r, id, 1) {
			slow = append(slow, id)
		}
	}
	return slow
}

// sendsFreely says that messages leave a router as soon as they leave its peers: what holds them up is before that.
func (g *Group) sendsFreely(r *router) bool {
	leaves := func(r *router) float64 {
		sum := 0.0
		for _, n := range r.sum.sending {
			sum += n
		}
		return sum / max(r.sum.messages, 1)
	}
	var others []float64
	for _, p := range g.Routers.All() {
		if p != r && p.Group == r.Group && p.sum.messages >= fewMessages {
			others = append(others, leaves(p))
		}
	}
	return len(others) == 0 || leaves(r) <= freely*anomaly.Median(others)
}

// waits sums what waits for credits over the block: all of it, and the most that waits for one peer.
func (r *router) waits() (total, most float64, who topology.TargetID) {
	for _, id := range slices.Sorted(maps.Keys(r.sum.waiting)) {
		n := r.sum.waiting[id]
		if total += n; n > most {
			most, who = n, id
		}
	}
	return total, most, who
}

// name says which peers hold routers up.
func (g *Group) name() {
	for _, id := range slices.Sorted(maps.Keys(g.named)) {
		p := g.named[id]
		v := anomaly.Verdict{Node: topology.NodeID(id), Kind: anomaly.ReceiverSlow, Model: Model, Level: anomaly.Clean,
			Since: time.Unix(p.since, 0).UTC(), Score: float64(p.blocks) / namedBlocks}
		switch {
		case p.blocks == 0:
			delete(g.named, id)
		case p.blocks >= namedBlocks:
			v.Level, v.Confidence = anomaly.Alarm, min(0.99, p.share)
			v.Evidence = map[string]float64{"share": p.share, "routers": float64(p.routers)}
			v.Sentence = fmt.Sprintf(
				"%.0f %% of the messages that wait in %s wait for %s, which takes them slowly; "+
					"no router is accused for it", 100*p.share, anomaly.Counted(p.routers, "router"), id)
		default:
			continue
		}
		g.verdicts = append(g.verdicts, v)
	}
}

// decide turns what is known of a router into verdicts.
func (g *Group) decide(id topology.NodeID, r *router) {
	v, _ := r.Verdict(&g.bar, id)
	v.Ratio = r.newest.ratio
	switch {
	case r.stands(): // a fact, beside which what is held against it as a slow one stays as it is
		if v.Level < anomaly.Alarm {
			v.Since = time.Unix(g.now-int64(r.Hung), 0).UTC()
		}
		v.Level, v.Condition, v.Ratio, v.Evidence = anomaly.Alarm, anomaly.Hung, 0, nil
		v.Score, v.Confidence = max(v.Score, 1), max(v.Confidence, hungConfidence)
		v.Sentence = fmt.Sprintf("%s forwards nothing while senders wait for it", v.Node)
	case v.Level >= anomaly.Doubt:
		g.explain(r, &v)
	}
	if r.newest.known || r.stands() { // without messages nothing speaks, for it or against it
		g.verdicts = append(g.verdicts, v)
	}
	if g.now%blockSeconds != 0 {
		return
	}
	b := anomaly.Verdict{Node: id, Kind: anomaly.BuffersExhausted, Level: anomaly.Clean, Model: Model,
		Score: float64(r.dry) / namedBlocks}
	if r.dry >= namedBlocks {
		b.Level, b.Confidence = anomaly.Alarm, 0.9
		b.Since = time.Unix(g.now-int64(r.dry)*blockSeconds, 0).UTC()
		b.Sentence = fmt.Sprintf(
			"messages wait for a buffer of %s while its receivers have credits: it has too few "+
				"(large_router_buffers, small_router_buffers, tiny_router_buffers of lnet)", id)
	}
	if r.dry == 0 || r.dry >= namedBlocks {
		g.verdicts = append(g.verdicts, b)
	}
}

func (g *Group) explain(r *router, v *anomaly.Verdict) {
	took := math.Exp(r.newest.x)
	v.Evidence = map[string]float64{"took_seconds": took, "per_second": r.newest.rate}
	if r.newest.own {
		v.Sentence = fmt.Sprintf("messages take %s ms through %s, longer than ever at this load; no peer does the "+
			"same now, so that it is only suspected", anomaly.Digits(1000*took), v.Node)
		return
	}
	v.Evidence["peers_seconds"] = took / math.Exp(r.Ratio)
	why := ""
	if r.newest.starved >= starvedShare {
		v.Evidence["cpu_wait_share"] = r.newest.starved
		why = fmt.Sprintf("; %.0f %% of that its network threads wait for a processor: it is short of CPU",
			100*r.newest.starved)
	}
	v.Sentence = fmt.Sprintf("%s is %s slow: messages take %s ms through it, %s ms through the other routers between "+
		"its nets%s", v.Node, anomaly.Times(math.Exp(r.Ratio)), anomaly.Digits(1000*took),
		anomaly.Digits(1000*took/math.Exp(r.Ratio)), why)
}
