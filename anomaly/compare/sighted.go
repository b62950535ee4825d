package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// Sighting is what one observer saw of one subject in a second: operations of a class, about as large where Size says
// so, and their mean seconds.
type Sighting struct {
	Observer, Subject topology.NodeID
	Class             string
	Size              int
	Ops, Took         float64
}

// Rules are what a judge goes by. Logs are natural ones of ratios.
type Rules struct {
	Kind  anomaly.Kind
	Block time.Duration // over which sums are taken for one bet
	Stale time.Duration // after which a sighting says nothing of the present
	// FewOps in a block say nothing; Few are the subjects of an observer from which it compares them.
	FewOps   float64
	Few      int
	LongWait time.Duration // in a block, that says something however few requests it was
	// Alike subjects do the same work, so that a difference is a fault; others are first compared with their past.
	Alike bool
	// Margin is the slowness that is tolerated, PastMargin that of a subject compared with its own past alone.
	Margin, PastMargin float64
	Noise              float64 // standard deviation of a healthy block
	MostBet            float64 // log wealth that a block wins
	PastBlocks         float64 // that show what is usual
	Most               int     // pairs of an observer and a subject in a block; 0: mostPairs
	Busier             float64 // times the usual operations, or its others', beyond which it may be slower for its load
	Words              Words
}

// Words are a judge's: What is what an observer sees take long, Others who else it sees, Observer one of them; without
// that they are not counted.
type Words struct{ What, Others, Observer string }

// Routers are the rules of routers by their senders' round trips.
func Routers() Rules {
	return Rules{Kind: anomaly.FailSlow, Block: 10 * time.Second, Stale: 30 * time.Second, FewOps: 6, Few: 3,
		Alike: true, Margin: 0.2, PastMargin: math.Inf(1), Noise: 0.3, MostBet: 8, PastBlocks: 12,
		Busier: 1.1, Words: Words{"a round trip through it", "the other routers of the same senders", "node"}}
}

// Targets are the rules of storage targets and metadata servers by their clients.
func Targets() Rules {
	return Rules{Kind: anomaly.TargetSlow, Block: 5 * time.Second, Stale: 15 * time.Second, FewOps: 2, Few: 2,
		LongWait: time.Second,
		Margin:   0.4, PastMargin: 0.6, Noise: 0.4, MostBet: 4, PastBlocks: 12, Busier: 1.5,
		Words: Words{"a request to it", "the other targets of the same clients", "node"}}
}

// Forwarders are the rules of forwarders by the storage targets that they ask, each of which is also asked by others in
// the same seconds: a slow target is slow for all, and moves nobody's ratio.
func Forwarders() Rules {
	return Rules{Kind: anomaly.FailSlow, Block: 5 * time.Second, Stale: 15 * time.Second, FewOps: 5, Few: 3,
		Alike: true, Margin: 0.15, PastMargin: math.Inf(1), Noise: 0.2, MostBet: 6, Busier: 1.15,
		Most: mostOfForwarders, Words: Words{What: "a request to storage through it",
			Others: "the other forwarders to the same targets"}}
}

// Clients are the rules of compute nodes so; their own depth of requests makes their times longer. One that is slow to
// all of its targets, which answer the other clients, is slow by itself.
func Clients() Rules {
	r := Forwarders()
	r.Kind, r.Margin, r.Noise, r.Most, r.Busier = anomaly.ClientSlow, 0.6, 0.3, mostPairs, 2
	r.Words = Words{What: "a request from it to storage", Others: "the other clients of the same targets"}
	return r
}

// Gateways are the rules of forwarders by all of their clients together, beside those of the same back end. Neither a
// peer nor the past alone accuses: a job may do as much.
func Gateways() Rules {
	return Rules{Kind: anomaly.FailSlow, Block: 5 * time.Second, Stale: 15 * time.Second, FewOps: 2, Few: 2,
		LongWait: time.Second, Margin: 0.6, PastMargin: math.Inf(1), Noise: 0.4, MostBet: 4,
		PastBlocks: 6, Busier: 2,
		Words: Words{What: "an operation of its clients", Others: "clients of the others"}}
}

const (
	doubtAt, teachBelow anomaly.Share     = 0.4, 0.2   // of the wealth of an alarm
	leastBet, clearBet  anomaly.LogWealth = -1.0, -3.0 // that a block loses, of an accused one
	leastStep, mostStep anomaly.LogRatio  = 0.6, 1.5   // the slowness that is bet on follows the newest block
	habitMost                             = 120        // blocks
	wellSeconds                           = 60         // with a ratio below wellRatio end an alarm
	wellRatio                             = 1.2
	mostPairs                             = 20_000 // of a block; on a machine with more, some clients speak for all
	mostOfForwarders                      = 500_000
)

// Judge judges nodes by what others see of them, whether they report themselves or not, block by block. Each observer
// compares what it asks of one subject with what it asks of its others in the same seconds and, where it has no other,
// with that subject's past. Evidence is weighed by the time waited, as a ratio of sums. It has no clock; its methods
// must not be called concurrently.
type Judge struct {
	Subjects[subject, *subject]
	rules Rules
	bar   Bar
	block map[pair]*sum
	past  map[pair]*habit
	begun int64
}

type pair struct {
	observer, subject topology.NodeID
	class             string
	size              int
}

type sum struct{ ops, waited float64 }

func (s *sum) log() float64 { return math.Log(s.waited / s.ops) }

// habit is what is usual of a pair over blocks: log seconds, log of the ratio to the others, log operations.
type habit struct{ took, apart, ops Mean }

type subject struct {
	Case
	seen   int64
	step   float64 // by which the newest blocks were slower than tolerated
	smooth float64 // log ratio over some blocks
	well   int64   // newest second in which that was not as the peers'
	ratio  float64 // of the newest block
	took   float64 // seconds, in it
	who    int     // observers, in it
	past   bool    // only the past was compared with
	shown  shown
}

// shown is what a sentence says: of the newest block in which an accused one was slow.
type shown struct {
	ratio, took float64
	who         int
}

// New makes a judge whose healthy subjects are accused once in every on average.
func New(every time.Duration, rules Rules) *Judge {
	return &Judge{rules: rules, block: map[pair]*sum{}, past: map[pair]*habit{},
		bar: Bar{Kind: rules.Kind, Model: "sighted-1", Alarm: Threshold(every, rules.Block, 1), Doubt: doubtAt}}
}

// Judges reports whether a subject was compared lately: then other views of it need not speak.
func (j *Judge) Judges(now time.Time, id topology.NodeID) bool {
	s := j.Known(id)
	return s != nil && now.Unix()-s.seen <= 2*int64(j.rules.Stale.Seconds())
}

// Take adds a sighting to the block under way.
func (j *Judge) Take(s Sighting) {
	if !(s.Ops > 0) || !(s.Took > 0) || math.IsInf(s.Took, 1) {
		return
	}
	k := pair{s.Observer, s.Subject, s.Class, s.Size}
	b := j.block[k]
	if b == nil {
		if len(j.block) >= cmp.Or(j.rules.Most, mostPairs) {
			return
		}
		b = &sum{}
		j.block[k] = b
	}
	b.ops, b.waited = b.ops+s.Ops, b.waited+s.Ops*s.Took
}

// Second closes the block when its time has come, and returns what is known of each subject that was seen lately.
func (j *Judge) Second(now time.Time) (out []anomaly.Verdict) {
	t := now.Unix()
	if j.begun == 0 {
		j.begun = t
	}
	if t-j.begun >= int64(j.rules.Block.Seconds()) {
		j.close(t)
		j.begun = t
		clear(j.block)
	}
	for id, s := range j.All() {
		if t-s.seen <= int64(j.rules.Stale.Seconds()) {
			out = append(out, j.verdict(id, s))
		}
	}
	return out
}

// view is what the block says of one subject: sums over its observers.
type view struct {
	ops, waited, usual float64 // usual is what as many operations would have waited
	others             float64 // operations that its others had
	excess             float64 // weighted by time waited
	peers, busier      bool
	who                int // observers
	newest             topology.NodeID
	teach              []func()
}

// close compares what each observer saw, and bets.
func (j *Judge) close(now int64) {
	of := map[pair][]pair{} // by observer, class and size
	for k, b := range j.block {
		// Who waits for seconds says much with a single request: the slower, the fewer end.
		if b.ops >= j.rules.FewOps || !j.rules.Alike && b.waited >= j.rules.LongWait.Seconds() {
			group := pair{observer: k.observer, class: k.class, size: k.size}
			of[group] = append(of[group], k)
		}
	}
	views := map[topology.NodeID]*view{}
	for _, group := range slices.SortedFunc(maps.Keys(of), order) {
		all := of[group]
		slices.SortFunc(all, order)
		var took, asked []float64
		for _, k := range all {
			if s := j.Known(k.subject); s == nil || !s.Alarm {
				took, asked = append(took, j.block[k].log()), append(asked, j.block[k].ops)
			}
		}
		slices.Sort(took)
		slices.Sort(asked)
		for _, k := range all {
			j.look(k, took, asked, views)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(views)) {
		j.bet(now, id, views[id])
	}
}

func order(a, b pair) int {
	return cmp.Or(cmp.Compare(a.observer, b.observer), cmp.Compare(a.class, b.class), cmp.Compare(a.size, b.size),
		cmp.Compare(a.subject, b.subject))
}

// look adds what one observer saw of a subject beside what all of its subjects took, and how much it asked of them.
func (j *Judge) look(k pair, all, asked []float64, views map[topology.NodeID]*view) {
	b, h := j.block[k], &habit{}
	if !j.rules.Alike {
		h = anomaly.Entry(j.past, k)
	}
	took, apart := b.log(), 0.0
	known := h.took.N >= j.rules.PastBlocks
	excess, usual := took-h.took.Mean-j.rules.PastMargin, h.took.Mean
	own, ownOps := took, b.ops
	if s := j.Known(k.subject); s != nil && s.Alarm { // who is accused is not among the others
		own, ownOps = math.NaN(), math.NaN()
	}
	low, high, others := Others(all, own)
	peers := others >= j.rules.Few-1
	if peers {
		usualOfOthers := (low + high) / 2
		apart = took - usualOfOthers
		excess, usual = apart-j.rules.Margin, usualOfOthers
		if !j.rules.Alike {
			usual = usualOfOthers + h.apart.Mean
			excess = min(took-usual-j.rules.Margin, took-h.took.Mean-j.rules.Margin)
		}
	}
	v := anomaly.Entry(views, k.subject)
	v.teach = append(v.teach, func() { // of those that are alike nothing is kept
		h.took.Teach(took, habitMost, habitMost)
		h.apart.Teach(apart, habitMost, habitMost)
		h.ops.Teach(math.Log(b.ops), habitMost, habitMost)
	})
	if !peers && math.IsInf(j.rules.PastMargin, 1) || !j.rules.Alike && !known {
		return
	}
	if j.rules.Alike { // a slow one passes fewer on; the one with more has the queue of what is behind all
		v.others += MedianOfOthers(asked, ownOps)
	} else {
		v.busier = v.busier || known && math.Log(b.ops)-h.ops.Mean > math.Log(j.rules.Busier)
	}
	v.peers = v.peers || peers
	v.ops, v.waited, v.usual = v.ops+b.ops, v.waited+b.waited, v.usual+b.ops*math.Exp(usual)
	v.excess += b.waited * excess
	if v.newest != k.observer { // they come one after the other
		v.newest, v.who = k.observer, v.who+1
	}
}

// bet lets a block speak for or against a subject. What teaches is decided by the blocks before.
func (j *Judge) bet(now int64, id topology.NodeID, v *view) {
	s := j.Get(id)
	if !s.Alarm && s.Wealth() < teachBelow*j.bar.Alarm {
		for _, teach := range v.teach {
			teach()
		}
	}
	if v.waited == 0 {
		return
	}
	s.seen, s.ratio, s.took, s.who, s.past = now, v.waited/v.usual, v.waited/v.ops, v.who, !v.peers
	if !s.Alarm || s.ratio >= wellRatio {
		s.shown = shown{s.ratio, s.took, s.who}
	}
	excess := v.excess / v.waited
	// The slower, the fewer operations end: they weigh by how many would usually have ended in the time waited.
	ops := v.ops * max(1, s.ratio)
	step := max(leastStep, min(s.step, mostStep))
	s.step += (excess - s.step) / 2
	least := leastBet
	if s.Alarm {
		least = clearBet
	}
	bet := max(least, min(Against(excess, j.rules.Noise*j.rules.Noise+1/ops, step), j.rules.MostBet))
	if v.busier || j.rules.Alike && v.ops > j.rules.Busier*v.others {
		bet = min(bet, 0)
	}
	s.Bet(&j.bar, 0, now, bet)
	if s.smooth += (math.Log(s.ratio) - s.smooth) / 4; s.smooth >= math.Log(wellRatio) {
		s.well = now
	}
	if s.Alarm && now-s.well >= wellSeconds {
		s.Forget()
	}
}

func (j *Judge) verdict(id topology.NodeID, s *subject) anomaly.Verdict {
	v, _ := s.Verdict(&j.bar, id)
	v.Ratio = s.ratio
	if v.Level == anomaly.Clean {
		return v
	}
	peers := s.shown.took / s.shown.ratio
	v.Evidence["took_seconds"], v.Evidence["peers_seconds"] = s.shown.took, peers
	by := ""
	if who := j.rules.Words.Observer; who != "" {
		v.Evidence["observers"], by = float64(s.shown.who), fmt.Sprintf(" as %d %ss see it", s.shown.who, who)
		if s.shown.who == 1 {
			by = " as one " + who + " sees it"
		}
	}
	beside := "for " + j.rules.Words.Others
	if s.past {
		beside = "before at this load"
	}
	v.Sentence = fmt.Sprintf("%s is %s slow: %s takes %s ms%s, %s ms %s", id, anomaly.Times(s.shown.ratio),
		j.rules.Words.What, anomaly.Digits(1000*s.shown.took), by, anomaly.Digits(1000*peers), beside)
	return v
}
