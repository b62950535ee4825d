package replay

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"fairway/anomaly"
)

// Fault is a labelled fault of a record: by FoundBy its node is named with its word, by OverBy it is accused no more.
type Fault struct {
	Record, Node, Kind  string
	Begin, End          time.Time
	FoundBy, OverBy     time.Time
	Found, Named, Ended time.Time // what the replay showed; zero: never
	Word                string    // that it was named with last before FoundBy
}

// Faults reads a table of labelled faults.
func Faults(file string) (out []*Fault, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", file, err)
	}
	for _, row := range rows[min(1, len(rows)):] {
		one := &Fault{Record: row[0], Node: row[1], Kind: row[2]}
		for i, at := range []*time.Time{&one.Begin, &one.End, &one.FoundBy, &one.OverBy} {
			if text := row[3+i]; text != "" {
				seconds, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					return nil, fmt.Errorf("table %s: %q: %w", file, row, err)
				}
				*at = time.Unix(seconds, 0).UTC()
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// Condition is the word that the fault asks for; empty where none of a node is right.
func (f *Fault) Condition() anomaly.Condition {
	if f.FoundBy.IsZero() {
		return ""
	}
	word, _, _ := strings.Cut(f.Kind, " ")
	return anomaly.Condition(word)
}

// names reports whether a finding's node is the fault's, or one of what it stands for: an OST stands for its server.
func (f *Fault) names(node string) bool {
	if node == f.Node {
		return true
	}
	for word := range strings.FieldsSeq(f.Kind) {
		target := strings.Trim(word, "();,")
		if (strings.HasPrefix(target, "OST") || strings.HasPrefix(target, "MDT")) && strings.HasSuffix(node, target) {
			return true
		}
	}
	return false
}

// See takes the findings of a second.
func (f *Fault) See(now time.Time, open []anomaly.Finding) {
	accused := false
	for i := range open {
		g := &open[i]
		if !g.Open() || !f.names(string(g.Node)) || !g.Kind.Accuses() && g.Kind != anomaly.TargetSlow {
			continue
		}
		accused = accused || g.State != anomaly.Suspect
		if now.Before(f.Begin) || g.State == anomaly.Suspect {
			continue
		}
		if f.Found.IsZero() {
			f.Found = now
		}
		if now.Before(f.FoundBy) {
			f.Word = string(g.Condition)
		}
		if f.Named.IsZero() && g.Condition == f.Condition() {
			f.Named = now
		}
	}
	end := f.End
	if end.IsZero() {
		end = f.Begin
	}
	if now.After(end) && !accused && f.Ended.IsZero() {
		f.Ended = now
	}
	if accused {
		f.Ended = time.Time{}
	}
	if f.Condition() == anomaly.Slow && !f.Named.IsZero() && f.Word == "" {
		f.Word = string(anomaly.Slow)
	}
}

// Right reports whether the fault was named in time, and whether it was over in time; what is not asked for is right.
func (f *Fault) Right() (found, over bool) {
	found = f.FoundBy.IsZero() || !f.Named.IsZero() && !f.Named.After(f.FoundBy)
	over = f.OverBy.IsZero() || !f.Ended.IsZero() && !f.Ended.After(f.OverBy)
	return found, over
}
