// Package gpfs reads a node of IBM Storage Scale (GPFS) through mmpmon: a protocol node that serves NFS, or any client
// of the file system.
//
// It fills read_bytes, write_bytes, read_ops, write_ops and meta_ops, summed over the file systems, from the counts of
// fs_io_s: what programs of the node asked for, cache hits included; a protocol node's programs are its servers.
// Latencies would need mmpmon's histograms, which cost the file system something and are one for all who ask: they are
// left alone. One mmpmon runs as long as the agent and prints every second. Where mmdiag lies beside it, that is run
// every 10 s for the longest waiter of GPFS's daemon: waiter_age, disk_waiter_age, and the reason as a note. A tick
// reads nothing itself.
package gpfs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fairway/collector"
)

// DefaultCommand is where mmpmon is installed.
const DefaultCommand = "/usr/lpp/mmfs/bin/mmpmon"

const (
	// lateAfter is for how long what mmpmon printed last is of now.
	lateAfter = 3 * time.Second
	// again is when an mmpmon that has ended is started anew.
	again = 30 * time.Second
	// endWithin is how long an mmpmon that is asked to end may take before it is killed.
	endWithin = 2 * time.Second
	// maxLine bounds a line of it, bytes, and maxSystems the file systems of a node.
	maxLine, maxSystems = 8 << 10, 256
)

// Source reports what mmpmon printed last.
type Source struct {
	start func() (io.ReadCloser, error) // of mmpmon, to read what it prints
	once  sync.Once
	stop  chan struct{}
	done  sync.WaitGroup
	waits *looks // nil: mmdiag is not run

	mu      sync.Mutex    // guards everything that follows
	out     io.Closer     // of the mmpmon that runs
	systems map[string]IO // its newest whole answer
	answer  map[string]IO // that which it prints now
	came    time.Time     // when it printed last
	bad     error
	rates   collector.Rates[key]
	seen    time.Time // mmpmon's time of the newest counts in rates
	samples []collector.Sample
}

type key struct {
	system string
	metric collector.Metric
}

var _ collector.Source = (*Source)(nil)

// New makes a source over a command, which is mmpmon.
func New(command string) *Source {
	s := Over(func() (io.ReadCloser, error) { return startMmpmon(command) })
	s.waits = &looks{look: lookWith(filepath.Join(filepath.Dir(command), "mmdiag"))}
	return s
}

// Over makes a source over what start returns, which prints as mmpmon does.
func Over(start func() (io.ReadCloser, error)) *Source {
	return &Source{start: start, stop: make(chan struct{})}
}

// Name is "gpfs".
func (*Source) Name() string { return "gpfs" }

// Close ends mmpmon.
func (s *Source) Close() error {
	s.once.Do(func() {}) // it is not started any more
	s.mu.Lock()
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	out := s.out
	s.mu.Unlock()
	if out != nil {
		_ = out.Close()
	}
	s.done.Wait()
	return nil
}

// Read reports the rates between the two newest prints.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.once.Do(s.begin)
	var waits error
	if s.waits != nil {
		waits = s.waits.report(into)
	}
	return errors.Join(s.report(into), waits)
}

// begin starts what runs as long as the source.
func (s *Source) begin() {
	s.done.Go(s.follow)
	if s.waits == nil {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	go func() {
		<-s.stop
		end()
	}()
	s.done.Go(func() { s.waits.again(ctx) })
}

// report adds the rates of mmpmon's newest counts.
func (s *Source) report(into *collector.Reading) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.came.IsZero() || into.Now.Sub(s.came) > lateAfter {
		if s.bad == nil {
			return fmt.Errorf("%w: mmpmon has printed nothing yet", collector.ErrNoData)
		}
		return s.bad
	}
	s.count(into)
	into.Samples = append(into.Samples, s.samples...)
	return s.bad
}

// count makes rates of the newest counts, by mmpmon's own clock.
func (s *Source) count(into *collector.Reading) {
	var at time.Time
	for _, c := range s.systems {
		if c.At.After(at) {
			at = c.At
		}
	}
	if at.Equal(s.seen) {
		return // nothing new: the second's values stand
	}
	s.seen = at
	s.rates.Begin(at)
	sums := map[collector.Metric]*collector.Total{}
	for name, c := range s.systems {
		for m, v := range map[collector.Metric]uint64{collector.ReadBytes: c.ReadBytes,
			collector.WriteBytes: c.WrittenBytes,
			collector.ReadOps:    c.Reads, collector.WriteOps: c.Writes, collector.MetaOps: c.Meta} {
			if sums[m] == nil {
				sums[m] = &collector.Total{}
			}
			s.rates.AddTo(sums[m], key{name, m}, v)
		}
	}
	into.Resets += s.rates.Resets
	r := collector.Reading{}
	for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.ReadOps,
		collector.WriteOps, collector.MetaOps} {
		r.AddTotal(m, sums[m])
	}
	s.samples = r.Samples
}

// follow keeps an mmpmon running and notes what it prints.
func (s *Source) follow() {
	for {
		out, err := s.start()
		if err == nil {
			s.mu.Lock()
			s.out = out
			s.mu.Unlock()
			select {
			case <-s.stop: // closed meanwhile
			default:
				err = collector.Fenced(func() error { return s.lines(out) })
			}
			if ended := out.Close(); err == nil {
				err = ended
			}
		}
		s.mu.Lock()
		if err == nil {
			err = errors.New("it ended")
		}
		s.out, s.bad = nil,
			fmt.Errorf("mmpmon: %w; it runs as root on nodes where GPFS is up, and is started again in %s",
				err, again)
		s.mu.Unlock()
		select {
		case <-s.stop:
			return
		case <-time.After(again):
		}
	}
}

// lines notes what an mmpmon prints until it ends.
func (s *Source) lines(out io.Reader) error {
	in := bufio.NewScanner(out)
	in.Buffer(nil, maxLine)
	s.mu.Lock()
	s.answer = map[string]IO{}
	s.mu.Unlock()
	for in.Scan() {
		s.line(in.Text())
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("it printed a line of more than %d bytes, as mmpmon never does: look at source.gpfs.command",
			maxLine)
	}
	return nil
}

func (s *Source) line(text string) {
	c, ok, err := ParseLine(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.bad = fmt.Errorf("mmpmon: %w", err)
	case ok:
		s.take(c)
	}
}

// take notes a line. An answer has one of each file system, and counts when it is whole: when it has as many as the one
// before, or the next one begins. A tick between two lines would else put the increase of two seconds into one.
func (s *Source) take(c IO) {
	if _, next := s.answer[c.System]; next {
		s.systems, s.answer = s.answer, map[string]IO{}
	}
	if len(s.answer) < maxSystems {
		s.answer[c.System] = c
	}
	if len(s.systems) > 0 && len(s.answer) >= len(s.systems) {
		s.systems = s.answer
	}
	s.came, s.bad = time.Now(), nil
}

// IO are the counts of one file system since it was mounted.
type IO struct {
	System       string    `json:"system"` // CLUSTER/NAME
	At           time.Time `json:"at"`
	ReadBytes    uint64    `json:"read_bytes"`
	WrittenBytes uint64    `json:"written_bytes"`
	Reads        uint64    `json:"reads"`
	Writes       uint64    `json:"writes"`
	Meta         uint64    `json:"meta"` // opens, closes, directories read, inodes changed
}

// ParseLine reads a line of "mmpmon -p" that answers fs_io_s. ok is false for other lines.
func ParseLine(line string) (c IO, ok bool, err error) {
	f := strings.Fields(line)
	if len(f) == 0 || f[0] != "_fs_io_s_" {
		return IO{}, false, nil
	}
	v := map[string]string{}
	for i := 1; i+1 < len(f); i += 2 {
		v[f[i]] = f[i+1]
	}
	number := func(key string) uint64 {
		n, e := strconv.ParseUint(v[key], 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("%.120q: %s is %.40q, not a number", line, key, v[key])
		}
		return n
	}
	if rc := number("_rc_"); err == nil && rc != 0 {
		return IO{}, false, fmt.Errorf("%.120q: code %d: no file system is mounted, or GPFS is down", line, rc)
	}
	c = IO{System: v["_cl_"] + "/" + v["_fs_"], ReadBytes: number("_br_"), WrittenBytes: number("_bw_"),
		Reads: number("_rdc_"), Writes: number("_wc_"),
		Meta: number("_oc_") + number("_cc_") + number("_dir_") + number("_iu_")}
	c.At = time.Unix(int64(number("_t_")), int64(number("_tu_"))*int64(time.Microsecond))
	if err == nil && v["_fs_"] == "" {
		err = fmt.Errorf("%.120q: no name of a file system", line)
	}
	return c, err == nil, err
}

// startMmpmon starts an mmpmon that prints the counts every second.
func startMmpmon(command string) (io.ReadCloser, error) {
	fd, err := unix.MemfdCreate("mmpmon requests", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	requests := os.NewFile(uintptr(fd), "mmpmon requests") // it reads them again each time
	defer requests.Close()
	if _, err := requests.WriteString("fs_io_s\n"); err != nil {
		return nil, err
	}
	if _, err := requests.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	c := exec.Command(command, "-p", "-s", "-r", "0", "-d", "1000", "-i", "/dev/stdin")
	c.Stdin = requests
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &running{ReadCloser: out, c: c}, nil
}

// running is an mmpmon; closing it ends it and what it has started.
type running struct {
	io.ReadCloser
	c    *exec.Cmd
	once sync.Once
	err  error
}

// Close ends it; one that does not end when it is asked to is killed.
func (r *running) Close() error {
	r.once.Do(func() {
		_ = syscall.Kill(-r.c.Process.Pid, syscall.SIGTERM)
		_ = r.ReadCloser.Close()
		kill := time.AfterFunc(endWithin, func() { _ = syscall.Kill(-r.c.Process.Pid, syscall.SIGKILL) })
		r.err = r.c.Wait()
		kill.Stop()
	})
	return r.err
}
