package procfs

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
)

const (
	listEvery   = time.Minute // threads are looked for; a kernel's service rarely starts new ones
	mostThreads = 512
)

// service are the names of the threads that move data for others: LNet's drivers, Lustre's client, the NFS servers,
// GPFS, LWFS and diod. A name ends in a number or nothing.
var service = []string{"kiblnd_sd_", "socknal_sd", "ptlrpcd_", "nfsd", "ganesha.nfsd", "mmfsd", "lwfsd", "diod"}

// threads reads how long the service's threads waited for a processor: the second number of their schedstat, ns, which
// kernels with CONFIG_SCHED_INFO have.
func (s *Source) threads(into *collector.Reading) error {
	if s.listed.IsZero() || into.Now.Sub(s.listed) >= listEvery {
		s.listed = into.Now
		if err := s.listThreads(); err != nil {
			return err
		}
	}
	var waited collector.Total
	for _, name := range s.tids {
		text, err := s.readFile(name)
		if err != nil {
			continue // it has ended
		}
		f := collector.Fields(nil, text)
		if len(f) < 3 {
			return errors.New(name + ": want three numbers")
		}
		ns, ok := collector.Decimal(f[1])
		if !ok {
			return errors.New(name + ": the second field is not a number")
		}
		s.rates.AddTo(&waited, key{kind: thread, name: name}, ns)
	}
	const perSecond = 1e-9
	if v, ok := waited.Value(); ok {
		into.Add(collector.CPUWait, v*perSecond)
	}
	if len(s.tids) == 0 {
		return fs.ErrNotExist
	}
	return nil
}

// listThreads finds the service's threads: those of the kernel are processes of their own, those of a program are below
// its process.
func (s *Source) listThreads() error {
	all, err := fs.ReadDir(s.files, ".")
	if err != nil {
		return err
	}
	s.tids = s.tids[:0]
	for _, d := range all {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		comm, err := s.readFile(path.Join(d.Name(), "comm"))
		if err != nil || !serves(strings.TrimSpace(string(comm))) {
			continue
		}
		tasks, err := fs.ReadDir(s.files, path.Join(d.Name(), "task"))
		if err != nil || len(tasks) < 2 {
			s.tids = append(s.tids, path.Join(d.Name(), "schedstat"))
			continue
		}
		for _, t := range tasks {
			s.tids = append(s.tids, path.Join(d.Name(), "task", t.Name(), "schedstat"))
		}
	}
	s.tids = s.tids[:min(len(s.tids), mostThreads)]
	return nil
}

func serves(comm string) bool {
	for _, name := range service {
		if rest, ok := strings.CutPrefix(comm, name); ok && strings.Trim(rest, "0123456789_") == "" {
			return true
		}
	}
	return false
}
