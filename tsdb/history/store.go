package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fairway/collector/appendlog"
	"fairway/collector/topology"
)

// Store is the history in one file, one record a line: the CRC-32C of the record's JSON as 8 hex
// digits, a space, the JSON of a Run, a newline. A run is written at its start, at its end, and when
// its profile is made; the later line counts. What was answered is on disk.
//
// All methods may be called concurrently. Predictions never wait for the disk.
type Store struct {
	path  string
	write sync.Mutex // held while appending; guards log
	log   *appendlog.File

	mu     sync.RWMutex // guards memory
	memory              // of what is in the file
}

// memory is what a store knows without its file, and where in it the rest is.
type memory struct {
	file    *os.File // of the store's log, for reading; places are of this one
	idx     index
	running map[topology.JobID]Run
	pending map[topology.JobID]Run
	at      map[topology.JobID]int64   // of the newest ended run of each job
	earlier map[topology.JobID][]int64 // the others, of the few jobs that have more than one
	ended   []int64                    // in the order of the file
	begun   map[beginning]int64        // where the start stands of those that run or are pending
	spans   []span                     // of the ended runs whose start is in the file
}

// span is when an ended run ran, and where its start stands, with its nodes.
type span struct {
	from, to time.Time
	start    int64
}

// beginning identifies one of the runs of a job number.
type beginning struct {
	job  topology.JobID
	nano int64
}

func beginningOf(r *Run) beginning { return beginning{r.Job, r.Start.UnixNano()} }

// Summary is what opening a store found.
type Summary struct {
	Runs    int `json:"runs"` // ended
	Running int `json:"running"`
	// TornBytes is an unfinished last record, never answered, that was cut off.
	TornBytes int64 `json:"torn_bytes"`
	// Damaged lists the records that were skipped, with their line; they stay in the file.
	Damaged []error `json:"-"`

	whole int64 // bytes of whole records
}

// maxRecordBytes bounds a line: a run over 40,960 nodes needs about half a megabyte.
const maxRecordBytes = 8 << 20

// maxDamaged bounds the list of damaged records.
const maxDamaged = 100

// ErrDamaged is wrapped by every error that names a bad record.
var ErrDamaged = errors.New("history record is damaged")

// Open reads the history at path, or makes it. A damaged record is skipped and listed: the other
// runs still predict. Errors wrap appendlog.ErrLocked where another process has it open.
func Open(path string) (*Store, Summary, error) {
	log, f, err := appendlog.OpenFile(path)
	if err != nil {
		return nil, Summary{}, fmt.Errorf("open history: %w", err)
	}
	s := &Store{path: path, log: log, memory: remember(f)}
	sum, err := s.load(path)
	if err == nil {
		err = s.settle(&sum)
	}
	if err != nil {
		return nil, sum, errors.Join(err, log.Close())
	}
	return s, sum, nil
}

func remember(f *os.File) memory {
	return memory{file: f, idx: index{series: map[Key]*series{}, blind: map[Key]int{}}, begun: map[beginning]int64{},
		running: map[topology.JobID]Run{}, pending: map[topology.JobID]Run{}, at: map[topology.JobID]int64{},
		earlier: map[topology.JobID][]int64{}}
}

// load reads the file from its begin.
func (s *memory) load(path string) (sum Summary, err error) {
	sum.whole, sum.TornBytes, err = scan(s.file, func(line int, at int64, b []byte) error {
		r, err := decode(b)
		if err != nil {
			if len(sum.Damaged) < maxDamaged {
				sum.Damaged = append(sum.Damaged, fmt.Errorf("%s:%d: %w", path, line, err))
			}
			return nil
		}
		s.take(&r, at)
		return nil
	})
	if err != nil {
		return sum, fmt.Errorf("read history %s: %w", path, err)
	}
	sum.Runs, sum.Running = len(s.ended), len(s.running)
	return sum, nil
}

func (s *Store) settle(sum *Summary) error {
	if err := s.log.Settle(s.path, sum.whole, sum.TornBytes > 0); err != nil {
		return fmt.Errorf("open history %s: %w", s.path, err)
	}
	return nil
}

// scan shows every whole line with its number and place, and says where the last one ends and how
// many bytes of an unfinished one follow.
func scan(src io.Reader, visit func(line int, at int64, b []byte) error) (whole, torn int64, err error) {
	in := bufio.NewReaderSize(src, 1<<20)
	var long []byte // a line that does not fit the buffer
	for line := 1; ; {
		b, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, b...)
			continue
		}
		if len(long) > 0 {
			b = append(long, b...)
			long = long[:0]
		}
		if errors.Is(err, io.EOF) {
			return whole, int64(len(b)), nil
		}
		if err == nil {
			err = visit(line, whole, b)
		}
		if err != nil {
			return whole, 0, err
		}
		whole += int64(len(b))
		line++
	}
}

// crcDigits are before each record's JSON, with a space behind them.
const crcDigits = 8

func encode(r *Run) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("history: encode job %s: %w", r.Job, err)
	}
	if len(body) > maxRecordBytes {
		return nil, fmt.Errorf("%w: job %s: record of %d bytes is larger than %d", ErrInvalid, r.Job, len(body),
			maxRecordBytes)
	}
	return fmt.Appendf(nil, "%08x %s\n", appendlog.Sum(body), body), nil
}

func decode(line []byte) (r Run, err error) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if len(line) < crcDigits+2 || len(line) > maxRecordBytes+crcDigits+1 || line[crcDigits] != ' ' {
		return r, fmt.Errorf("%w: not a CRC and a record", ErrDamaged)
	}
	body := line[crcDigits+1:]
	want, err := strconv.ParseUint(string(line[:crcDigits]), 16, 32)
	if err != nil {
		return r, fmt.Errorf("%w: CRC %q", ErrDamaged, line[:crcDigits])
	}
	if got := appendlog.Sum(body); got != uint32(want) {
		return r, fmt.Errorf("%w: CRC is %08x, its bytes give %08x", ErrDamaged, want, got)
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err := r.check(); err != nil {
		return r, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return r, nil
}

// take makes one record true; at is its place in the file.
func (s *memory) take(r *Run, at int64) {
	if r.End.IsZero() {
		s.running[r.Job], s.begun[beginningOf(r)] = *r, at
		return
	}
	// An imported run may be older than the job of the same number that runs now.
	now, ok := s.running[r.Job]
	if ok && !r.Start.Before(now.Start) {
		delete(s.running, r.Job)
	}
	if r.Pending {
		p := *r
		p.NodeList = now.NodeList
		s.pending[r.Job] = p
		return
	}
	if p, ok := s.pending[r.Job]; ok && !r.Start.Before(p.Start) {
		delete(s.pending, r.Job)
	}
	if start, known := s.begun[beginningOf(r)]; known {
		delete(s.begun, beginningOf(r))
		s.spans = append(s.spans, span{r.Start, r.End, start})
	}
	if before, again := s.at[r.Job]; again {
		s.earlier[r.Job] = append(s.earlier[r.Job], before)
	}
	s.at[r.Job] = at
	s.ended = append(s.ended, at)
	switch _, again := s.earlier[r.Job]; {
	case r.Profile != nil:
		s.idx.learn(r, at)
	case !again:
		s.idx.blind[r.Key()]++
	}
}

// Begin records that a job has started and returns when that is on disk. Errors: ErrInvalid.
func (s *Store) Begin(r Run) error {
	if !r.End.IsZero() {
		return fmt.Errorf("%w: job %q begins with an end", ErrInvalid, r.Job)
	}
	return s.append(r)
}

// Stop records that a job has ended, before its profile is made, and returns when that is on disk.
// Errors: ErrInvalid.
func (s *Store) Stop(r Run) error {
	if r.End.IsZero() {
		return fmt.Errorf("%w: job %q ends without an end", ErrInvalid, r.Job)
	}
	r.Pending, r.NodeList = true, nil
	return s.append(r)
}

// Pending returns the runs that have ended and wait for their profile, with their nodes.
func (s *Store) Pending() []Run {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return byStart(s.pending)
}

// End records that a job has ended and what it did, and returns when that is on disk. The list of
// nodes stays with the record of the start. Errors: ErrInvalid.
func (s *Store) End(r Run) error {
	if r.End.IsZero() {
		return fmt.Errorf("%w: job %q ends without an end", ErrInvalid, r.Job)
	}
	r.Pending, r.NodeList = false, nil
	return s.append(r)
}

// Knows says whether the start of a run, or of one with an end its end, is in the history.
func (s *Store) Knows(r *Run) bool {
	s.mu.RLock()
	same := func(o Run, ok bool) bool { return ok && o.Start.Equal(r.Start) }
	running, isRunning := s.running[r.Job]
	pending, isPending := s.pending[r.Job]
	at, hasEnded := s.at[r.Job]
	file := s.file
	s.mu.RUnlock()
	if same(pending, isPending) || r.End.IsZero() && same(running, isRunning) {
		return true
	}
	if !hasEnded {
		return false
	}
	ended, err := read(file, at)
	return err == nil && same(ended, true)
}

// append writes runs in one go.
func (s *Store) append(runs ...Run) error {
	if len(runs) == 0 {
		return nil
	}
	var buf []byte
	offsets := make([]int64, len(runs))
	for i := range runs {
		if err := runs[i].check(); err != nil {
			return err
		}
		line, err := encode(&runs[i])
		if err != nil {
			return err
		}
		offsets[i] = int64(len(buf))
		buf = append(buf, line...)
	}
	s.write.Lock()
	defer s.write.Unlock()
	at := s.log.Size()
	if err := s.log.Append(buf); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range runs {
		s.take(&runs[i], at+offsets[i])
	}
	return nil
}

// Close releases the file and its lock.
func (s *Store) Close() error {
	s.write.Lock()
	defer s.write.Unlock()
	return s.log.Close()
}

// Predict returns what a job of key k will do by its latest run; ok is false without one.
func (s *Store) Predict(k Key) (p Prediction, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p.Site, p.Blind = s.idx.site, s.idx.blind[k]
	if found := s.idx.series[k]; found != nil {
		p.Run, p.Depth, p.Own, ok = found.latest, len(found.past), found.own, true
	}
	return p, ok
}

// Like returns the newest ended runs of key k that have a profile, the newest first, at most limit, and
// how many there are.
func (s *Store) Like(k Key, limit int) (runs []Run, all int, err error) {
	s.mu.RLock()
	var places []int64
	if found := s.idx.series[k]; found != nil {
		all = len(found.past)
		for _, o := range found.past[max(0, all-limit):] {
			places = append(places, o.at)
		}
	}
	file := s.file
	s.mu.RUnlock()
	runs, err = newest(file, places)
	return runs, all, err
}

// Accuracy is the site's own, over all runs.
func (s *Store) Accuracy() Accuracy {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.idx.site
}

// Count returns how many ended runs there are.
func (s *Store) Count() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.ended)
}

// Running returns the jobs that have begun and not ended, by their start.
func (s *Store) Running() []Run {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return byStart(s.running)
}

func byStart(runs map[topology.JobID]Run) []Run {
	return slices.SortedFunc(maps.Values(runs), func(a, b Run) int {
		if c := a.Start.Compare(b.Start); c != 0 {
			return c
		}
		return strings.Compare(string(a.Job), string(b.Job))
	})
}

// Job returns a job that runs or has just ended, else its newest ended run; ok is false for an unknown job.
func (s *Store) Job(id topology.JobID) (r Run, ok bool, err error) {
	s.mu.RLock()
	r, here := s.running[id]
	if !here {
		r, here = s.pending[id]
	}
	at, known := s.at[id]
	file := s.file
	s.mu.RUnlock()
	if here || !known {
		return r, here, nil
	}
	r, err = read(file, at)
	return r, err == nil, err
}

// At returns the runs of which the history knows the start and that ran in the second from t on, with
// their nodes.
func (s *Store) At(t time.Time) ([]Run, error) {
	end := t.Add(time.Second)
	s.mu.RLock()
	var runs []Run
	for _, r := range s.running {
		if r.Start.Before(end) {
			runs = append(runs, r)
		}
	}
	for _, r := range s.pending {
		if r.Start.Before(end) && r.End.After(t) {
			runs = append(runs, r)
		}
	}
	var then []span
	for _, p := range s.spans {
		if p.from.Before(end) && p.to.After(t) {
			then = append(then, p)
		}
	}
	file := s.file
	s.mu.RUnlock()
	for _, p := range then {
		r, err := read(file, p.start)
		if err != nil {
			return runs, err
		}
		r.End = p.to
		runs = append(runs, r)
	}
	return runs, nil
}

// Known reports whether the history has any job.
func (s *Store) Known() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.ended)+len(s.running)+len(s.pending) > 0
}

// Recent returns the newest ended runs, the newest first, at most limit.
func (s *Store) Recent(limit int) ([]Run, error) {
	s.mu.RLock()
	places, file := slices.Clone(s.ended[max(0, len(s.ended)-limit):]), s.file
	s.mu.RUnlock()
	return newest(file, places)
}

// newest reads the runs at places of a file, the last one first.
func newest(file *os.File, places []int64) ([]Run, error) {
	runs := make([]Run, 0, len(places))
	for _, at := range slices.Backward(places) {
		r, err := read(file, at)
		if err != nil {
			return runs, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// Each shows every ended run in the order of the file, until visit returns an error.
func (s *Store) Each(visit func(Run) error) error {
	s.write.Lock()
	file, size := s.file, s.log.Size()
	s.write.Unlock()
	_, _, err := scan(io.NewSectionReader(file, 0, size), func(_ int, _ int64, b []byte) error {
		r, err := decode(b)
		if err != nil || r.End.IsZero() || r.Pending {
			return nil // damaged ones were named when the store was opened
		}
		return visit(r)
	})
	return err
}

// read reads the run at a place of the file that the place is of: the store may have another one by now.
func read(file *os.File, at int64) (Run, error) {
	line, err := bufio.NewReaderSize(io.NewSectionReader(file, at, maxRecordBytes+64), 4<<10).ReadBytes('\n')
	if err != nil {
		return Run{}, fmt.Errorf("history: record at byte %d: %w", at, err)
	}
	r, err := decode(line)
	if err != nil {
		return r, fmt.Errorf("history: record at byte %d: %w", at, err)
	}
	return r, nil
}
