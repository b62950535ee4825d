package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"syscall"

	"fairway/collector"
)

const sectorBytes = 512 // of diskstats, whatever the device's own sector

// errUnsupported says that the kernel has a file and does not serve it (PSI switched off at boot).
var errUnsupported = errors.New("not supported by this kernel")

// partition is a disk's name and a number, with a p between them where the name ends with a number itself.
var partition = regexp.MustCompile(`^(?:(.*\d)p|(.*[a-z]))\d+$`)

// nvmePath is one way to a namespace that is reached over several.
var nvmePath = regexp.MustCompile(`^(nvme\d+)c\d+(n\d+)$`)

// isPartition says whether a disk's name is that of a part of one that is among the others (Xen gives its guests parts
// alone), or one of several ways to it.
func isPartition(name string, diskstats []byte) bool {
	if m := nvmePath.FindStringSubmatch(name); m != nil {
		// Old kernels count at the paths of a namespace alone, later ones at the namespace, too.
		return !bytes.Contains(diskstats, []byte(" "+m[1]+m[2]+" 0 0 0 0 0 0 0 "))
	}
	m := partition.FindStringSubmatch(name)
	return m != nil && bytes.Contains(diskstats, []byte(" "+m[1]+m[2]+" "))
}

// notDisks are patterns of block devices that stand for disks which are counted, or for memory, and of removable media.
// Those of the second line are of makers' own multipath drivers, beside the paths; /sys does not say what they are of.
var notDisks = []string{"loop*", "ram*", "zram*", "dm-*", "md*", "sr*", "fd*", "zd*", "bcache*", "drbd*", "ublkb*",
	"emcpower*", "VxDMP*", "VxVM*", "sddlm*", "vpath*", "tdmp*"}

// disks reads diskstats: major, minor, name, then 11 counters or more, among them sectors read (3rd)
// and written (7th) and the milliseconds in which anything was in progress (10th, 32 bits wide).
func (s *Source) disks(into *collector.Reading) error {
	text, err := s.readFile("diskstats")
	if err != nil {
		return err
	}
	var read, write collector.Total
	busiest, known := 0.0, false
	const fewest, sectorsRead, sectorsWritten, busyMillis = 14, 5, 9, 12
	err = collector.Lines(text, func(_ []byte, f [][]byte) error {
		if len(f) < fewest {
			return fmt.Errorf("%d fields, want at least %d", len(f), fewest)
		}
		name := s.intern(f[2])
		if s.skip(disk, name, notDisks) || s.sys.stacked[name] {
			return nil
		}
		part, seen := s.parts[name]
		if !seen || nvmePath.MatchString(name) {
			part = isPartition(name, text)
			s.parts[name] = part
		}
		if part {
			return nil
		}
		r, ok1 := collector.Decimal(f[sectorsRead])
		w, ok2 := collector.Decimal(f[sectorsWritten])
		busy, ok3 := collector.Decimal(f[busyMillis])
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("a counter of %s is not a number", name)
		}
		resets := s.rates.Resets
		s.rates.AddTo(&read, key{kind: disk, name: name, field: 0}, r*sectorBytes)
		s.rates.AddTo(&write, key{kind: disk, name: name, field: 1}, w*sectorBytes)
		if s.rates.Resets > resets {
			s.rates32.RestartOf(key{kind: disk, name: name, field: 2})
		}
		if perSec, ok := s.rates32.Rate(key{kind: disk, name: name, field: 2}, busy); ok {
			busiest, known = max(busiest, min(1, perSec/1000)), true
		}
		return nil
	})
	if err != nil {
		return err // a sum that misses a device would look like a drop
	}
	into.AddTotal(collector.DiskReadBytes, &read)
	into.AddTotal(collector.DiskWriteBytes, &write)
	if known {
		into.Add(collector.DiskBusyRatio, busiest)
	}
	return nil
}

// links reads net/dev: two lines of headings, then NAME: 8 receive counters, bytes first, and 8
// transmit counters. What goes by RDMA is not in it: it is added.
func (s *Source) links(into *collector.Reading) error {
	text, err := s.readFile("net/dev")
	if err != nil {
		return err
	}
	var rx, tx collector.Total
	err = collector.Lines(text, func(_ []byte, f [][]byte) error {
		if bytes.IndexByte(f[0], '|') >= 0 || len(f) > 1 && bytes.IndexByte(f[1], '|') >= 0 {
			return nil // headings
		}
		end := bytes.LastIndexByte(f[0], ':') // an alias has another one in its name
		name, counters := f[0][:max(0, end)], f[1:]
		if first := f[0][end+1:]; len(first) > 0 { // "eth0:123": no blank behind a wide name
			f[0], counters = first, f
		}
		const want, transmitted = 16, 8
		if end < 0 || len(counters) < want {
			return fmt.Errorf("%d counters behind a name, want %d", len(counters), want)
		}
		ifname := s.intern(name)
		if s.skip(link, ifname, s.opt.SkipLinks) || s.sys.ipoib[ifname] || s.sys.stacked[ifname] ||
			len(s.sys.carriers) > 0 && !s.sys.carriers[ifname] {
			return nil
		}
		r, ok1 := collector.Decimal(counters[0])
		t, ok2 := collector.Decimal(counters[transmitted])
		received, ok3 := collector.Decimal(counters[1])
		sent, ok4 := collector.Decimal(counters[transmitted+1])
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return fmt.Errorf("a counter of %s is not a number", ifname)
		}
		resets := s.rates.Resets
		s.rates.Rate(key{kind: link, name: ifname, field: 2}, received)
		s.rates.Rate(key{kind: link, name: ifname, field: 3}, sent)
		if s.rates.Resets > resets { // packets wrap later than bytes do
			s.rates32.RestartOf(key{kind: link, name: ifname, field: 0}, key{kind: link, name: ifname, field: 1})
		}
		s.rates32.AddTo(&rx, key{kind: link, name: ifname, field: 0}, r)
		s.rates32.AddTo(&tx, key{kind: link, name: ifname, field: 1}, t)
		return nil
	})
	if err != nil {
		return err
	}
	if known, err := s.addPorts(&rx, &tx); !known {
		return err
	}
	into.AddTotal(collector.LinkRxBytes, &rx)
	into.AddTotal(collector.LinkTxBytes, &tx)
	return nil
}

// pressure reads pressure/io: `some|full avg10=… avg60=… avg300=… total=MICROSECONDS`.
func (s *Source) pressure(into *collector.Reading) error {
	text, err := s.readFile("pressure/io")
	if errors.Is(err, syscall.EOPNOTSUPP) {
		return errUnsupported
	}
	if err != nil {
		return err
	}
	return collector.Lines(text, func(_ []byte, f [][]byte) error {
		total, ok := bytes.CutPrefix(f[len(f)-1], []byte("total="))
		us, isNumber := collector.Decimal(total)
		var m collector.Metric
		switch string(f[0]) {
		case "some":
			m = collector.PSIIOSome
		case "full":
			m = collector.PSIIOFull
		}
		if !ok || !isNumber || m == collector.MetricNone {
			return errors.New("want some or full, averages, and total=MICROSECONDS")
		}
		if _, twice := collector.SampleOf(into.Samples, m); twice {
			return fmt.Errorf("%s is there twice", f[0])
		}
		if perSec, ok := s.rates.Rate(key{kind: pressure, field: uint8(m)}, us); ok {
			into.Add(m, min(1, perSec/1e6))
		}
		return nil
	})
}
