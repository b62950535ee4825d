package scraped

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"fairway/collector"
)

// share is what a counter adds to a metric of a subject.
type share struct {
	subject *subject
	of      quantity
	part    part
	factor  float64 // to seconds, of a time or of an operation of a histogram
}

type quantity struct {
	metric    collector.Metric
	operation string
}

// subject gathers a snapshot of what one scrape counts of a subject.
type subject struct {
	Subject
	cells map[quantity]*cell
}

// cell is a metric's value in a snapshot.
type cell struct {
	snapshot       int
	value          collector.Total // a second; of a mean the seconds that were spent
	counted        collector.Total // a histogram's operations a second
	isMean, counts bool
}

// scrape is what is read together.
type scrape struct {
	node     string
	rates    collector.Rates[int]
	gaps     []int64
	every    int64 // ms from scrape to scrape; 0 until it is known
	newest   int64 // time of the newest snapshot
	snapshot int
	subjects []*subject
	readings []reading // of the batch
}

type reading struct {
	at      int64
	counter *counter
	value   float64
}

// subject finds or adds what a scrape counts of a subject.
func (s *scrape) subject(of Subject) *subject {
	for _, known := range s.subjects {
		if known.Subject == of {
			return known
		}
	}
	s.subjects = append(s.subjects, &subject{Subject: of, cells: map[quantity]*cell{}})
	return s.subjects[len(s.subjects)-1]
}

// walk makes intervals of what was gathered.
func (s *scrape) walk(out []Interval, sum *Summary) []Interval {
	slices.SortStableFunc(s.readings, func(a, b reading) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.counter.id, b.counter.id))
	})
	if s.every == 0 && len(s.gaps) > 0 {
		slices.Sort(s.gaps)
		s.every, s.gaps = s.gaps[len(s.gaps)/2], nil
		s.rates.MaxGap = time.Duration(s.every) * time.Millisecond * 3 / 2
	}
	for from := 0; from < len(s.readings); {
		to := from + 1
		for to < len(s.readings) && s.readings[to].at-s.readings[from].at <= s.every/2 {
			to++
		}
		out = s.read(s.readings[from:to], out, sum)
		from = to
	}
	s.readings = s.readings[:0]
	return out
}

// read takes one snapshot.
func (s *scrape) read(all []reading, out []Interval, sum *Summary) []Interval {
	at := all[0].at
	s.snapshot++
	s.rates.Begin(time.UnixMilli(at))
	if s.newest > 0 && s.rates.Seconds() == 0 {
		sum.Missed++
	}
	s.newest = at
	for _, r := range all {
		s.add(r)
	}
	sum.Resets += s.rates.Resets
	if s.rates.Seconds() == 0 {
		return out
	}
	for _, of := range s.subjects {
		i := Interval{Subject: of.Subject, By: s.node, End: time.UnixMilli(at).UTC(),
			Every: time.Duration(s.every) * time.Millisecond}
		of.finish(&i, s.snapshot, s.rates.Seconds())
		if len(i.Samples)+len(i.Means) > 0 {
			out = append(out, i)
		}
	}
	return out
}

// mostCount is the largest count that is believed.
const mostCount = 1 << 63

// add adds one value to what it is a share of.
func (s *scrape) add(r reading) {
	isTime := r.counter.shares[0].part == spent
	count := r.value
	if isTime { // nanoseconds, so that fractions count
		count *= r.counter.shares[0].factor * 1e9
	}
	if count >= mostCount {
		return
	}
	var perSec float64
	var grown, back bool
	if r.counter.shares[0].part != gauge {
		resets := s.rates.Resets
		perSec, grown = s.rates.Rate(r.counter.id, uint64(math.Round(count)))
		back = s.rates.Resets > resets
	}
	for _, sh := range r.counter.shares {
		c := sh.subject.cells[sh.of]
		if c == nil {
			c = &cell{}
			sh.subject.cells[sh.of] = c
		}
		if c.snapshot != s.snapshot {
			*c = cell{snapshot: s.snapshot}
		}
		c.isMean, c.counts = sh.part == spent || sh.part == histogram, sh.part == histogram
		switch {
		case back:
			c.value.Lose()
			c.counted.Lose()
		case grown && sh.part == spent:
			c.value.Add(perSec * 1e-9)
		case grown && sh.part == histogram:
			c.value.Add(perSec * sh.factor)
			c.counted.Add(perSec)
		case grown:
			c.value.Add(perSec)
		case sh.part == gauge:
			c.value.Add(r.value)
		}
	}
}

// finish writes a snapshot into an interval.
func (s *subject) finish(i *Interval, snapshot int, seconds float64) {
	for _, q := range slices.SortedFunc(maps.Keys(s.cells), func(a, b quantity) int {
		return cmp.Or(cmp.Compare(a.metric, b.metric), cmp.Compare(a.operation, b.operation))
	}) {
		c := s.cells[q]
		v, ok := c.value.Value()
		switch {
		case c.snapshot != snapshot || !ok:
		case c.isMean:
			ops, known := c.counted.Value()
			if !c.counts {
				ops, known = s.opsOf(q, snapshot)
			}
			if known && ops > 0 {
				i.Means = append(i.Means, Mean{q.metric, q.operation, ops * seconds, v * seconds})
			}
		case q.operation == "":
			i.Samples = append(i.Samples, collector.Sample{Metric: q.metric, Value: v})
		}
	}
}

// opsOf is how many operations a second a time was spent on.
func (s *subject) opsOf(q quantity, snapshot int) (float64, bool) {
	c := s.cells[quantity{q.metric.Info().Of[0], q.operation}]
	if c == nil || c.snapshot != snapshot {
		return 0, false
	}
	return c.value.Value()
}
