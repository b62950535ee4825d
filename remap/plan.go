package remap

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// Move is one compute node's change of forwarder, or a limit: how much of a node's service the plan's job gets.
type Move struct {
	Node topology.NodeID      `json:"node"`
	From topology.ForwarderID `json:"from"`
	To   topology.ForwarderID `json:"to"`
	// Spread are the forwarders that the node spread its traffic over, where From is not one of them: names with a
	// comma between, by name. A roll back has the node use them all again.
	Spread string `json:"spread,omitempty"`
	// Limit is the most that the plan's job gets of Node, a forwarder with a queue or an object server, while others
	// ask for some, 0..1. Then From and To are empty; 0: a move.
	Limit float64 `json:"limit,omitempty"`
}

// About is the forwarder that a move is about: the one that its node leaves, or of a limit the node itself.
func (m *Move) About() topology.ForwarderID {
	if m.Limit > 0 {
		return topology.ForwarderID(m.Node)
	}
	return m.From
}

// Sources are the forwarders that a node comes from: one, several, or none where that is not known.
func (m *Move) Sources() (out []topology.ForwarderID) {
	if m.From != "" {
		return []topology.ForwarderID{m.From}
	}
	for name := range strings.SplitSeq(m.Spread, ",") {
		if name != "" {
			out = append(out, topology.ForwarderID(name))
		}
	}
	return out
}

// From fills in where the situation has a move's node: on one forwarder, or spread over several.
func (s *Situation) From(m *Move) {
	m.From, m.Spread = s.Observed[m.Node], ""
	var names []string
	for _, over := range s.SpreadOf(m.Node) {
		names = append(names, string(over.Forwarder))
	}
	m.Spread = strings.Join(names, ",")
}

// Over says whether a route is what a move wants: one forwarder, or, of a roll back, the same several.
func (m *Move) Over(r *window.Route) bool {
	if m.To != "" {
		return r.Forwarder == m.To
	}
	return r.Forwarder == "" && len(r.Shares) > 0 && slices.EqualFunc(r.Shares, m.Sources(),
		func(s topology.Share, f topology.ForwarderID) bool { return s.Forwarder == f })
}

// NodesOf returns the nodes of moves, in their order.
func NodesOf(moves []Move) []topology.NodeID {
	nodes := make([]topology.NodeID, len(moves))
	for i := range moves {
		nodes[i] = moves[i].Node
	}
	return nodes
}

// MoveAll asks that every node use one forwarder; the desk fills in where they come from.
func MoveAll(nodes []topology.NodeID, to topology.ForwarderID) []Move {
	moves := make([]Move, 0, len(nodes))
	for _, n := range nodes {
		moves = append(moves, Move{Node: n, To: to})
	}
	return moves
}

// Plan is a remap as data: which compute nodes go where, why, and how far it has come.
type Plan struct {
	ID       string         `json:"id"`
	Job      topology.JobID `json:"job,omitempty"`
	App      string         `json:"app,omitempty"`
	User     string         `json:"user,omitempty"`
	Moves    []Move         `json:"moves"`
	Reason   string         `json:"reason"`
	Proposer string         `json:"proposer"`
	Created  time.Time      `json:"created"`
	Expires  time.Time      `json:"expires"` // of the proposal, then of the approval
	State    PlanState      `json:"state"`
	Changed  time.Time      `json:"changed"`
	// Force cuts off a dead or hung forwarder instead of draining it first.
	Force bool `json:"force,omitempty"`
	// Dedicated keeps the targets for Job alone until the plan is taken back.
	Dedicated bool       `json:"dedicated,omitempty"`
	Approvals []Approval `json:"approvals,omitempty"`
	Results   []Result   `json:"results,omitempty"`
	Undo      []Result   `json:"undo,omitempty"` // of the roll back, node by node
	Error     string     `json:"error,omitempty"`
	// Ended is who rejected the plan, withdrew it or took it back, and why; nil while nobody has.
	Ended *Ended `json:"ended,omitempty"`
	// Frozen is what the desk knew when the plan was proposed, then when it was last approved.
	Frozen Frozen `json:"frozen"`
	// Ledger is of plans that a policy made for a job.
	Ledger *Ledger `json:"ledger,omitempty"`
	// Effect is what the moves were measured to bring; nil before that and where nobody measured it.
	Effect *Effect `json:"effect,omitempty"`
	// Rule is the rule of the site's settings by which the plan was proposed or approved; empty: none.
	Rule string `json:"rule,omitempty"`
	// Back is the way back that was asked for and waits; nil: none does.
	Back *Back `json:"back,omitempty"`
	// Goal is the state that a roll back under way ends in: RolledBack or Restored.
	Goal PlanState `json:"goal,omitempty"`

	// Short is the Title of a plan that has ended and is kept without its moves.
	Short string `json:"-"`
}

// Limits are the most that jobs get of a node, by node and job.
type Limits map[topology.NodeID]map[topology.JobID]float64

// LeastLimit is the smallest limit: who has next to nothing would never end its I/O.
const LeastLimit = 0.01

// Limits says whether the plan limits its job instead of moving nodes.
func (p *Plan) Limits() bool { return len(p.Moves) > 0 && p.Moves[0].Limit > 0 }

// Subject is one thing that a plan changes: where a node's traffic goes, or a job's limit at a node.
type Subject struct {
	Node topology.NodeID
	Job  topology.JobID // of a limit
}

// Subject is what a move of the plan changes. Of two plans that change the same the later one counts.
func (p *Plan) Subject(m *Move) Subject {
	if m.Limit > 0 {
		return Subject{m.Node, p.Job}
	}
	return Subject{Node: m.Node}
}

// Change is what the plan changes, in words.
func (p *Plan) Change() string {
	switch n := len(p.Moves); {
	case p.Limits():
		return fmt.Sprintf("%s: job %s gets at most %.2g %% while others ask for some; alone it has all",
			p.where(), p.Job, 100*p.Moves[0].Limit)
	case n == 1:
		return "1 compute node changes its forwarder"
	default:
		return fmt.Sprintf("%d compute nodes change their forwarder", n)
	}
}

// where names the nodes of the plan's limits.
func (p *Plan) where() string {
	return NameOrCount(NodesOf(p.Moves), "server")
}

// ProposedBy names who proposed the plan, and the rule by which.
func (p *Plan) ProposedBy() string {
	if p.Rule == "" {
		return p.Proposer
	}
	return p.Proposer + " by rule " + p.Rule
}

// Approval is one person's yes to one preview.
type Approval struct {
	By     string    `json:"by"`
	Via    string    `json:"via,omitempty"`
	At     time.Time `json:"at"`
	Hash   string    `json:"hash"`
	Reason string    `json:"reason"`
}

// Ended is the end of a plan.
type Ended struct {
	// By is a person, a policy, "findings" for the detectors, or "desk" for the desk itself.
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// Back is a way back that waits, because a forwarder that nodes would go to is not well.
type Back struct {
	Goal PlanState `json:"goal"` // RolledBack or Restored
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Why  string    `json:"why"`
}

// nodesStay stands between why a way back waits and for how long a forwarder must have been well.
const nodesStay = "; the nodes stay where they are and go back when it has been well for "

// StayText is Back.Why of a reason.
func StayText(reason, wellFor string) string { return reason + nodesStay + wellFor }

// Until says when the nodes go back; the reason of the moment when that was asked may be over.
func (b *Back) Until() string {
	if _, wellFor, ok := strings.Cut(b.Why, nodesStay); ok {
		return "the nodes go back when it has been well for " + wellFor
	}
	return b.Why
}

// Result is what became of one move.
type Result struct {
	Node     topology.NodeID `json:"node"`
	OK       bool            `json:"ok"`
	Tries    int             `json:"tries"`
	Error    string          `json:"error,omitempty"`
	At       time.Time       `json:"at"` // when the driver answered
	Took     time.Duration   `json:"took_ns"`
	Verified bool            `json:"verified"` // the collector observed the new mapping after At
	// Left says which programs go on to use what the node was moved from; empty: none. Such a move is not OK.
	Left string `json:"left,omitempty"`
}

// Progress counts a plan's results: of n moves ok are done, failed have failed, verified were
// observed. A roll back under way is counted by its own results.
func (p *Plan) Progress() (n, ok, failed, verified int) {
	results := p.Results
	if p.Goal != "" {
		results = p.Undo
	}
	for _, r := range results {
		switch {
		case r.Verified:
			ok, verified = ok+1, verified+1
		case r.OK:
			ok++
		default:
			failed++
		}
	}
	return len(p.Moves), ok, failed, verified
}

// ByPolicy says whether a policy proposed the plan.
func (p *Plan) ByPolicy() bool { return strings.HasPrefix(p.Proposer, policyPrefix) }

// ByRule says whether a rule approved the plan.
func (p *Plan) ByRule() bool {
	return slices.ContainsFunc(p.Approvals, func(a Approval) bool { return a.Via == ViaRule })
}

// PolicyPerson is a policy as proposer of plans.
func PolicyPerson(name string) Person {
	return Person{Name: policyPrefix + name, Role: Operator, Via: ViaPolicy}
}

const policyPrefix = "policy "

// Why says why a plan ended or failed; empty where there is nothing to say.
func (p *Plan) Why() string {
	if p.Back != nil {
		return p.Back.Why
	}
	if p.Error == "" && p.Ended != nil {
		return p.Ended.Reason
	}
	return p.Error
}

// ClonePlan copies what can still change; moves, approvals and the frozen part are never changed
// in place.
func ClonePlan(p *Plan) Plan {
	c := *p
	c.Results = slices.Clone(p.Results)
	c.Undo = slices.Clone(p.Undo)
	return c
}

// Title is the plan in one line.
func Title(p *Plan) string {
	if p.Short != "" {
		return p.Short
	}
	if p.Limits() {
		return fmt.Sprintf("limit job %s to %.2g %% of %s", p.Job, 100*p.Moves[0].Limit, p.where())
	}
	nodes := NameOrCount(NodesOf(p.Moves), "node")
	if p.Job != "" {
		nodes = fmt.Sprintf("job %s (%s)", p.Job, nodes)
	}
	to := NameOrCount(Targets(p.Moves), "forwarder")
	if p.Dedicated {
		to += ", dedicated"
	}
	return nodes + " -> " + to
}

// NameOrCount names the only one of some things, or says how many there are.
func NameOrCount[S ~string](names []S, thing string) string {
	if len(names) == 1 {
		return string(names[0])
	}
	return anomaly.Counted(len(names), thing)
}

// Targets returns the forwarders that moves go to, each once; limits have none.
func Targets(moves []Move) (targets []topology.ForwarderID) {
	for i := range moves {
		targets = append(targets, moves[i].To)
	}
	return topology.Distinct(targets)
}

// Preview is what approving a plan would do now, in words, and the hash that binds an approval
// to it.
type Preview struct {
	Plan   Plan     `json:"plan"` // with From as observed now
	Title  string   `json:"title"`
	Lines  []string `json:"lines"`
	Checks []Check  `json:"checks"`
	Hash   string   `json:"hash"`
	Needs  int      `json:"needs"` // approvals
	// MayApprove is empty when the caller may approve, else why not.
	MayApprove string `json:"may_approve"`
	// Frozen is the part of the situation that the preview was made of.
	Frozen Frozen `json:"-"`
	// Options is what the caller may do with the plan.
	Options Options `json:"options"`
}

// Check is one precondition of a plan. An amber one asks for a second approval, a red one forbids.
type Check struct {
	Name  string     `json:"name"`
	Level CheckLevel `json:"level"`
	Text  string     `json:"text"`
}

// CheckLevel grades a check.
type CheckLevel string

// The levels of a check.
const (
	Green CheckLevel = "ok"
	Amber CheckLevel = "amber"
	Red   CheckLevel = "red"
)
