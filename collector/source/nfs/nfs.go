// Package nfs reads what Linux counts of its NFS mounts and of its NFS server. Source procfs reports it as part of
// the node.
//
// It fills, of a client, read_bytes, write_bytes (as exchanged with the server), read_ops, write_ops, meta_ops,
// client_read, client_write, client_meta, retransmits and errors; of a server read_bytes, write_bytes, read_ops,
// write_ops, meta_ops and threads.
package nfs

import (
	"errors"
	"io/fs"
	"math"
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/nfs"

	"fairway/collector"
)

// Reader reads the counters of the node whose proc is at root. Its errors wrap fs.ErrNotExist where the node has no
// NFS mount, or no NFS server.
type Reader struct {
	root  string
	rates collector.Rates[key]
	// rates32 has the counters that some kernels keep in 32 bits.
	rates32 collector.Rates[key]
}

// key names one counter, of a mount's operation or of the server.
type key struct {
	mount, op string
	field     field
}

type field uint8

const (
	bytesRead field = iota
	bytesWritten
	requests
	millis
	sentAgain
	failed
	servedReads
	servedWrites
	servedMeta
)

// New returns a reader of the proc at root.
func New(root string) *Reader {
	r := &Reader{root: root}
	r.rates32.Wrap32 = true
	return r
}

// Begin starts a reading.
func (r *Reader) Begin(at time.Time) {
	r.rates.Begin(at)
	r.rates32.Begin(at)
}

// Resets counts the counters of this reading that went backwards.
func (r *Reader) Resets() int { return r.rates.Resets + r.rates32.Resets }

// opTotals are the sums of one class of operations.
type opTotals struct{ count, millis collector.Total }

// Client reads mountstats: per mount the bytes exchanged with the server, and per operation its
// count and the time from its queueing to its end.
func (r *Reader) Client(into *collector.Reading) error {
	mounts, err := r.mounts()
	if err != nil {
		return err
	}
	if len(mounts) == 0 {
		return errors.New("it names no mount; every node has one")
	}
	var rbytes, wbytes, again, errs collector.Total
	var read, write, meta opTotals
	found := false
	for _, m := range mounts {
		st, ok := m.Stats.(*procfs.MountStatsNFS)
		if !ok {
			continue
		}
		found = true
		r.rates.AddTo(&rbytes, key{mount: m.Mount, field: bytesRead}, st.Bytes.ReadTotal)
		r.rates.AddTo(&wbytes, key{mount: m.Mount, field: bytesWritten}, st.Bytes.WriteTotal)
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
			k := key{mount: m.Mount, op: op.Operation, field: requests}
			r.rates.AddTo(&to.count, k, op.Requests)
			// Some kernels let times wrap below 0.
			if ms := op.CumulativeTotalRequestMilliseconds; ms <= math.MaxInt64 {
				k.field = millis
				r.rates.AddTo(&to.millis, k, ms)
			}
			if op.Transmissions >= op.Requests {
				k.field = sentAgain
				r.rates.AddTo(&again, k, op.Transmissions-op.Requests)
			}
			k.field = failed
			r.rates.AddTo(&errs, k, op.Errors)
		}
	}
	if !found {
		return fs.ErrNotExist
	}
	into.AddTotal(collector.ReadBytes, &rbytes)
	into.AddTotal(collector.WriteBytes, &wbytes)
	into.AddTotal(collector.Retransmits, &again)
	into.AddTotal(collector.Errors, &errs)
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
func (r *Reader) mounts() ([]*procfs.Mount, error) {
	proc, err := procfs.NewFS(r.root)
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

// Server reads net/rpc/nfsd. Its byte counters are 32 bits wide on old kernels.
func (r *Reader) Server(into *collector.Reading) error {
	root, err := nfs.NewFS(r.root)
	if err != nil {
		return fs.ErrNotExist
	}
	st, err := root.ServerRPCStats()
	if err != nil {
		return err
	}
	var rbytes, wbytes, reads, writes, meta collector.Total
	r.rates32.AddTo(&rbytes, key{field: bytesRead}, st.InputOutput.Read)
	r.rates32.AddTo(&wbytes, key{field: bytesWritten}, st.InputOutput.Write)
	v3, v4 := &st.V3Stats, &st.V4Ops
	r.rates.AddTo(&reads, key{field: servedReads}, v3.Read+v4.Read)
	r.rates.AddTo(&writes, key{field: servedWrites}, v3.Write+v4.Write)
	r.rates.AddTo(&meta, key{field: servedMeta}, metaOps(v3, v4))
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
// bookkeeping of file handles and clients does not count.
func metaOps(v3 *nfs.V3Stats, v4 *nfs.V4Ops) uint64 {
	return v3.GetAttr + v3.SetAttr + v3.Lookup + v3.Access + v3.ReadLink + v3.Create + v3.MkDir + v3.SymLink +
		v3.MkNod + v3.Remove + v3.RmDir + v3.Rename + v3.Link + v3.ReadDir + v3.ReadDirPlus + v3.FsStat + v3.Commit +
		v4.Access + v4.Close + v4.Commit + v4.Create + v4.GetAttr + v4.Link + v4.Lock + v4.Locku + v4.Lookup +
		v4.Open + v4.ReadDir + v4.ReadLink + v4.Remove + v4.Rename + v4.SetAttr
}
