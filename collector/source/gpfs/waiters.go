package gpfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"fairway/collector"
)

const (
	// lookEvery is how often mmdiag is run, and lookWithin how long it may take before it is killed.
	lookEvery, lookWithin = 10 * time.Second, 5 * time.Second
	// standsFor is for how long what it printed is of now.
	standsFor = lookEvery + lookWithin
	// mostPrinted bounds what is read of it, bytes: some 8,000 waiters, of which the longest come first.
	mostPrinted = 1 << 20
	// maxReason bounds a reason, characters.
	maxReason = 120
	// notedFrom is the age, seconds, from which a waiter's reason is reported: a busy node has many short ones.
	notedFrom = 1.0
	// maxAge bounds an age, seconds: a year. What waits longer than GPFS runs is not an age.
	maxAge = 365 * 24 * 3600.0
)

// Waiter is a thread of GPFS's daemon that waits for something.
type Waiter struct {
	Age    float64 `json:"age"` // seconds
	Thread string  `json:"thread,omitempty"`
	Reason string  `json:"reason"`
	// Disk says that the reason names a disk: what is waited for is the back end.
	Disk bool `json:"disk"`
}

// Longest are the waiter of the greatest age, and the one of those that wait for a disk; without an age: nobody waits.
type Longest struct{ Any, Disk Waiter }

// ParseWaiters finds the longest waiters in what "mmdiag --waiters" printed. Three shapes are known, of releases 3, of
// 4 and later, and with -Y; other lines are not read.
func ParseWaiters(text string) (l Longest) {
	for line := range strings.Lines(text) {
		w, ok := parseWaiter(strings.TrimSpace(line))
		if !ok || w.idle() {
			continue
		}
		if w.Age > l.Any.Age {
			l.Any = w
		}
		if w.Disk && w.Age > l.Disk.Age {
			l.Disk = w
		}
	}
	return l
}

// isAnswer says whether mmdiag has printed its head, or GPFS's daemon anything: no waiters is an answer, nothing not.
func isAnswer(text string) bool {
	return strings.Contains(text, "mmdiag: waiters") || strings.Contains(text, "mmdiag:waiters:")
}

// parseWaiter reads a line:
//
//	0x7F2F4002AE30 waiting 0.151472644 seconds, SharedHashTabFetchHandlerThread: on ThCond 0x..., reason 'RPC wait'
//	Waiting 64.3890 sec since 17:55:45, monitored, thread 120655 NSDThread: for I/O completion
//	mmdiag:waiters:0:1:::101445:...:NSDThread:2021-09-23_15%3A31%3A33-0400:44.3:monitored::::::for I/O completion:::
func parseWaiter(line string) (w Waiter, ok bool) {
	if fields, is := strings.CutPrefix(line, "mmdiag:waiters:"); is {
		return parseFields(strings.Split(fields, ":"))
	}
	before, rest, found := cutFold(line, "waiting ")
	if !found || len(before) > 40 || strings.ContainsAny(before, ",'") {
		return w, false
	}
	number, rest, _ := strings.Cut(rest, " ")
	unit, rest, _ := strings.Cut(rest, ",")
	if !strings.HasPrefix(unit, "sec") || !w.setAge(number) {
		return w, false
	}
	for { // "monitored", and the thread's number before its name
		word, after, more := strings.Cut(rest, ",")
		switch strings.TrimSpace(word) {
		case "ignored":
			return w, false
		case "monitored":
			if more {
				rest = after
				continue
			}
		}
		break
	}
	rest = strings.TrimSpace(rest)
	if numbered, is := strings.CutPrefix(rest, "thread "); is {
		_, rest, _ = strings.Cut(numbered, " ")
	}
	thread, reason, named := strings.Cut(rest, ": ")
	if !named || strings.ContainsAny(thread, " '") {
		thread, reason = "", rest
	}
	w.explain(thread, reason)
	return w, w.Reason != ""
}

// The fields of "mmdiag --waiters -Y" after "mmdiag:waiters:", which its head names.
const (
	fieldThread, fieldAge, fieldMonitored     = 6, 8, 9
	fieldCondition, fieldMutex, fieldOther    = 12, 14, 15
	fieldDelay, fewestFields, fieldsAreValues = 17, 18, "0"
)

func parseFields(f []string) (w Waiter, ok bool) {
	if len(f) < fewestFields || f[0] != fieldsAreValues || f[fieldMonitored] == "ignored" || !w.setAge(f[fieldAge]) {
		return w, false
	}
	for _, at := range []int{fieldOther, fieldCondition, fieldDelay, fieldMutex} {
		reason, err := url.PathUnescape(f[at])
		if err == nil && reason != "" {
			w.explain(f[fieldThread], reason)
			return w, w.Reason != ""
		}
	}
	return w, false
}

func (w *Waiter) setAge(number string) bool {
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > maxAge {
		return false
	}
	w.Age = v
	return true
}

// explain takes a reason in: in quotes where there are any, without addresses of memory.
func (w *Waiter) explain(thread, reason string) {
	reason = clean(reason)
	if on, quoted, is := strings.Cut(reason, "reason '"); is && strings.Contains(on, "on Th") {
		text, more, _ := strings.Cut(quoted, "'")
		reason = text + more
	}
	w.Thread, w.Reason = shortened(clean(thread)), shortened(strings.TrimSpace(reason))
	w.Disk = forDisk(w.Reason)
}

// forDisk says whether a reason names the I/O of a disk, here or at its server ("NSD I/O completion"). 'RPC wait' alone
// may be for a lock of any node.
func forDisk(reason string) bool {
	low := strings.ToLower(reason)
	return strings.Contains(low, "i/o completion") || strings.Contains(low, "on disk")
}

// idle says whether a waiter waits for work, for ever, and not for an answer.
func (w *Waiter) idle() bool {
	return strings.HasPrefix(w.Reason, "for poll on sock") || strings.HasPrefix(w.Thread, "Fsck") ||
		w.Thread == "EventsExporterSenderThread"
}

func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

func shortened(s string) string {
	if r := []rune(s); len(r) > maxReason {
		return string(r[:maxReason-3]) + "..."
	}
	return s
}

// cutFold is strings.Cut for a lower-case word that may begin with a capital.
func cutFold(s, word string) (before, after string, found bool) {
	i := strings.Index(strings.ToLower(s), word)
	if i < 0 || i+len(word) > len(s) {
		return s, "", false
	}
	return s[:i], s[i+len(word):], true
}

// looks are what mmdiag printed last.
type looks struct {
	look func(context.Context) (string, error)

	mu  sync.Mutex // guards what follows
	at  time.Time
	has Longest
	bad error
}

// again runs mmdiag until ctx ends. One that cannot be killed is waited for, and no second one started.
func (l *looks) again(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		one, cancel := context.WithTimeout(ctx, lookWithin)
		text, err := l.look(one)
		cancel()
		l.take(text, err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (l *looks) take(text string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, os.ErrNotExist):
		l.bad = nil // this node has no mmdiag
	case err != nil:
		l.bad = fmt.Errorf("mmdiag --waiters: %w; it is run again in %s", err, lookEvery)
	case !isAnswer(text):
		l.bad = fmt.Errorf("mmdiag --waiters: %.80q is not what it prints; look at it beside source.gpfs.command", text)
	default:
		l.at, l.has, l.bad = time.Now(), ParseWaiters(text), nil
	}
}

// report adds the longest waiters that the newest look found, while it is of now.
func (l *looks) report(into *collector.Reading) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.at.IsZero() && into.Now.Sub(l.at) <= standsFor {
		into.Add(collector.WaiterAge, l.has.Any.Age)
		into.Add(collector.DiskWaiterAge, l.has.Disk.Age)
		if w := &l.has.Any; w.Age >= notedFrom {
			into.Note = w.Reason
		}
	}
	return l.bad
}

// lookWith runs mmdiag once. It is killed with all that it has started, at its deadline and when it prints too much.
func lookWith(command string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if _, err := os.Stat(command); err != nil {
			return "", err
		}
		ctx, enough := context.WithCancel(ctx)
		defer enough()
		c := exec.CommandContext(ctx, command, "--waiters")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
		c.WaitDelay = time.Second
		wrong := collector.Output{Most: 200}
		c.Stderr = &wrong
		out, err := c.StdoutPipe()
		if err != nil {
			return "", err
		}
		if err := c.Start(); err != nil {
			return "", err
		}
		text, err := io.ReadAll(io.LimitReader(out, mostPrinted))
		if len(text) == mostPrinted {
			enough()
			_ = c.Wait()
			return string(text), nil
		}
		if ended := c.Wait(); ended != nil {
			err = ended
		}
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return "", fmt.Errorf("no answer within %s, killed", lookWithin)
		case err != nil && wrong.String() != "":
			return "", fmt.Errorf("%w: %s", err, clean(wrong.String()))
		}
		return string(text), err
	}
}
