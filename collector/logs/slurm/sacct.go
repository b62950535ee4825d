package slurm

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
)

// plainOrder are the fields of `sacct -P` output without a header line, in the order that XDMoD asks for.
// The job's name is last because it may hold the separator.
const plainOrder = "" +
	"JobID|JobIDRaw|Cluster|Partition|QOS|Account|Group|GID|User|UID|Submit|Eligible|Start|End|Elapsed|" +
	"ExitCode|State|NNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|Timelimit|NodeList|JobName"

// setter reads one field into a job.
type setter func(j *Job, s string, zone *time.Location) error

// text makes a setter of a plain field.
func text(field func(*Job) *string) setter {
	return func(j *Job, s string, _ *time.Location) error {
		if s != "Unknown" {
			*field(j) = s
		}
		return nil
	}
}

// parsed makes a setter of a field that is read by a function.
func parsed[T any](parse func(string) (T, error), field func(*Job) *T) setter {
	return func(j *Job, s string, _ *time.Location) (err error) {
		*field(j), err = parse(s)
		return err
	}
}

func instant(field func(*Job) *time.Time) setter {
	return func(j *Job, s string, zone *time.Location) (err error) {
		*field(j), err = parseTime(s, zone)
		return err
	}
}

// setters are the fields that are read, by name in lower case. JobID and State are set in the order of
// the line; End before State is taken back by State where it is a plan.
func setters() map[string]setter {
	return map[string]setter{
		"jobid":      func(j *Job, s string, _ *time.Location) error { return j.setID(s) },
		"jobidraw":   setRawID,
		"cluster":    text(func(j *Job) *string { return &j.Cluster }),
		"partition":  text(func(j *Job) *string { return &j.Partition }),
		"qos":        text(func(j *Job) *string { return &j.QOS }),
		"account":    text(func(j *Job) *string { return &j.Account }),
		"group":      text(func(j *Job) *string { return &j.Group }),
		"user":       text(func(j *Job) *string { return &j.User }),
		"jobname":    text(func(j *Job) *string { return &j.Name }),
		"comment":    text(func(j *Job) *string { return &j.Comment }),
		"priority":   parsed(parseCount, func(j *Job) **int64 { return &j.Priority }),
		"gid":        parsed(parseCount, func(j *Job) **int64 { return &j.GID }),
		"uid":        parsed(parseCount, func(j *Job) **int64 { return &j.UID }),
		"nnodes":     parsed(parseCount, func(j *Job) **int64 { return &j.NodeCount }),
		"ncpus":      parsed(parseCount, func(j *Job) **int64 { return &j.CPUs }),
		"alloccpus":  parsed(parseCount, func(j *Job) **int64 { return &j.CPUs }),
		"submit":     instant(func(j *Job) *time.Time { return &j.Submit }),
		"eligible":   instant(func(j *Job) *time.Time { return &j.Eligible }),
		"start":      instant(func(j *Job) *time.Time { return &j.Start }),
		"end":        instant(func(j *Job) *time.Time { return &j.End }),
		"elapsed":    parsed(parseDuration, func(j *Job) **int64 { return &j.ElapsedSeconds }),
		"timelimit":  parsed(parseDuration, func(j *Job) **int64 { return &j.LimitSeconds }),
		"elapsedraw": parsed(parseCount, func(j *Job) **int64 { return &j.ElapsedSeconds }),
		"state":      func(j *Job, s string, _ *time.Location) error { j.setState(s); return nil },
		"nodelist":   func(j *Job, s string, _ *time.Location) error { return j.setNodes(s) },
		"reqmem":     parsed(parseMemory, func(j *Job) **Memory { return &j.ReqMem }),
		"alloctres":  func(j *Job, s string, _ *time.Location) error { j.TRES = parseTRES(s); return nil },
		"exitcode": func(j *Job, s string, _ *time.Location) (err error) {
			j.ExitCode, j.Signal, err = parseExit(s)
			return err
		},
	}
}

func setRawID(j *Job, s string, _ *time.Location) error {
	base, _, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(base, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a number", collector.Clip(s))
	}
	j.RawID = n
	if j.ID == "" {
		return j.setID(s)
	}
	return nil
}

// usersText are the fields that users write: they may hold the separator, or the end of a line.
var usersText = map[string]bool{"jobname": true, "comment": true, "admincomment": true, "systemcomment": true,
	"workdir": true, "submitline": true}

// maxText bounds a job's lines, bytes: a command's line may have a megabyte.
const maxText = 2 << 20

// sacct reads the lines of one `sacct -P` output.
type sacct struct {
	names []string
	set   []setter // nil for a field that is not read
	id    int      // the field that names the job
	free  int      // the field of usersText, or the last one if it is one of several; -1: none
	trail bool     // a separator ends each line (-p)
	o     Options
	c     *collected

	begun   []string // the parts of a job whose line ends within a user's text
	begunAt int      // its line
	// size and bars are the bytes and separators of these parts.
	size, bars int
}

func readSacct(b *bufio.Reader, o Options, c *collected) error {
	s := &sacct{o: o, c: c}
	err := lines(b, func(n int, line string) bool {
		if strings.TrimSpace(line) == "" && s.begun == nil {
			return true
		}
		if header := s.names == nil; header {
			if s.header(line) {
				return true
			}
			s.header(plainOrder)
		}
		return s.line(n, line)
	})
	if s.begun != nil {
		s.tooShort(s.begunAt, strings.Join(s.begun, "\n"))
	}
	if err == nil && c.hopeless() {
		err = errors.New("none of the first lines is a job; this is not output of sacct -P")
	}
	return err
}

// header takes the fields' names; ok says that the line has some.
func (s *sacct) header(line string) (ok bool) {
	known := setters()
	names := strings.Split(line, "|")
	trail := len(names) > 1 && names[len(names)-1] == ""
	if trail {
		names = names[:len(names)-1]
	}
	set, free, texts := make([]setter, len(names)), -1, 0
	for i, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		set[i] = known[name]
		if name == "jobid" || name == "jobidraw" {
			s.id, ok = i, true
		}
		if usersText[name] {
			free, texts = i, texts+1
		}
	}
	if texts > 1 && free != len(names)-1 {
		free = -1
	}
	if ok {
		s.names, s.set, s.trail, s.free = names, set, trail, free
	}
	return ok
}

// line reads a line: a job, a part of one, or the end of one.
func (s *sacct) line(n int, line string) bool {
	fields := s.split(line)
	if s.begun != nil {
		if len(fields) < len(s.names) || !jobID.MatchString(fields[s.id]) {
			// A text of thousands of lines is joined once, when its separators suffice.
			if s.add(line); s.bars < len(s.names)-1 && s.size < maxText {
				return true
			}
			line = strings.Join(s.begun, "\n")
			n, fields = s.begunAt, s.split(line)
		} else {
			s.tooShort(s.begunAt, strings.Join(s.begun, "\n"))
		}
		s.begun, s.size, s.bars = nil, 0, 0
	}
	switch {
	case len(fields) == len(s.names):
		return s.job(n, fields)
	case len(fields) > len(s.names):
		s.c.Add(&LineError{Line: n, Err: fmt.Errorf("over %d fields: a field holds the separator; put JobName last",
			len(s.names))})
	case s.free >= 0 && len(fields) > s.free && len(line) < maxText:
		s.begunAt = n
		s.add(line)
	default:
		s.tooShort(n, line)
	}
	return !s.c.hopeless()
}

// add keeps a part of a job.
func (s *sacct) add(line string) {
	s.begun = append(s.begun, line)
	s.size, s.bars = s.size+len(line)+1, s.bars+strings.Count(line, "|")
}

func (s *sacct) tooShort(n int, line string) {
	s.c.Add(&LineError{Line: n, Err: fmt.Errorf("%d fields, want %d (%s, ...); print with sacct -P and a header line",
		len(s.split(line)), len(s.names), s.names[0])})
}

// split cuts a line into its fields. Separators that are too many are the users', where one field alone has their text.
func (s *sacct) split(line string) []string {
	if s.trail {
		line = strings.TrimSuffix(line, "|")
	}
	fields := strings.Split(line, "|")
	if more := len(fields) - len(s.names); more > 0 && s.free >= 0 {
		text := strings.Join(fields[s.free:s.free+more+1], "|")
		fields = slices.Replace(fields, s.free, s.free+more+1, text)
	}
	return fields
}

// job takes a job's fields.
func (s *sacct) job(n int, fields []string) bool {
	j := &Job{}
	for i, set := range s.set {
		if set == nil {
			continue
		}
		if err := set(j, fields[i], s.o.zone()); err != nil {
			s.c.Add(&LineError{n, string(j.ID), s.names[i], err})
		}
	}
	if j.ID == "" {
		return true // reported above
	}
	j.settleTimes(s.o.zone())
	return s.c.give(j)
}
