package console

import (
	"slices"

	"fairway/remap"
)

// action is what a key asks for; pages see actions, never keys, so that keys can be changed in
// this table alone.
type action string

// The actions.
const (
	actUp       action = "up"
	actDown     action = "down"
	actLeft     action = "left"
	actRight    action = "right"
	actPageUp   action = "page-up"
	actPageDown action = "page-down"
	actOpen     action = "open"
	actBack     action = "back"
	actPanel    action = "panel"
	actOverview action = "overview"
	actJobs     action = "jobs"
	actPlans    action = "plans"
	actAudit    action = "audit"
	actLogs     action = "logs"
	actCalendar action = "calendar"
	actWhatIf   action = "what-if"
	actWhy      action = "why"
	actDomains  action = "domains"
	actRuns     action = "runs"
	actOp       action = "direction"
	actEdit     action = "edit"
	actFindings action = "findings"
	actAck      action = "acknowledge"
	actDismiss  action = "dismiss"
	actSilence  action = "silence"
	actExclude  action = "exclude"
	actCanary   action = "canary"
	actJobsHere action = "jobs-here"
	actStorage  action = "backend"
	actNext     action = "next"
	actMetric   action = "metric"
	actTable    action = "table"
	actFilter   action = "filter"
	actSortPrev action = "sort-left"
	actSortNext action = "sort-right"
	actReverse  action = "reverse"
	actPause    action = "pause"
	actLive     action = "live"
	actPropose  action = "propose"
	actForce    action = "force"
	actApprove  action = "approve"
	actReject   action = "reject"
	actRollBack action = "roll-back"
	actStop     action = "stop"
	actAll      action = "all"
	actEvidence action = "evidence"
	actCopy     action = "copy"
	actExport   action = "export"
	actGo       action = "go"
	actRequests action = "requests"
	actHelp     action = "help"
	actUpOrQuit action = "up-or-quit"
	actQuit     action = "quit"
)

// binding is one line of the key table.
type binding struct {
	act  action
	keys []string // as bubbletea names them
	show string   // as people name them
	does string
	hint string   // on the bottom line; "" leaves it out
	on   []string // pages; nil is every page
	// changes says that the key changes the machine. Such a key is upper case and asks once.
	changes bool
}

const (
	onOverview  = "overview"
	onForwarder = "forwarder"
	onPlans     = "plans"
	onPlan      = "plan"
	onJobs      = "jobs"
	onJob       = "job"
	onAudit     = "audit"
	onFindings  = "findings"
	onFinding   = "finding"
	onPropose   = "propose"
	onLogs      = "logs"
	onCalendar  = "calendar"
	onWhy       = "why"
	onDomains   = "domains"
	onRuns      = "runs"
	onShares    = "shares"
	onPattern   = "pattern"
	onHelp      = "help"
	onRequests  = "requests"
)

var (
	onLists   = []string{onOverview, onLogs, onRuns}
	onAddress = []string{onForwarder, onPlan, onPlans, onOverview, onJobs, onJob, onAudit, onFindings, onFinding,
		onLogs, onCalendar, onWhy, onRuns, onDomains, onShares, onPattern}
	onEvery  = append([]string{onOverview}, onInside...)
	onInside = []string{onForwarder, onPlans, onPlan, onPropose, onJobs, onJob, onAudit, onFindings, onFinding, onLogs,
		onCalendar, onWhy, onRuns, onDomains, onShares, onPattern, onHelp, onRequests}
)

// keyTable is the one place where keys are: dispatch, the bottom line and the help come from it. A
// person's own keys (Remap) replace those of a copy.
var keyTable = []binding{
	{act: actOpen, keys: []string{"enter"}, show: "enter", does: "open what is selected", hint: "open",
		on: []string{onOverview, onPlans, onJobs, onJob, onAudit, onFindings, onShares, onRuns}},
	{act: actOpen, keys: []string{"enter"}, show: "enter", does: "explain the selected job", hint: "why",
		on: []string{onLogs}},
	{act: actOpen, keys: []string{"enter"}, show: "enter", does: "open the job", hint: "job",
		on: []string{onWhy, onDomains}},
	{act: actOpen, keys: []string{"enter"}, show: "enter", does: "choose this forwarder and write the reason",
		hint: "choose", on: []string{onPropose}},
	{act: actOpen, keys: []string{"enter"}, show: "enter", does: "press the focused button; it never approves",
		hint: "", on: []string{onPlan}},
	{act: actOpen, keys: []string{"enter"}, show: "enter", does: "open the forwarder that the finding is about",
		hint: "forwarder", on: []string{onFinding}},
	{act: actAck, keys: []string{"a"}, show: "a", does: "acknowledge: say that you look after it", hint: "acknowledge",
		on: []string{onFindings, onFinding}},
	{act: actExclude, keys: []string{"e"}, show: "e",
		does: "withhold the forwarder from allocation, or take it back: asks why, then A does it; nobody is moved",
		hint: "withhold...", on: []string{onFindings, onFinding}},
	{act: actSilence, keys: []string{"s"}, show: "s",
		does: "silence it for a while (asks how long): it stays in this list and calls nobody", hint: "silence for...",
		on: []string{onFindings, onFinding}},
	{act: actDismiss, keys: []string{"x"}, show: "x", does: "not a fault (asks why); it is not made again for a day",
		hint: "not a fault", on: []string{onFindings, onFinding}},
	{act: actApprove, keys: []string{"A"}, show: "A", does: "approve this plan (asks once)", hint: "approve",
		on: []string{onPlan}, changes: true},
	{act: actApprove, keys: []string{"A"}, show: "A",
		does: "do what e has asked about: withhold the forwarder, or take it back",
		on:   []string{onForwarder, onFindings, onFinding}, changes: true},
	{act: actReject, keys: []string{"x"}, show: "x", does: "reject this plan; nothing moves", hint: "reject",
		on: []string{onPlan}},
	{act: actRollBack, keys: []string{"B"}, show: "B",
		does: "roll this plan back, also while it is applied (asks once)", hint: "roll back", on: []string{onPlan},
		changes: true},
	{act: actStop, keys: []string{"s"}, show: "s", does: "stop applying after this batch: the safe direction",
		hint: "stop", on: []string{onPlan}},
	{act: actAll, keys: []string{"d"}, show: "d", does: "all changes or only the first", hint: "all changes",
		on: []string{onPlan}},
	{act: actEvidence, keys: []string{"e"}, show: "e",
		does: "evidence: the forwarders that it touches, as they were then and as they are now, or back",
		hint: "evidence", on: []string{onPlan}},
	{act: actPropose, keys: []string{"p"}, show: "p",
		does: "propose another forwarder for the selected client, or for all of a forwarder", hint: "propose",
		on: []string{onOverview, onForwarder, onFindings, onFinding}},
	{act: actPropose, keys: []string{"p"}, show: "p",
		does: "propose another forwarder for the job's nodes on the selected one", hint: "propose",
		on: []string{onJob}},
	{act: actWhy, keys: []string{"w"}, show: "w", does: "why its I/O took as long as it did, from its logs",
		hint: "why", on: []string{onJob}},
	{act: actDomains, keys: []string{"d"}, show: "d",
		does: "how its shared file could be divided among writers, and which hints to set", hint: "file domains",
		on: []string{onJob, onWhy}},
	{act: actMetric, keys: []string{"m"}, show: "m", does: "next shared file", hint: "next file",
		on: []string{onDomains}},
	{act: actEdit, keys: []string{"e"}, show: "e",
		does: "say how many servers, which stripe size, how many aggregators", hint: "servers, stripes",
		on: []string{onDomains}},
	{act: actRuns, keys: []string{"u"}, show: "u", does: "the ended runs like it: same user, application and size",
		hint: "runs like it", on: []string{onJob}},
	{act: actOp, keys: []string{"w"}, show: "w", does: "reads or writes", hint: "reads/writes", on: []string{onLogs}},
	{act: actAll, keys: []string{"a"}, show: "a", does: "all jobs or only the slow ones", hint: "all jobs",
		on: []string{onLogs}},
	{act: actEdit, keys: []string{"e"}, show: "e",
		does: "change the set of applications (type or paste JSON as fairway periodic reads it)", hint: "edit set",
		on: []string{onPattern}},
	{act: actPanel, keys: []string{"tab"}, show: "tab", does: "when periodic applications should do their I/O",
		hint: "staggered I/O", on: []string{onShares}},
	{act: actPanel, keys: []string{"tab"}, show: "tab", does: "the shares of the running jobs", hint: "shares",
		on: []string{onPattern}},
	{act: actMetric, keys: []string{"m"}, show: "m", does: "the last hour, day or month", hint: "hour/day/month",
		on: []string{onCalendar}},
	{act: actOpen, keys: []string{"enter"}, show: "enter", does: "replay from the beginning of this line's time",
		hint: "replay", on: []string{onCalendar}},
	{act: actMetric, keys: []string{"m"}, show: "m", does: "next sharing policy", hint: "policy",
		on: []string{onShares}},
	{act: actForce, keys: []string{"f"}, show: "f", does: "force: cut a dead forwarder off instead of draining it",
		hint: "force", on: []string{onPropose}},
	{act: actMetric, keys: []string{"m"}, show: "m", does: "next metric in the grid", hint: "metric",
		on: []string{onOverview}},
	{act: actFilter, keys: []string{"/"}, show: "/", does: "filter the list by name, state, job or rack",
		hint: "filter", on: []string{onOverview}},
	{act: actFilter, keys: []string{"/"}, show: "/",
		does: "filter by actor, subject and time, such as actor=sam from=-2h", hint: "filter", on: []string{onAudit}},
	{act: actFilter, keys: []string{"/"}, show: "/", does: "find a key or a word here", hint: "find",
		on: []string{onHelp}},
	{act: actExclude, keys: []string{"e"}, show: "e",
		does: "withhold this forwarder from allocation, or take it back: asks why, then A does it; nobody is moved",
		hint: "withhold...", on: []string{onForwarder}},
	{act: actCanary, keys: []string{"C"}, show: "C",
		does: "canary probe: one small write, read and stat through this forwarder (asks once)", hint: "canary probe",
		on: []string{onForwarder}, changes: true},
	{act: actJobsHere, keys: []string{"j"}, show: "j", does: "the jobs here, and back to the clients",
		hint: "jobs here", on: []string{onForwarder}},
	{act: actStorage, keys: []string{"o"}, show: "o",
		does: "backend: what it asks of each storage target, and back to the clients", hint: "backend",
		on: []string{onForwarder}},
	{act: actWhy, keys: []string{"w"}, show: "w",
		does: "why: the open finding's evidence, or of the chosen job its logs", hint: "why",
		on: []string{onForwarder}},
	{act: actOpen, keys: []string{"enter"}, show: "enter", does: "open the job that is chosen", hint: "",
		on: []string{onForwarder}},
	{act: actJobs, keys: []string{"2"}, show: "2", does: "jobs", hint: "jobs"},
	{act: actFindings, keys: []string{"3"}, show: "3", does: "findings: what is wrong", hint: "findings"},
	{act: actPlans, keys: []string{"4"}, show: "4", does: "plans", hint: "plans"},
	{act: actAudit, keys: []string{"5"}, show: "5", does: "audit: who did what", hint: ""},
	{act: actCalendar, keys: []string{"6"}, show: "6", does: "calendar: how busy the forwarders were, day by day",
		hint: ""},
	{act: actLogs, keys: []string{"7"}, show: "7", does: "I/O logs: jobs of low bandwidth", hint: ""},
	{act: actWhatIf, keys: []string{"8"}, show: "8", does: "what if: shares of the jobs here", hint: "what if",
		on: []string{onForwarder}},
	{act: actWhatIf, keys: []string{"8"}, show: "8", does: "what if: shares under a policy, staggered I/O", hint: ""},
	{act: actOverview, keys: []string{"1"}, show: "1", does: "overview", hint: ""},
	{act: actTable, keys: []string{"g"}, show: "g", does: "grid or table", hint: "grid/table",
		on: []string{onOverview}},
	{act: actNext, keys: []string{"n"}, show: "n", does: "open the next thing that needs you", hint: "next"},
	{act: actHistory, keys: []string{"H"}, show: "H", does: "history: replay the past, second by second",
		hint: "history", on: []string{onOverview, onForwarder}},
	{act: actPause, keys: []string{" "}, show: "space", does: "pause the picture; the data keeps coming",
		hint: "pause"},
	{act: actLive, keys: []string{"L"}, show: "L", does: "live again", hint: ""},
	{act: actPanel, keys: []string{"tab"}, show: "tab", does: "next panel or field", hint: "",
		on: []string{onOverview, onPlan}},
	{act: actPanel, keys: []string{"tab"}, show: "tab", does: "open ones, or also those closed within an hour",
		hint: "open/all", on: []string{onFindings}},
	{act: actUp, keys: []string{"up", "k"}, show: "up k", does: "move up"},
	{act: actDown, keys: []string{"down", "j"}, show: "down j", does: "move down"},
	{act: actLeft, keys: []string{"left", "h"}, show: "left h", does: "move left", on: []string{onOverview}},
	{act: actRight, keys: []string{"right", "l"}, show: "right l", does: "move right", on: []string{onOverview}},
	{act: actPageUp, keys: []string{"pgup"}, show: "page up", does: "one page up"},
	{act: actPageDown, keys: []string{"pgdown"}, show: "page down", does: "one page down"},
	{act: actSortPrev, keys: []string{"<"}, show: "<", does: "sort by the column to the left", on: onLists},
	{act: actSortNext, keys: []string{">"}, show: ">", does: "sort by the column to the right", on: onLists},
	{act: actReverse, keys: []string{"r"}, show: "r", does: "reverse the order", on: onLists},
	{act: actCopy, keys: []string{"y"}, show: "y", does: "copy this screen's address", hint: "copy link",
		on: onAddress},
	{act: actExport, keys: []string{"E"}, show: "E",
		does: "export this table as CSV, into the directory that the console was started in",
		on:   []string{onOverview, onLogs, onCalendar, onRuns, onShares}},
	{act: actRequests, keys: []string{"@"}, show: "@", does: "log of the requests this console sent"},
	{act: actBack, keys: []string{"backspace", "esc"}, show: "backspace", does: "back", hint: "back", on: onInside},
	{act: actGo, keys: []string{":"}, show: ":", does: "go to a forwarder, plan or screen by name", hint: "go"},
	{act: actHelp, keys: []string{"?"}, show: "?", does: "these keys", hint: "help"},
	{act: actUpOrQuit, keys: []string{"q"}, show: "q", does: "back, or quit on the first screen", hint: "quit",
		on: []string{onOverview}},
	{act: actUpOrQuit, keys: []string{"q"}, show: "q", does: "back", on: onInside},
	{act: actQuit, keys: []string{"ctrl+c"}, show: "ctrl-c", does: "quit"},
}

func (b *binding) works(page string) bool { return b.on == nil || slices.Contains(b.on, page) }

// refuser is a page that knows what is refused just now; its bottom line leaves that out.
type refuser interface {
	refuses(s *State, a action) string
}

// waits reports whether a page is of a plan that waits for a person: then approving is offered, and why it
// is refused just now is said when it is tried.
func waits(p page) bool {
	plan, ok := p.(*planPage)
	return !ok || !plan.have || plan.plan.State == remap.Proposed
}

// hints is the bottom line of a page: the table's order until the width is used up.
func hints(s *State, p page, w int) string {
	r, _ := p.(refuser)
	line, room := "", 0
	for i := range s.keys.table {
		if b := &s.keys.table[i]; b.act == actHelp && b.show != "" {
			room = len("  " + b.show + " " + b.hint)
		}
	}
	for i := range s.keys.table {
		b := &s.keys.table[i]
		if b.hint == "" || b.show == "" || !b.works(p.name()) || r != nil && r.refuses(s, b.act) != "" &&
			(b.act != actApprove || !waits(p)) {
			continue
		}
		item := b.show + " " + b.hint
		if line != "" {
			item = "  " + item
		}
		// Help always fits, so that what was left out can be found.
		if len(line)+len(item) > w-1-room && b.act != actHelp {
			continue
		}
		line += item
	}
	return " " + line
}
