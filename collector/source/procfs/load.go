package procfs

import (
	"bytes"
	"errors"
	"time"

	"fairway/collector"
)

// load is what the processors had done when they were last looked at. That is not every second: of many processors and
// interrupts the kernel writes stat longer than all other files that are read.
type load struct {
	at        time.Time
	idle, all uint64 // ticks of all processors together
}

// due says whether to look now.
func (l *load) due(now time.Time) bool {
	if !l.at.IsZero() && now.Sub(l.at) < collector.LoadEvery {
		return false
	}
	l.at = now
	return true
}

// processors reads the first line of stat: cpu, then ticks of user, nice, system, idle, iowait, irq, softirq and steal;
// what guests took is in user and nice. A processor that waits for I/O does nothing else.
func (s *Source) processors(into *collector.Reading) error {
	text, err := s.readFile("stat")
	if err != nil {
		return err
	}
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	var room [16][]byte
	f := collector.Fields(room[:0], line)
	const idle, iowait, fields, most = 4, 5, 9, 1 << 60
	if len(f) < fields || string(f[0]) != "cpu" {
		return errors.New("line 1: want cpu and eight counts")
	}
	was := s.load
	s.load.idle, s.load.all = 0, 0
	for i := 1; i < fields; i++ {
		ticks, ok := collector.Decimal(f[i])
		if !ok || ticks > most {
			s.load.all = 0
			return errors.New("line 1: a count of cpu is not a number")
		}
		s.load.all += ticks
		if i == idle || i == iowait {
			s.load.idle += ticks
		}
	}
	switch all, waited := s.load.all-was.all, s.load.idle-was.idle; {
	case was.all == 0 || all == 0:
	case s.load.all < was.all || s.load.idle < was.idle || waited > all:
		into.Resets++
	default:
		into.Add(collector.CPUBusyRatio, 1-float64(waited)/float64(all))
	}
	return nil
}

// memory reads meminfo. Kernels before 3.14 do not say what programs could still have.
func (s *Source) memory(into *collector.Reading) error {
	text, err := s.readFile("meminfo")
	if err != nil {
		return err
	}
	var total, available uint64
	known := false
	err = collector.Lines(text, func(_ []byte, f [][]byte) error {
		const fields = 3 // name, count, kB
		to := &total
		switch string(f[0]) {
		case "MemTotal:":
		case "MemAvailable:":
			to, known = &available, true
		default:
			return nil
		}
		ok := len(f) == fields
		if ok {
			*to, ok = collector.Decimal(f[1])
		}
		if !ok {
			return errors.New("want a name, a count and kB")
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case total == 0 || available > total:
		return errors.New("no MemTotal, or one below MemAvailable")
	case !known:
		return errUnsupported
	}
	into.Add(collector.MemoryUsedRatio, 1-float64(available)/float64(total))
	return nil
}
