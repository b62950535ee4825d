package lustre

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
)

// Servers keep what each user has of a target (quota_slave/acct_user, with or without limits), and the first metadata
// server what users may have (qmt/*/dt-0x0/glb-usr). Both print an entry in two lines, since Lustre 2.4:
//
//   - id:      1000
//     usage:   { inodes:          220, kbytes:        15636 }
//     limits:  { hard:        30720, soft:     0, granted:        20480, time:           604800 }
const (
	// watchedFrom is the used share from which on it is read who has a target's space: below it nobody asks.
	watchedFrom = 0.8
	// accountsEvery is how often tables of accounts are read, and accountsPart what that may cost of a core.
	accountsEvery, accountsPart = time.Minute, 0.01
	// accountsShown is how long after the next reading is due the newest one is reported.
	accountsShown = 2 * accountsEvery
	// mostTables of the fullest targets are read, as a frame takes words of, and mostHeld accounts of each remembered:
	// 8 MB in all. mostNamed are named.
	mostTables, mostHeld, mostNamed = 16, 16384, 3
	// growthSpan is after how long a later state becomes the one that growth counts from, leastSpan the shortest time
	// that shows any.
	growthSpan, leastSpan = 30 * time.Minute, 10 * time.Minute
	// nearLimit is the part of a limit from which on its user is named; of all that grew a smaller part than
	// leastGrown is not.
	nearLimit, leastGrown = 0.9, 0.05
	// mostOfIt bounds a table, bytes: half a million entries.
	mostOfIt = 64 << 20
)

// accountTable is a file of what users have of a target, or may have.
type accountTable struct {
	file   string
	of     string  // the target, or the quota master
	used   float64 // share of the target
	inodes bool    // of its inodes, not of its bytes
	limits bool
}

// about is what the note of a table is about.
func (t *accountTable) about() string {
	if t.inodes {
		return t.of + " inodes"
	}
	return t.of + " bytes"
}

// amount writes how much it is.
func (t *accountTable) amount(n uint64) string {
	if t.inodes {
		return strconv.FormatUint(n, 10)
	}
	v, unit := float64(n), "kB"
	for _, u := range []string{"MB", "GB", "TB", "PB"} {
		if v >= 999.5e3 {
			v, unit = v/1e3, u
		}
	}
	return strconv.FormatFloat(v/1e3, 'g', 3, 64) + " " + unit
}

// holding is what one user has.
type holding struct {
	id uint32
	n  uint64 // bytes, or inodes
}

// state is what users had at one time, by their ids; who is not among them had at most floor.
type state struct {
	at    time.Time
	all   []holding
	floor uint64
}

// ledger is what users had at two earlier times, of which growth counts from the first.
type ledger struct{ first, later state }

// accounts reads who has what of the targets that fill, beside the ticks.
type accounts struct {
	under   beside[accountsReading]
	ledgers map[string]*ledger // of the reading under way, by what a table is about
	due     time.Time
	newest  accountsReading
}

// accountsReading is what one reading of all tables says.
type accountsReading struct {
	at    time.Time
	notes []accountNote
	err   error
}

type accountNote struct{ about, text string }

// reportAccounts begins a reading where one is due, and reports the newest.
func reportAccounts(ctx context.Context, s *Source) {
	a, now := &s.full.accounts, s.into.Now
	if r, ended := a.under.take(); ended {
		a.newest = r
		a.due = r.at.Add(max(accountsEvery, time.Duration(float64(a.under.took)/accountsPart)))
	}
	if !a.under.way() && (!now.Before(a.due) || now.Before(a.newest.at)) {
		slices.SortStableFunc(s.full.tables, func(x, y accountTable) int { return cmp.Compare(y.used, x.used) })
		tables := s.full.tables[:min(len(s.full.tables), mostTables)]
		for _, kind := range []string{"dt", "md"} {
			for _, file := range s.files("qmt/*/" + kind + "-0x0/glb-usr") {
				tables = append(slices.Clip(tables), accountTable{file: file, of: path.Base(path.Dir(path.Dir(file))),
					inodes: kind == "md", limits: true})
			}
		}
		if a.due = now.Add(accountsEvery); len(tables) == 0 {
			a.newest, a.ledgers = accountsReading{}, nil // what is remembered grows old
		} else {
			a.under.begin(ctx, func(ctx context.Context) accountsReading { return a.read(ctx, s.fsys, now, tables) })
		}
	}
	if now.Sub(a.due) > accountsShown || now.Before(a.newest.at) {
		return
	}
	s.err = firstOf(s.err, a.newest.err)
	for _, n := range a.newest.notes {
		s.into.AddNote(n.about, n.text)
	}
}

// read reads all tables.
func (a *accounts) read(ctx context.Context, from fs.FS, now time.Time, tables []accountTable) accountsReading {
	r := accountsReading{at: now}
	before := a.ledgers
	a.ledgers = map[string]*ledger{}
	for _, t := range tables {
		about := t.about()
		l := cmp.Or(before[about], &ledger{})
		err := collector.Fenced(func() error {
			text, err := t.read(ctx, from, now, l)
			if text != "" {
				r.notes = append(r.notes, accountNote{about, text})
			}
			return err
		})
		if a.ledgers[about] = l; err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.err = firstOf(r.err, fmt.Errorf("%s: %w", t.file, err))
		}
	}
	return r
}

// read reads one table and says who has most of it and whose grew, or who has nearly all that is allowed.
func (t *accountTable) read(ctx context.Context, from fs.FS, now time.Time, l *ledger) (string, error) {
	f, err := from.Open(t.file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if t.limits {
		return t.readLimits(ctx, f)
	}
	s := state{at: now}
	name, unit := "kbytes:", uint64(1024)
	if t.inodes {
		name, unit = "inodes:", 1
	}
	bad, err := scanAccounts(ctx, f, "usage:", []string{name}, func(id uint32, n []uint64) {
		if n[0] > 0 {
			s.all = append(s.all, holding{id, n[0] * unit})
		}
	})
	if err != nil || len(s.all) == 0 { // of a part, who has most is not known, and all others would grow from nothing
		return "", firstOf(err, bad)
	}
	// A table that changes while it is read may have an entry twice: the larger is taken.
	slices.SortFunc(s.all, func(x, y holding) int { return cmp.Or(cmp.Compare(x.id, y.id), cmp.Compare(y.n, x.n)) })
	s.all = slices.CompactFunc(s.all, func(x, y holding) bool { return x.id == y.id })
	text := "who has most: " + t.list(largest(s.all))
	if span := now.Sub(l.first.at); len(l.first.all) > 0 && span >= leastSpan {
		if grown := grewMost(l.first, s.all); len(grown) > 0 {
			text += fmt.Sprintf("; whose grew most in %.0f minutes: %s", span.Minutes(), t.list(grown))
		}
	}
	l.keep(s)
	return text, bad
}

// list writes users with their amounts.
func (t *accountTable) list(of []holding) string {
	all := make([]string, len(of))
	for i, h := range of {
		all[i] = fmt.Sprintf("uid %d (%s)", h.id, t.amount(h.n))
	}
	return strings.Join(all, ", ")
}

// keep remembers a state where the one before is old enough: growth counts from half an hour to an hour ago.
func (l *ledger) keep(s state) {
	switch {
	case l.first.at.IsZero() || s.at.Before(l.first.at):
		l.first, l.later = s.kept(), state{}
	case l.later.at.IsZero() && s.at.Sub(l.first.at) >= growthSpan:
		l.later = s.kept()
	case !l.later.at.IsZero() && s.at.Sub(l.later.at) >= growthSpan:
		l.first, l.later = l.later, s.kept()
	}
}

// kept is what is remembered of a state: the largest.
func (s state) kept() state {
	if len(s.all) > mostHeld {
		slices.SortFunc(s.all, func(x, y holding) int { return cmp.Compare(y.n, x.n) })
		s.floor = s.all[mostHeld].n
		s.all = slices.Clone(s.all[:mostHeld])
		slices.SortFunc(s.all, func(x, y holding) int { return cmp.Compare(x.id, y.id) })
	}
	return s
}

// largest are those with the most, the first mostNamed.
func largest(all []holding) (top []holding) {
	for _, h := range all {
		i, _ := slices.BinarySearchFunc(top, h, func(x, y holding) int {
			return cmp.Or(cmp.Compare(y.n, x.n), cmp.Compare(x.id, y.id))
		})
		if i < mostNamed {
			top = slices.Insert(top, i, h)
			top = top[:min(len(top), mostNamed)]
		}
	}
	return top
}

// grewMost are those that grew most since a state; both are by ids.
func grewMost(since state, all []holding) []holding {
	var grown []holding
	sum, was := 0.0, since.all
	for _, h := range all {
		for len(was) > 0 && was[0].id < h.id {
			was = was[1:]
		}
		before := since.floor
		if len(was) > 0 && was[0].id == h.id {
			before = was[0].n
		}
		if h.n > before {
			grown = append(grown, holding{h.id, h.n - before})
			sum += float64(h.n - before)
		}
	}
	return slices.DeleteFunc(largest(grown), func(h holding) bool { return float64(h.n) < leastGrown*sum })
}

// readLimits says whose files take nearly all that their limit allows, as far as targets were granted it.
func (t *accountTable) readLimits(ctx context.Context, f io.Reader) (string, error) {
	type near struct {
		id        uint32
		has, most uint64
	}
	var all []near
	unit := uint64(1024)
	if t.inodes {
		unit = 1
	}
	bad, err := scanAccounts(ctx, f, "limits:", []string{"hard:", "soft:", "granted:"}, func(id uint32, n []uint64) {
		if most := cmp.Or(n[0], n[1]); most > 0 && float64(n[2]) >= nearLimit*float64(most) {
			all = append(all, near{id, n[2] * unit, most * unit})
		}
	})
	if err != nil || len(all) == 0 {
		return "", firstOf(err, bad)
	}
	part := func(x near) float64 { return float64(x.has) / float64(x.most) }
	slices.SortFunc(all, func(x, y near) int { return cmp.Or(cmp.Compare(part(y), part(x)), cmp.Compare(x.id, y.id)) })
	text := "near their quotas:"
	for i, x := range all[:min(len(all), mostNamed)] {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" uid %d (%s of %s)", x.id, t.amount(x.has), t.amount(x.most))
	}
	if more := len(all) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text, bad
}

// scanAccounts hands each entry's id and the named numbers of its line to take. An entry that cannot be understood
// costs itself; the first one is in bad. err says that reading ended before the table did.
func scanAccounts(ctx context.Context, r io.Reader, kind string, names []string,
	take func(id uint32, n []uint64)) (bad, err error) {
	in := bufio.NewReaderSize(io.LimitReader(r, mostOfIt), scanBuffer)
	id, open, values := uint64(0), false, make([]uint64, len(names))
	wrong := func(line []byte) {
		bad = firstOf(bad, fmt.Errorf("%.60q is not an entry's line; the entry is left out", line))
	}
	for lines := 0; ; lines++ {
		if lines%1024 == 0 && ctx.Err() != nil {
			return bad, ctx.Err()
		}
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) { // no line is as long: what is left of it goes
			line = bytes.Clone(line[:maxQuote])
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		text := bytes.TrimSpace(line)
		if rest, is := bytes.CutPrefix(text, []byte("- id:")); is {
			if open {
				wrong(text)
			}
			var no error
			if id, no = strconv.ParseUint(string(bytes.TrimSpace(rest)), 10, 32); no != nil {
				wrong(text)
			}
			open = no == nil
		} else if rest, is := bytes.CutPrefix(text, []byte(kind)); is && open {
			if open = false; numbersOf(rest, names, values) {
				take(uint32(id), values)
			} else {
				wrong(text)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return bad, nil
		case err != nil:
			return bad, err
		}
	}
}

// numbersOf reads the named numbers of "{ inodes: 220, kbytes: 15636 }".
func numbersOf(line []byte, names []string, into []uint64) bool {
	for i, name := range names {
		_, rest, found := bytes.Cut(line, []byte(name))
		end := bytes.IndexAny(rest, ",}")
		if !found || end < 0 {
			return false
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(rest[:end])), 10, 53) // bytes fit into 64 bits
		if err != nil {
			return false
		}
		into[i] = n
	}
	return true
}
