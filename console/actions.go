package console

// Action is what a key asks for. Screens see actions, never keys: keys are changed in one table.
type Action string

// The actions.
const (
	actUp       Action = "up"
	actDown     Action = "down"
	actLeft     Action = "left"
	actRight    Action = "right"
	actPageUp   Action = "page-up"
	actPageDown Action = "page-down"
	actOpen     Action = "open"
	actBack     Action = "back"
	actPanel    Action = "panel"
	actOverview Action = "overview"
	actJobs     Action = "jobs"
	actPlans    Action = "plans"
	actAudit    Action = "audit"
	actLogs     Action = "logs"
	actCalendar Action = "calendar"
	actWhatIf   Action = "what-if"
	actWhy      Action = "why"
	actDomains  Action = "domains"
	actRuns     Action = "runs"
	actOp       Action = "direction"
	actEdit     Action = "edit"
	actFindings Action = "findings"
	actAck      Action = "acknowledge"
	actDismiss  Action = "dismiss"
	actSilence  Action = "silence"
	actExclude  Action = "exclude"
	actCanary   Action = "canary"
	actJobsHere Action = "jobs-here"
	actStorage  Action = "backend"
	actNext     Action = "next"
	actMetric   Action = "metric"
	actTable    Action = "table"
	actFilter   Action = "filter"
	actSortPrev Action = "sort-left"
	actSortNext Action = "sort-right"
	actReverse  Action = "reverse"
	actPause    Action = "pause"
	actLive     Action = "live"
	actPropose  Action = "propose"
	actForce    Action = "force"
	actApprove  Action = "approve"
	actReject   Action = "reject"
	actRollBack Action = "roll-back"
	actStop     Action = "stop"
	actAll      Action = "all"
	actEvidence Action = "evidence"
	actCopy     Action = "copy"
	actExport   Action = "export"
	actGo       Action = "go"
	actRequests Action = "requests"
	actHelp     Action = "help"
	actUpOrQuit Action = "up-or-quit"
	actQuit     Action = "quit"
)

// The names of screens in the key table.
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
	onGo        = "go"
)

// The actions of a replay.
const (
	actHistory    Action = "history"
	actStepBack   Action = "step-back"
	actStepOn     Action = "step-on"
	actMinuteBack Action = "minute-back"
	actMinuteOn   Action = "minute-on"
	actMarkBack   Action = "mark-back"
	actMarkOn     Action = "mark-on"
	actFaster     Action = "faster"
	actSlower     Action = "slower"
)

// steps are how far the keys of movement go in a list or a text.
var steps = map[Action]int{actUp: -1, actDown: 1, actPageUp: -10, actPageDown: 10}

// Step is how far a key of movement goes; 0 for others.
func (a Action) Step() int { return steps[a] }

// Moved is where a key of movement leads from a place in a list of n; other keys stay.
func (a Action) Moved(at, n int) int { return max(0, min(at+a.Step(), n-1)) }

// acts are the actions that a replay refuses: what is shown is not what would be changed.
var acts = map[Action]bool{actPropose: true, actForce: true, actApprove: true, actReject: true, actRollBack: true,
	actStop: true, actAck: true, actDismiss: true, actExclude: true, actSilence: true, actCanary: true}
