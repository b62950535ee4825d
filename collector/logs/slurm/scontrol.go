package slurm

import (
	"bufio"
	"regexp"
	"strings"
	"time"
)

// word begins a "Key=" of scontrol; values may hold blanks and further "=".
var word = regexp.MustCompile(`(?:^|\s)([A-Z][A-Za-z0-9:/_]*)=`)

// freeText are the keys whose value may look like anything. It is taken to the end of the line; with -o,
// which has all keys of a job in one line, to the next key that Slurm prints behind such a value: what
// looks like any other key there is the user's text, so that nobody writes a node list into a comment.
// The job's name, among the first keys, ends at the next one: the true keys come behind it and count.
var freeText = map[string]bool{"Command": true, "Comment": true, "AdminComment": true, "SystemComment": true,
	"SubmitLine": true,
	"StdErr":     true, "StdIn": true, "StdOut": true, "WorkDir": true}

// behindText are the other keys that Slurm prints behind the first free text.
var behindText = map[string]bool{"Power": true, "MailUser": true, "MailType": true, "CpusPerTres": true,
	"MemPerTres":    true,
	"NtasksPerTRES": true, "TresBind": true, "TresFreq": true, "TresPerJob": true, "TresPerNode": true,
	"TresPerSocket": true, "TresPerTask": true}

// readScontrol reads `scontrol show job`, with or without -o: a job begins at JobId=.
func readScontrol(b *bufio.Reader, o Options, c *collected) error {
	var j *Job
	begun, known := 0, setters()
	flush := func() bool {
		if j == nil || j.ID == "" {
			return true
		}
		j.settleTimes(o.zone())
		return c.give(j)
	}
	err := lines(b, func(n int, line string) bool {
		oneLine := strings.HasPrefix(strings.TrimSpace(line), "JobId=")
		if oneLine {
			if !flush() {
				return false
			}
			j, begun = &Job{}, n
		}
		if j == nil {
			return true
		}
		for _, p := range pairs(line, oneLine) {
			if err := j.scontrol(known, p.key, p.value, o.zone()); err != nil {
				c.Add(&LineError{n, string(j.ID), p.key, err})
			}
		}
		return true
	})
	if err != nil {
		c.Add(&LineError{Line: begun, Err: err})
	}
	if c.stopped == nil {
		flush()
	}
	return nil
}

type pair struct{ key, value string }

// pairs cuts a line into its keys and values; whole says that it holds a whole job.
func pairs(line string, whole bool) []pair {
	var out []pair
	text := false // a free text has begun
	at := word.FindAllStringSubmatchIndex(line, -1)
	key := func(i int) string { return line[at[i][2]:at[i][3]] }
	for i := 0; i < len(at); {
		text = text || freeText[key(i)]
		next := i + 1
		for next < len(at) && text && !(whole && (freeText[key(next)] || behindText[key(next)])) {
			next++
		}
		end := len(line)
		if next < len(at) {
			end = at[next][0]
		}
		out = append(out, pair{key(i), strings.TrimSpace(line[at[i][1]:end])})
		i = next
	}
	return out
}

// sacctName is what sacct calls a field of scontrol that both print alike.
var sacctName = map[string]string{"JobName": "jobname", "Name": "jobname", "Comment": "comment", "Account": "account",
	"QOS": "qos", "Priority": "priority", "Partition": "partition", "JobState": "state", "ExitCode": "exitcode",
	"RunTime": "elapsed", "TimeLimit": "timelimit", "SubmitTime": "submit", "EligibleTime": "eligible",
	"StartTime": "start", "EndTime": "end", "NodeList": "nodelist", "MidplaneList": "nodelist", "TRES": "alloctres",
	"AllocTRES": "alloctres"}

// scontrol sets one field; known are those of sacct.
func (j *Job) scontrol(known map[string]setter, key, s string, zone *time.Location) (err error) {
	if unknown(s) {
		return nil
	}
	if set := known[sacctName[key]]; set != nil {
		return set(j, s, zone)
	}
	switch key {
	case "JobId":
		j.ID = ""
		if err = j.setID(s); err == nil && j.RawID == 0 {
			err = setRawID(j, s, zone)
		}
	case "HetJobId", "PackJobId":
		j.hetJob = s
	case "HetJobOffset", "PackJobOffset":
		err = j.setID(j.hetJob + "+" + s)
	case "ArrayJobId":
		err = j.setID(s + "_" + j.ArrayTask)
		if j.ArrayTask == "" {
			err = j.setID(s)
		}
	case "ArrayTaskId":
		base, _, _ := strings.Cut(string(j.ID), "_")
		if strings.ContainsAny(s, "-,%") {
			s = "[" + s + "]"
		}
		err = j.setID(base + "_" + s)
	case "UserId":
		j.User, j.UID, err = person(s)
	case "GroupId":
		j.Group, j.GID, err = person(s)
	case "NumNodes":
		count, _, _ := strings.Cut(s, "-") // a range while pending
		j.NodeCount, err = parseCount(count)
	case "NumCPUs":
		count, _, _ := strings.Cut(s, "-")
		j.CPUs, err = parseCount(count)
	}
	return err
}

// person reads "name(1000)".
func person(s string) (name string, id *int64, err error) {
	name, number, ok := strings.Cut(s, "(")
	if !ok {
		return s, nil, nil
	}
	id, err = parseCount(strings.TrimSuffix(number, ")"))
	return name, id, err
}
