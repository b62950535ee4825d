package advise

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/remap"
)

// Sentence says a finding in one clause, the same on every surface in the same second.
func Sentence(f *anomaly.Finding) string {
	node, was := subject(f), conditionOf(f)
	accuses := f.Kind.Accuses()
	switch stage := stageOf(f); {
	case f.State == anomaly.Dismissed:
		return fmt.Sprintf("%s: dismissed as no fault", node)
	case stage == Cleared && accuses && enteredAt(f, anomaly.Confirmed).IsZero():
		return fmt.Sprintf("%s was suspected, and is among its peers", node)
	case stage == Cleared && accuses:
		return fmt.Sprintf("%s was %s, now among its peers", node, was)
	case stage == Silent:
		return fmt.Sprintf("%s: its agent does not report", node)
	case stage == Hung:
		return fmt.Sprintf("%s takes requests and answers none", node)
	case stage == Dead:
		return fmt.Sprintf("%s answers nobody", node)
	case stage == Unreadable:
		return fmt.Sprintf("%s's counters cannot be read", node)
	case stage == Suspect:
		return fmt.Sprintf("%s may be slow%s", node, atWhat(f))
	case stage == Slow && f.Factor > 0:
		return fmt.Sprintf("%s is %s slow%s", node, f.Headline(), atWhat(f))
	case stage == Slow && f.Sentence == "":
		return fmt.Sprintf("%s is slow%s", node, atWhat(f))
	}
	head, _ := clauses(f.Sentence)
	return cmp.Or(head, node+": "+remap.KindWords(f.Kind))
}

// AtWorst is the sentence of a finding as it was at its worst, for a report of what is past.
func AtWorst(f *anomaly.Finding) string {
	worst := *f
	worst.State, worst.Stage = anomaly.Confirmed, ""
	return Sentence(&worst)
}

// subject is what a finding is about.
func subject(f *anomaly.Finding) string {
	if f.Node == anomaly.Everywhere {
		return "the back end"
	}
	return string(f.Node)
}

// atWhat is what a node is slow at, behind the word slow.
func atWhat(f *anomaly.Finding) string {
	if f.Class == "" {
		return ""
	}
	return " at " + anomaly.ClassWords(f.Class)
}

// clauses cuts a detector's sentence into what is so and the figures behind it.
func clauses(text string) (head, rest string) {
	at, skip := len(text), 0
	for _, cut := range []string{": ", "; ", ", for its load", ", while "} {
		if i := strings.Index(text, cut); i >= 0 && i < at {
			at, skip = i, len(cut)
			if cut != ": " && cut != "; " {
				skip = len(", ")
			}
		}
	}
	return text[:at], text[min(len(text), at+skip):]
}

// ratios are those of a detector's newest seconds, with the words that go with them.
var ratios = regexp.MustCompile(`(over )?[0-9.]+x `)

// Second says how much and why, behind Sentence.
func Second(f *anomaly.Finding, now time.Time) string {
	stage := stageOf(f)
	if stage == Cleared {
		return secondOfCleared(f, now)
	}
	var parts []string
	_, rest := clauses(f.Sentence)
	// Figures are of the newest seconds, the headline's ratio is not; a third ratio would contradict both.
	figures := strings.Contains(rest, " ms, peers ") && (stage == Slow || stage == Suspect)
	switch age, asked := f.Evidence["request_age"]; {
	case f.Factor > 0 && stage == Slow && strings.Contains(f.Sentence, " at canaries: "):
		parts = append(parts, "canaries through it take longer than through its peers")
	case figures:
		parts = append(parts, "now "+rest)
		if f.FactorNow > 0 && f.FactorNow < anomaly.AmongPeers {
			parts = append(parts, "among its peers at the moment")
		}
	case stage == Suspect:
		parts = append(parts, strings.TrimPrefix(f.Sentence, string(f.Node)+" is "))
	case stage == Hung && asked:
		parts = append(parts, fmt.Sprintf("%.0f of its nodes wait, the oldest request for %s",
			f.Evidence["nodes_waiting"], remap.Span(age)))
	case f.Factor > 0 && stage == Slow && !strings.Contains(rest, "peers"): // the headline has the ratio
		parts = append(parts, ratios.ReplaceAllString(strings.TrimPrefix(f.Sentence, string(f.Node)+" "), ""))
	case rest != "":
		parts = append(parts, rest)
	}
	if !figures && f.FactorNow > 0 && stage == Slow && (f.FactorNow < 0.8*f.Factor || f.FactorNow > 1.25*f.Factor) {
		parts = append(parts, "now "+anomaly.Times(f.FactorNow))
	}
	if f.Times > 1 {
		parts = append(parts, fmt.Sprintf("seen %d times", f.Times))
	}
	if f.State == anomaly.Excluded {
		parts = append(parts, "drained by "+cmp.Or(f.ExcludedBy, anomaly.ByPolicy))
	}
	return strings.Join(parts, "; ")
}

// secondOfCleared says how long it lasted, what it cost, and that nothing is to be done.
func secondOfCleared(f *anomaly.Finding, now time.Time) string {
	cost := 0.0
	for _, i := range f.Impact {
		cost = max(cost, i.CostSeconds)
	}
	text := "it lasted " + remap.Span(f.Lasted(now).Seconds())
	if cost >= 0.5 {
		text += "; each node of its job lost " + remap.Span(cost)
	}
	return text + ". No move is offered"
}

// Write makes the victim's words.
func (v *Victim) Write() {
	if v.Job == "" {
		beside := ""
		if v.Wait > 0 && v.PeersWait > 0 {
			beside = fmt.Sprintf(", a request takes them %s ms beside %s", anomaly.Digits(v.Wait*1e3),
				anomaly.Digits(v.PeersWait*1e3))
		}
		v.Text = fmt.Sprintf("%s %s it%s; jobs are not reported here", anomaly.Counted(v.Waiting, "compute node"),
			anomaly.VerbOf(v.Waiting, "uses", "use"), beside)
		return
	}
	var b strings.Builder
	if v.App != "" {
		fmt.Fprintf(&b, "%s (job %s)", v.App, v.Job)
	} else {
		fmt.Fprintf(&b, "job %s", v.Job)
	}
	if v.User != "" {
		b.WriteString(" of " + v.User)
	}
	b.WriteString(": ")
	switch {
	case !v.waits():
		b.WriteString("waits no more")
	case v.Nodes > 0 && v.Waiting > 0:
		fmt.Fprintf(&b, "%d of %s %s %.0f %%", v.Waiting, anomaly.Counted(v.Nodes, "node"),
			anomaly.VerbOf(v.Waiting, "waits", "wait"), 100*v.Share)
	default:
		fmt.Fprintf(&b, "waits %.0f %%", 100*v.Share)
	}
	if v.CostSeconds >= 0.5 {
		b.WriteString(", each of its nodes lost " + remap.Span(v.CostSeconds))
	}
	v.Text = b.String()
}

// watchedFrom is how many times its peers' time a forwarder takes in the newest seconds for it to be under watch.
const watchedFrom = 2

// Calm is what stands where no card is: what is open although it hurts nobody, how many were compared, and which is
// the nearest to being accused; nearest may be empty. The word sums it up.
func Calm(findings []anomaly.Finding, compared, all int, nearest string, ratio float64) (word, text string) {
	word, text = "nothing needs you", "Nothing needs you"
	var open []*anomaly.Finding
	for i := range findings {
		if f := &findings[i]; !f.Over() && f.Kind.Accuses() {
			open = append(open, f)
		}
	}
	switch {
	case len(open) > 0:
	case ratio >= watchedFrom:
		word, text = "watched", "Nothing is known to be slow"
	case compared == 0:
		word, text = "not known", "Nothing is known to be slow"
	default:
		word, text = "all well", "Nothing is slow"
	}
	for _, f := range open[:min(2, len(open))] {
		text += fmt.Sprintf(". %s (%s)", Sentence(f), f.ID)
		switch {
		case f.ExcludedBy != "":
			text += " and is drained"
		case f.Owner != "":
			text += "; " + f.Owner + " looks after it"
		default:
			text += "; no job waits for it"
		}
	}
	if more := len(open) - 2; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	text = fmt.Sprintf("%s. %d of %s do I/O now and were compared.", text, compared, anomaly.Counted(all, "forwarder"))
	switch {
	case word == "watched":
		text += fmt.Sprintf(" %s takes %s its peers' time just now; it is suspected if that lasts.", nearest,
			anomaly.Times(ratio))
	case len(open) == 0 && nearest != "": // a list shows it at its top, and must not seem to contradict
		text += fmt.Sprintf(" The nearest is %s, %s.", nearest, anomaly.Times(ratio))
	}
	return word, text
}
