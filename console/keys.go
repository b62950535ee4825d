package console

import (
	"slices"
	"strings"

	"fairway/console/screen"
)

// binding is one line of the key table.
type binding struct {
	act  screen.Action
	keys []string // as bubbletea names them
	show string   // as people name them
	does string
	hint string   // on the bottom line; "" leaves it out
	on   []string // pages; nil is every page
	// changes says that the key changes the machine. Such a key is upper case and asks once.
	changes bool
}

var (
	onLists   = []string{screen.OnOverview, screen.OnLogs, screen.OnRuns}
	onAddress = []string{screen.OnForwarder, screen.OnPlan, screen.OnPlans, screen.OnOverview, screen.OnJobs,
		screen.OnJob, screen.OnAudit, screen.OnFindings, screen.OnFinding,
		screen.OnLogs, screen.OnCalendar, screen.OnWhy, screen.OnRuns, screen.OnDomains, screen.OnShares,
		screen.OnPattern}
	onEvery  = append([]string{screen.OnOverview}, onInside...)
	onInside = []string{screen.OnForwarder, screen.OnPlans, screen.OnPlan, screen.OnPropose, screen.OnJobs,
		screen.OnJob, screen.OnAudit, screen.OnFindings, screen.OnFinding, screen.OnLogs,
		screen.OnCalendar, screen.OnWhy, screen.OnRuns, screen.OnDomains, screen.OnShares, screen.OnPattern,
		screen.OnHelp, screen.OnRequests}
)

// keyTable is the one place where keys are: dispatch, the bottom line and the help come from it. A
// person's own keys (Remap) replace those of a copy.
var keyTable = []binding{
	bind(screen.ActOpen, "enter", "open what is selected", "open", screen.OnOverview, screen.OnPlans, screen.OnJobs,
		screen.OnJob, screen.OnAudit, screen.OnFindings, screen.OnShares, screen.OnRuns),
	bind(screen.ActOpen, "enter", "explain the selected job", "why", screen.OnLogs),
	bind(screen.ActOpen, "enter", "open the job", "job", screen.OnWhy, screen.OnDomains),
	bind(screen.ActOpen, "enter", "choose this forwarder and write the reason", "choose", screen.OnPropose),
	bind(screen.ActOpen, "enter", "press the focused button; it never approves", "", screen.OnPlan),
	bind(screen.ActOpen, "enter", "open the forwarder that the finding is about", "forwarder", screen.OnFinding),
	bind(screen.ActAck, "a", "acknowledge: say that you look after it", "acknowledge", screen.OnFindings,
		screen.OnFinding),
	bind(screen.ActExclude, "e",
		"drain the forwarder: no job gets it, nobody is moved; or return it. Asks why, then A does it", "drain...",
		screen.OnFindings, screen.OnFinding),
	bind(screen.ActSilence, "s", "silence it for a while (asks how long): it stays in this list and does not alert",
		"silence for...", screen.OnFindings, screen.OnFinding),
	bind(screen.ActDismiss, "x", "not a fault (asks why); it is not made again for a day", "not a fault",
		screen.OnFindings, screen.OnFinding),
	bindChange(screen.ActApprove, "A", "approve this plan (asks once)", "approve", screen.OnPlan),
	bindChange(screen.ActApprove, "A", "open the plan that waits, to read and approve it", "", screen.OnOverview),
	bindChange(screen.ActApprove, "A",
		"do what e has asked about (drain the forwarder, or return it); else open the plan that waits", "",
		screen.OnForwarder, screen.OnFindings, screen.OnFinding),
	bind(screen.ActReject, "x", "reject this plan; nothing moves", "reject", screen.OnPlan),
	bindChange(screen.ActRollBack, "B", "roll this plan back, also while it is applied (asks once)", "roll back",
		screen.OnPlan),
	bind(screen.ActStop, "s", "stop applying after this batch: the safe direction", "stop", screen.OnPlan),
	bind(screen.ActAll, "d", "all changes or only the first", "all changes", screen.OnPlan),
	bind(screen.ActEvidence, "e",
		"evidence: the forwarders that it touches, as they were then and as they are now, or back", "evidence",
		screen.OnPlan),
	bind(screen.ActPropose, "p", "propose another forwarder for the selected client, or for all of a forwarder",
		"propose", screen.OnOverview, screen.OnForwarder, screen.OnFindings, screen.OnFinding),
	bind(screen.ActNote, "W", "write a note about it, in a replay about the second shown; it is kept with your name",
		"note...", screen.OnFindings, screen.OnFinding),
	bind(screen.ActPropose, "p", "propose another forwarder for the job's nodes on the selected one", "propose",
		screen.OnJob),
	bind(screen.ActWhy, "w", "why its I/O took as long as it did, from its logs", "why", screen.OnJob),
	bind(screen.ActDomains, "d", "how its shared file could be divided among writers, and which hints to set",
		"file domains", screen.OnJob, screen.OnWhy),
	bind(screen.ActMetric, "m", "next shared file", "next file", screen.OnDomains),
	bind(screen.ActEdit, "e", "say how many servers, which stripe size, how many aggregators", "servers, stripes",
		screen.OnDomains),
	bind(screen.ActRuns, "u", "the ended runs like it: same user, application and size", "runs like it",
		screen.OnJob),
	bind(screen.ActOp, "w", "reads or writes", "reads/writes", screen.OnLogs),
	bind(screen.ActAll, "a", "all jobs or only the slow ones", "all jobs", screen.OnLogs),
	bind(screen.ActEdit, "e", "change the set of applications (type or paste JSON as fairway periodic reads it)",
		"edit set", screen.OnPattern),
	bind(screen.ActPanel, "tab", "when periodic applications should do their I/O", "staggered I/O", screen.OnShares),
	bind(screen.ActPanel, "tab", "the shares of the running jobs", "shares", screen.OnPattern),
	bind(screen.ActMetric, "m", "the last hour, day or month", "hour/day/month", screen.OnCalendar),
	bind(screen.ActOpen, "enter", "replay from the beginning of this line's time", "replay", screen.OnCalendar),
	bind(screen.ActMetric, "m", "next sharing policy", "policy", screen.OnShares),
	bind(screen.ActForce, "f", "force: cut a dead forwarder off instead of draining it", "force", screen.OnPropose),
	bind(screen.ActMetric, "m", "next metric in the grid", "metric", screen.OnOverview),
	bind(screen.ActFilter, "/", "filter the list by name, state, job or rack", "filter", screen.OnOverview),
	bind(screen.ActFilter, "/", "filter the list by any words of its lines, such as a user; escape clears it",
		"filter", screen.OnJobs, screen.OnPlans, screen.OnFindings),
	bind(screen.ActFilter, "/", "filter by actor, subject and time, such as actor=sam from=-2h", "filter",
		screen.OnAudit),
	bind(screen.ActFilter, "/", "find a key or a word here", "find", screen.OnHelp),
	bind(screen.ActExclude, "e",
		"drain this forwarder: no job gets it, nobody is moved; or return it. Asks why, then A does it", "drain...",
		screen.OnForwarder),
	bindChange(screen.ActCanary, "C", "canary: one small write, read and stat through this forwarder (asks once)",
		"canary", screen.OnForwarder),
	bind(screen.ActJobsHere, "j", "the jobs here, and back to the clients", "jobs here", screen.OnForwarder),
	bind(screen.ActStorage, "o", "backend: what it asks of each storage target, and back to the clients", "backend",
		screen.OnForwarder),
	bind(screen.ActWhy, "w", "why: the open finding's evidence, or of the chosen job its logs", "why",
		screen.OnForwarder),
	bind(screen.ActMark, "s", "mark the selected client, or unmark it: p moves all that are marked", "",
		screen.OnForwarder),
	bind(screen.ActOpen, "enter", "open the job that is chosen", "", screen.OnForwarder),
	bind(screen.ActJobs, "2", "jobs", "jobs"),
	bind(screen.ActFindings, "3", "findings: what is wrong", "findings"),
	bind(screen.ActPlans, "4", "plans", "plans"),
	bind(screen.ActAudit, "5", "audit: who did what", ""),
	bind(screen.ActCalendar, "6", "calendar: how busy the forwarders were, day by day", ""),
	bind(screen.ActLogs, "7", "I/O logs: jobs of low bandwidth", ""),
	bind(screen.ActWhatIf, "8", "what if: shares of the jobs here", "what if", screen.OnForwarder),
	bind(screen.ActWhatIf, "8", "what if: shares under a policy, staggered I/O", ""),
	bind(screen.ActOverview, "1", "overview", ""),
	bind(screen.ActTable, "g", "grid or table", "grid/table", screen.OnOverview),
	bind(screen.ActNext, "n", "open the next thing that needs you", "next"),
	bindChange(screen.ActUndo, "Z", "undo what you did last: says what that takes back, or why nothing can (asks once)",
		""),
	bind(screen.ActHistory, "H", "history: replay the past, second by second", "history", screen.OnOverview,
		screen.OnForwarder),
	bind(screen.ActMarkBack, "[", "replay from the newest mark: finding, plan, exclusion", ""),
	bind(screen.ActMarkOn, "]", "in a replay: to the next mark", ""),
	bind(screen.ActPause, "space", "pause the screen; the data keeps coming", "pause"),
	bind(screen.ActLive, "L", "live again", ""),
	bind(screen.ActPanel, "tab", "next panel or field", "", screen.OnOverview, screen.OnPlan),
	bind(screen.ActPanel, "tab", "open ones, or also those closed within an hour", "open/all", screen.OnFindings),
	bind(screen.ActUp, "up k", "move up", ""),
	bind(screen.ActDown, "down j", "move down", ""),
	bind(screen.ActLeft, "left h", "move left", "", screen.OnOverview),
	bind(screen.ActRight, "right l", "move right", "", screen.OnOverview),
	bind(screen.ActPageUp, "page-up", "one page up", ""),
	bind(screen.ActPageDown, "page-down", "one page down", ""),
	bind(screen.ActSortPrev, "<", "sort by the column to the left", "", onLists...),
	bind(screen.ActSortNext, ">", "sort by the column to the right", "", onLists...),
	bind(screen.ActReverse, "r", "reverse the order", "", onLists...),
	bind(screen.ActHide, "-", "hide the column that it is sorted by", "", onLists...),
	bind(screen.ActShowAll, "+", "all columns", "", onLists...),
	bind(screen.ActCopy, "y", "copy this screen's address", "copy link", onAddress...),
	bind(screen.ActAnswer, "Y", "copy the first line, for a ticket", "copy answer", screen.OnJob),
	bind(screen.ActExport, "E", "export this table as CSV, into the directory that the console was started in", "",
		screen.OnOverview, screen.OnLogs, screen.OnCalendar, screen.OnRuns, screen.OnShares),
	bind(screen.ActRequests, "@", "log of the requests this console sent", ""),
	bind(screen.ActBack, "backspace | esc", "back", "back", onInside...),
	bind(screen.ActBrowser, "i", "the browser's address: a link that signs you in there once", ""),
	bind(screen.ActGo, ":", "go to a forwarder, plan or screen by name", "go"),
	bind(screen.ActHelp, "?", "these keys", "help"),
	bind(screen.ActUpOrQuit, "q", "back, or quit on the first screen", "quit", screen.OnOverview),
	bind(screen.ActUpOrQuit, "q", "back", "", onInside...),
	bind(screen.ActQuit, "ctrl+c", "quit", ""),
}

// bind makes a line of the key table. Its keys are named as settings name them; those behind | are not shown.
func bind(act screen.Action, keys, does, hint string, on ...string) binding {
	b := binding{act: act, does: does, hint: hint, on: on}
	first, others, _ := strings.Cut(keys, " | ")
	for name := range strings.FieldsSeq(first + " " + others) {
		key, _ := keyNamed(name)
		b.keys = append(b.keys, key)
	}
	for name := range strings.FieldsSeq(first) {
		if len(name) > 1 {
			name = strings.ReplaceAll(strings.ReplaceAll(name, "+", "-"), "page-", "page ")
		}
		b.show = strings.TrimSpace(b.show + " " + name)
	}
	return b
}

// bindChange is bind of a key that changes the machine.
func bindChange(act screen.Action, keys, does, hint string, on ...string) binding {
	b := bind(act, keys, does, hint, on...)
	b.changes = true
	return b
}

func (b *binding) works(page string) bool { return b.on == nil || slices.Contains(b.on, page) }

// replayTable are the keys of a replay; they come before every page's own.
var replayTable = []binding{
	bind(screen.ActStepBack, "left", "a second back", "1 s"),
	bind(screen.ActStepOn, "right", "a second on", ""),
	bind(screen.ActMinuteBack, "shift+left {", "a minute back", "1 min"),
	bind(screen.ActMinuteOn, "shift+right }", "a minute on", ""),
	bind(screen.ActMarkBack, "[", "to the mark before: a finding, plan or exclusion that changed", "marks"),
	bind(screen.ActMarkOn, "]", "to the next mark", ""),
	bind(screen.ActFaster, "+ | =", "run faster", "speed"),
	bind(screen.ActSlower, "-", "run slower", ""),
	bind(screen.ActPause, "space", "run or stand still", "run/stop"),
	bind(screen.ActLive, "L | H", "live again", "live"),
}
