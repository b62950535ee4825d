package remap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"fairway/anomaly"
)

// Action is what a person may do with a plan, a finding or a forwarder.
type Action string

// The actions: five for plans, four for findings and three for forwarders.
const (
	ActApprove  Action = "approve"
	ActReject   Action = "reject"
	ActStop     Action = "stop"
	ActComplete Action = "complete"
	ActRollBack Action = "rollback"
	// ActRestore is ActRollBack at the end of a job, by the program that ends it.
	ActRestore Action = "restore"
	// ActWithdraw is the end of a plan that nobody answered, by the program that finds it pointless.
	ActWithdraw Action = "withdraw"

	ActAcknowledge Action = "acknowledge"
	ActDismiss     Action = "dismiss"
	ActSilence     Action = "silence"
	ActNote        Action = "note"

	ActExclude Action = "exclude"
	ActReturn  Action = "return"
	ActCanary  Action = "canary"
)

// Words returns the action as a sentence says it.
func (a Action) Words() string {
	if a == ActRollBack {
		return "roll back"
	}
	return string(a)
}

// The actions of each subject, in the order in which a screen lists them.
var (
	planActions      = []Action{ActApprove, ActReject, ActStop, ActComplete, ActRollBack}
	findingActions   = []Action{ActAcknowledge, ActDismiss, ActSilence, ActNote}
	forwarderActions = []Action{ActExclude, ActReturn, ActCanary}
)

// ReasonLetters is the length of the shortest reason where one is required, maxReason the longest that is kept.
const (
	ReasonLetters = 10
	maxReason     = 2000
)

// reasoned are the actions that require a reason. The others keep the reason that is given: a roll back, for one,
// is the safe way and must not be held up by typing.
var reasoned = map[Action]bool{ActApprove: true, ActExclude: true, ActDismiss: true}

// CheckReason refuses a reason that is too short for the action, or that would spoil a screen or a log.
func (a Action) CheckReason(reason string) error {
	if reasoned[a] {
		return CheckReason(reason)
	}
	return CheckText(reason)
}

// CheckReason refuses a reason that is too short to be understood in an audit.
func CheckReason(reason string) error {
	if n := utf8.RuneCountInString(strings.TrimSpace(reason)); n < ReasonLetters {
		return fmt.Errorf("%w: reason %q: want %d letters at least, for who reads the audit", ErrInvalid, reason,
			ReasonLetters)
	}
	return CheckText(reason)
}

// CheckText refuses what would spoil a screen or a log.
func CheckText(text string) error {
	switch {
	case len(text) > maxReason:
		return fmt.Errorf("%w: reason of %d bytes, at most %d", ErrInvalid, len(text), maxReason)
	case !utf8.ValidString(text) || strings.ContainsFunc(text,
		func(r rune) bool { return r != '\n' && unicode.IsControl(r) }):
		return fmt.Errorf("%w: reason %.80q has control characters or is not UTF-8", ErrInvalid, text)
	}
	return nil
}

// ShortenReason cuts a reason that a program made to what is kept.
func ShortenReason(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "")
}

// Options is what a person may do with one subject now. Every action of the subject is in Can or in WhyNot.
type Options struct {
	Can    []Action          `json:"can"`
	WhyNot map[Action]string `json:"why_not"`
	// ReasonLetters is the shortest reason of the actions of Can that require one.
	ReasonLetters map[Action]int `json:"reason_letters"`
}

// choose sorts actions by the person's role and what refuses them.
func choose(by Person, actions []Action, refused map[Action]string) Options {
	o := Options{Can: []Action{}, WhyNot: map[Action]string{}, ReasonLetters: map[Action]int{}}
	for _, a := range actions {
		why := cmp.Or(by.lacks(Operator, a.Words()), refused[a])
		if why != "" {
			o.WhyNot[a] = why
			continue
		}
		o.Can = append(o.Can, a)
		if reasoned[a] {
			o.ReasonLetters[a] = ReasonLetters
		}
	}
	return o
}

// PlanOptions returns what a person may do with a plan. approve is why the desk would refuse an approval that the
// plan's state permits; empty: it would not.
func PlanOptions(by Person, s PlanState, approve string) Options {
	refused := map[Action]string{}
	for _, a := range planActions {
		refused[a] = s.Refuses(a)
	}
	refused[ActApprove] = cmp.Or(refused[ActApprove], approve)
	return choose(by, planActions, refused)
}

// FindingOptions returns what a person may do with a finding.
func FindingOptions(by Person, f *anomaly.Finding) Options {
	refused := map[Action]string{}
	if !f.Open() {
		for _, a := range findingActions[:3] { // a note may come later
			refused[a] = fmt.Sprintf("%s is %s", f.ID, f.State)
		}
	}
	return choose(by, findingActions, refused)
}

// ForwarderOptions returns what a person may do with a forwarder. An excluded one can be excluded again, which
// renews its lease. refused is what else stands against an action: limits of exclusions and of canaries.
func ForwarderOptions(by Person, excluded bool, refused map[Action]string) Options {
	refused = maps.Clone(refused)
	if refused == nil {
		refused = map[Action]string{}
	}
	if excluded {
		delete(refused, ActExclude)
	} else {
		refused[ActReturn] = "it is not excluded"
	}
	return choose(by, forwarderActions, refused)
}

// Permits says whether an action is among those that the person may do.
func (o *Options) Permits(a Action) bool { return slices.Contains(o.Can, a) }
