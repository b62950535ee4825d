package procfs

import (
	"errors"
	"io/fs"
	"math"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/nfs"

	"fairway/collector"
)

// errNoNFS says that the node has no NFS mount now.
var errNoNFS = errUnsupported

// opTotals are the sums of one class of operations.
type opTotals struct{ count, millis collector.Total }

// nfsClient reads mountstats: per mount the bytes exchanged with the server, and per operation its
// count and the time from its queueing to its end.
func (s *Source) nfsClient(into *collector.Reading) error {
	mounts, err := s.mounts()
	if err != nil {
		return err
	}
	if len(mounts) == 0 {
		return errors.New("it names no mount; every node has one")
	}
	var rbytes, wbytes, resent, failed collector.Total
	var read, write, meta opTotals
	found := false
	for _, m := range mounts {
		st, ok := m.Stats.(*procfs.MountStatsNFS)
		if !ok {
			continue
		}
		found = true
		s.rates.AddTo(&rbytes, key{kind: nfsMount, name: m.Mount, field: 0}, st.Bytes.ReadTotal)
		s.rates.AddTo(&wbytes, key{kind: nfsMount, name: m.Mount, field: 1}, st.Bytes.WriteTotal)
		for i := range st.Operations {
			op := &st.Operations[i]
			to := &meta
			switch op.Operation {
			case "READ":
				to = &read
			case "WRITE":
				to = &write
			case "NULL":
				continue
			}
			k := key{kind: nfsMount, name: m.Mount, op: op.Operation, field: 2}
			s.rates.AddTo(&to.count, k, op.Requests)
			// Some kernels let times wrap below 0.
			if ms := op.CumulativeTotalRequestMilliseconds; ms <= math.MaxInt64 {
				k.field = 3
				s.rates.AddTo(&to.millis, k, ms)
			}
			if op.Transmissions >= op.Requests {
				k.field = 4
				s.rates.AddTo(&resent, k, op.Transmissions-op.Requests)
			}
			k.field = 5
			s.rates.AddTo(&failed, k, op.Errors)
		}
	}
	if !found {
		return errNoNFS
	}
	into.AddTotal(collector.ReadBytes, &rbytes)
	into.AddTotal(collector.WriteBytes, &wbytes)
	into.AddTotal(collector.Retransmits, &resent)
	into.AddTotal(collector.Errors, &failed)
	read.add(into, collector.ReadOps, collector.ClientRead)
	write.add(into, collector.WriteOps, collector.ClientWrite)
	meta.add(into, collector.MetaOps, collector.ClientMeta)
	return nil
}

func (t *opTotals) add(into *collector.Reading, ops, mean collector.Metric) {
	into.AddTotal(ops, &t.count)
	n, ok1 := t.count.Value()
	ms, ok2 := t.millis.Value()
	if ok1 && ok2 && n > 0 {
		into.Add(mean, ms/n/1000)
	}
}

// mounts reads this process's mounts, or, where proc is another PID namespace's, the first one's.
func (s *Source) mounts() ([]*procfs.Mount, error) {
	proc, err := procfs.NewFS(s.opt.Root)
	if err != nil {
		return nil, err
	}
	self, err := proc.Self()
	if err != nil {
		if self, err = proc.Proc(1); err != nil {
			return nil, fs.ErrNotExist
		}
	}
	return self.MountStats()
}

// nfsServer reads net/rpc/nfsd. Its byte counters are 32 bits wide on old kernels.
func (s *Source) nfsServer(into *collector.Reading) error {
	root, err := nfs.NewFS(s.opt.Root)
	if err != nil {
		return fs.ErrNotExist
	}
	st, err := root.ServerRPCStats()
	if err != nil {
		return err
	}
	var rbytes, wbytes, reads, writes, meta collector.Total
	s.rates32.AddTo(&rbytes, key{kind: nfsServer, field: 0}, st.InputOutput.Read)
	s.rates32.AddTo(&wbytes, key{kind: nfsServer, field: 1}, st.InputOutput.Write)
	v3, v4 := &st.V3Stats, &st.V4Ops
	s.rates.AddTo(&reads, key{kind: nfsServer, field: 2}, v3.Read+v4.Read)
	s.rates.AddTo(&writes, key{kind: nfsServer, field: 3}, v3.Write+v4.Write)
	s.rates.AddTo(&meta, key{kind: nfsServer, field: 4}, metaOps(v3, v4))
	into.AddTotal(collector.ReadBytes, &rbytes)
	into.AddTotal(collector.WriteBytes, &wbytes)
	into.AddTotal(collector.ReadOps, &reads)
	into.AddTotal(collector.WriteOps, &writes)
	into.AddTotal(collector.MetaOps, &meta)
	if n := st.Threads.Threads; n > 0 {
		into.Add(collector.Threads, float64(n))
	}
	return nil
}

// metaOps sums the operations that ask something of the file system besides data; version 4's
// bookkeeping of file handles and clients is none.
func metaOps(v3 *nfs.V3Stats, v4 *nfs.V4Ops) uint64 {
	return v3.GetAttr + v3.SetAttr + v3.Lookup + v3.Access + v3.ReadLink + v3.Create + v3.MkDir + v3.SymLink +
		v3.MkNod + v3.Remove + v3.RmDir + v3.Rename + v3.Link + v3.ReadDir + v3.ReadDirPlus + v3.FsStat + v3.Commit +
		v4.Access + v4.Close + v4.Commit + v4.Create + v4.GetAttr + v4.Link + v4.Lock + v4.Locku + v4.Lookup +
		v4.Open + v4.ReadDir + v4.ReadLink + v4.Remove + v4.Rename + v4.SetAttr
}
