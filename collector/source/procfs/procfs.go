// Package procfs reads a Linux node from /proc: block devices, network links, I/O pressure, NFS mounts
// and the NFS server.
//
// It fills disk_read_bytes, disk_write_bytes and disk_busy_ratio (the busiest device); link_rx_bytes
// and link_tx_bytes over the physical links, what goes by RDMA included; link_rate_bits, link_lanes, link_errors and
// link_wait_ticks of /sys/class; throttled_ratio and throttle_events of the processors; resent_ratio of TCP;
// psi_io_some and psi_io_full; cpu_busy_ratio and memory_used_ratio every ten seconds; a note of how the node is set up
// every minute; cpu_wait, of the threads of LNet's drivers and of file services; and what package nfs does. Overhead:
// six small files, about 0.2 ms of CPU a second, and 5 microseconds for each such thread and each file of a port, card
// or package of processors: ten, two and two.
package procfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"time"

	"fairway/collector"
	"fairway/collector/rootfs"
	"fairway/collector/source/nfs"
)

// Options say what of a node is read.
type Options struct {
	Root      string   // where proc is mounted
	Files     fs.FS    // nil: what is below Root
	Sys       fs.FS    // nil: what is below sys, beside Root
	SkipLinks []string // path.Match patterns of network links that are not counted
	// ReportWaiting says that the node's requests are its programs' own: those under way are reported.
	ReportWaiting bool
}

// Source reads one node. Its files are independent: one that is missing or cannot be read costs its
// own metrics only.
type Source struct {
	opt   Options
	files fs.FS
	rates collector.Rates[key]
	// rates32 has the counters that some kernels keep in 32 bits.
	rates32 collector.Rates[key]
	nfs     *nfs.Reader
	names   map[string]string
	counted map[string]bool // whether a device or link counts, by name
	parts   map[string]bool // whether a disk is a part of another, by name
	tids    []string        // the files of the service's threads
	listed  time.Time       // when they were found
	sys     sysClass
	load    load
	facts   time.Time // newest note of how the node is set up
}

// key names one counter: a file's, of a device or link.
type key struct {
	kind  kind
	name  string
	field uint8
}

type kind uint8

const (
	disk kind = iota
	link
	pressure
	thread
	port
	processor
	tcp
)

var _ collector.Source = (*Source)(nil)

// New returns the source of the node whose proc is at opt.Root.
func New(opt Options) *Source {
	if opt.Files == nil {
		opt.Files = rootfs.At(opt.Root)
	}
	if opt.Sys == nil {
		opt.Sys = rootfs.At(filepath.Join(opt.Root, "..", "sys"))
	}
	s := &Source{opt: opt, files: opt.Files, sys: sysClass{files: opt.Sys}, nfs: nfs.New(opt.Files),
		names: map[string]string{}, counted: map[string]bool{}, parts: map[string]bool{}}
	s.rates32.Wrap32 = true
	s.nfs.ReportWaiting = opt.ReportWaiting
	return s
}

// Name is "procfs".
func (s *Source) Name() string { return "procfs" }

// Close ends the look-ups of names.
func (s *Source) Close() error {
	s.nfs.Close()
	return nil
}

// Read reads every file once. Errors name the file; what the others say is still reported.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	at := time.Now()
	s.rates.Begin(at)
	s.rates32.Begin(at)
	s.nfs.Begin(at)
	s.listSys(at)
	client, lookAtLoad := s.nfs.Client, s.load.due(into.Now)
	if s.nfs.Serves() {
		client = s.nfs.BackEnds // it serves what it mounts
	}
	var errs []error
	found := false
	for _, part := range []struct {
		on   bool
		file string
		read func(*collector.Reading) error
	}{
		{true, "diskstats", s.disks},
		{true, "net/dev", s.links},
		{true, "net/snmp", s.segments},
		{true, "../sys/class", s.linkState},
		{true, "../sys/devices/system/cpu", s.throttling},
		{true, "pressure/io", s.pressure},
		{lookAtLoad, "stat", s.processors},
		{lookAtLoad, "meminfo", s.memory},
		{true, "schedstat of the service's threads", s.threads},
		{true, "self/mountstats", client},
		{true, "net/rpc/nfsd", s.nfs.Server},
	} {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if !part.on {
			continue
		}
		err := part.read(into)
		switch {
		case err == nil:
			found = true
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errUnsupported):
			found = true
			errs = append(errs, fmt.Errorf("%s: %w", path.Join(s.opt.Root, part.file), err))
		}
	}
	if s.facts.IsZero() || at.Sub(s.facts) >= factsEvery {
		s.facts = at
		s.describe(into)
	}
	into.Resets += s.rates.Resets + s.rates32.Resets + s.nfs.Resets()
	if !found {
		return fmt.Errorf("%s has none of the files that are read: %w", s.opt.Root, collector.ErrNoData)
	}
	return errors.Join(errs...)
}

// readFile reads a file of proc.
func (s *Source) readFile(name string) ([]byte, error) { return fs.ReadFile(s.files, name) }

// intern keeps one string for each name.
func (s *Source) intern(b []byte) string {
	if v, ok := s.names[string(b)]; ok {
		return v
	}
	const most = 1 << 12
	if len(s.names) >= most {
		clear(s.names)
		clear(s.counted)
		clear(s.parts)
	}
	v := string(b)
	s.names[v] = v
	return v
}

// skip remembers whether any pattern matches a name.
func (s *Source) skip(kind kind, name string, patterns []string) bool {
	known := name
	if kind == link {
		known = "link " + name
	}
	counts, ok := s.counted[known]
	if !ok {
		counts = true
		for _, p := range patterns {
			if m, _ := path.Match(p, name); m {
				counts = false
			}
		}
		s.counted[known] = counts
	}
	return !counts
}
