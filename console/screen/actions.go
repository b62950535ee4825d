package screen

// Action is what a key asks for. Screens see actions, never keys: keys are changed in one table.
type Action string

// The actions.
const (
	ActNone     Action = ""
	ActUp       Action = "up"
	ActDown     Action = "down"
	ActLeft     Action = "left"
	ActRight    Action = "right"
	ActPageUp   Action = "page-up"
	ActPageDown Action = "page-down"
	ActOpen     Action = "open"
	ActBack     Action = "back"
	ActPanel    Action = "panel"
	ActOverview Action = "overview"
	ActJobs     Action = "jobs"
	ActPlans    Action = "plans"
	ActAudit    Action = "audit"
	ActLogs     Action = "logs"
	ActCalendar Action = "calendar"
	ActWhatIf   Action = "what-if"
	ActWhy      Action = "why"
	ActDomains  Action = "domains"
	ActRuns     Action = "runs"
	ActOp       Action = "direction"
	ActEdit     Action = "edit"
	ActFindings Action = "findings"
	ActAck      Action = "acknowledge"
	ActDismiss  Action = "dismiss"
	ActSilence  Action = "silence"
	ActExclude  Action = "exclude"
	ActNote     Action = "note"
	ActCanary   Action = "canary"
	ActJobsHere Action = "jobs-here"
	ActStorage  Action = "backend"
	ActMark     Action = "mark"
	ActNext     Action = "next"
	ActMetric   Action = "metric"
	ActTable    Action = "table"
	ActFilter   Action = "filter"
	ActSortPrev Action = "sort-left"
	ActSortNext Action = "sort-right"
	ActReverse  Action = "reverse"
	ActHide     Action = "hide-column"
	ActShowAll  Action = "all-columns"
	ActPause    Action = "pause"
	ActLive     Action = "live"
	ActPropose  Action = "propose"
	ActForce    Action = "force"
	ActApprove  Action = "approve"
	ActReject   Action = "reject"
	ActRollBack Action = "roll-back"
	ActStop     Action = "stop"
	ActUndo     Action = "undo"
	ActAll      Action = "all"
	ActEvidence Action = "evidence"
	ActCopy     Action = "copy"
	ActAnswer   Action = "copy-answer"
	ActBrowser  Action = "browser"
	ActExport   Action = "export"
	ActGo       Action = "go"
	ActRequests Action = "requests"
	ActHelp     Action = "help"
	ActUpOrQuit Action = "up-or-quit"
	ActQuit     Action = "quit"
)

// The names of screens in the key table.
const (
	OnOverview  = "overview"
	OnForwarder = "forwarder"
	OnPlans     = "plans"
	OnPlan      = "plan"
	OnJobs      = "jobs"
	OnJob       = "job"
	OnAudit     = "audit"
	OnFindings  = "findings"
	OnFinding   = "finding"
	OnPropose   = "propose"
	OnLogs      = "logs"
	OnCalendar  = "calendar"
	OnWhy       = "why"
	OnDomains   = "domains"
	OnRuns      = "runs"
	OnShares    = "shares"
	OnPattern   = "pattern"
	OnHelp      = "help"
	OnRequests  = "requests"
	OnGo        = "go"
)

// The actions of a replay.
const (
	ActHistory    Action = "history"
	ActStepBack   Action = "step-back"
	ActStepOn     Action = "step-on"
	ActMinuteBack Action = "minute-back"
	ActMinuteOn   Action = "minute-on"
	ActMarkBack   Action = "mark-back"
	ActMarkOn     Action = "mark-on"
	ActFaster     Action = "faster"
	ActSlower     Action = "slower"
)

// steps are how far the keys of movement go in a list or a text.
var steps = map[Action]int{ActUp: -1, ActDown: 1, ActPageUp: -10, ActPageDown: 10}

// Step is how far a key of movement goes; 0 for others.
func (a Action) Step() int { return steps[a] }

// Moved is where a key of movement leads from a place in a list of n; other keys stay.
func (a Action) Moved(at, n int) int { return max(0, min(at+a.Step(), n-1)) }

// ChangesMachine are the actions that a replay refuses: what is shown is not what would be changed.
var ChangesMachine = map[Action]bool{ActPropose: true, ActForce: true, ActApprove: true, ActReject: true,
	ActRollBack: true,
	ActStop:     true, ActUndo: true, ActAck: true, ActDismiss: true, ActExclude: true, ActSilence: true,
	ActCanary: true}
