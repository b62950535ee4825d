// Package mount reads the remappable mount's own counters on a compute node: what the node's
// programs read, wrote and waited for, in total and for each job, and which forwarder served it.
//
// It fills read_bytes, write_bytes, read_ops, write_ops, meta_ops, errors, client_read, client_write
// and client_meta, in_flight, meta_in_flight and request_age, path_loss_ratio, each job's share of them, how many files
// the job moved much of and the least of them, and the node's route. One tick is one request on a unix socket, about
// 0.1 ms of CPU.
package mount

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"fairway/collector/topology"
)

// Buckets is the number of latency buckets: bucket i holds operations that took less than 2^i
// microseconds (and at least half of that), the last one everything longer.
const Buckets = 26

// Op is what is counted of one kind of operation since the mount started.
type Op struct {
	Count  uint64          `json:"count"`
	Errors uint64          `json:"errors,omitempty"` // answered with an errno other than ENOENT
	Bytes  uint64          `json:"bytes,omitempty"`
	Nanos  uint64          `json:"nanos"` // total time as the program saw it
	Hist   [Buckets]uint64 `json:"hist"`
	// UnderWay is what has no answer yet; it is in none of the sums above.
	UnderWay UnderWay `json:"under_way,omitzero"`
}

// UnderWay are operations that wait for their answer.
type UnderWay struct {
	Count  uint64 `json:"count"`
	Nanos  uint64 `json:"nanos"`  // that they have waited so far, together
	Oldest uint64 `json:"oldest"` // nanoseconds that the oldest has waited
}

// Add counts one more that has waited so long.
func (u *UnderWay) Add(waited time.Duration) {
	u.Count++
	u.Nanos += uint64(waited)
	u.Oldest = max(u.Oldest, uint64(waited))
}

// Share is what is counted of one job.
type Share struct {
	Read  Op `json:"read"`
	Write Op `json:"write"`
	Meta  Op `json:"meta"`
	// The files that the job moved much of, so far.
	ReadFiles    Files `json:"read_files,omitzero"`
	WrittenFiles Files `json:"written_files,omitzero"`
}

// Files says in two numbers which files a job uses on a node, so that those of many nodes can be
// compared: nodes that share a file have the same least one, nodes with files of their own have not.
type Files struct {
	Count uint64 `json:"count"` // different files, at most 1024
	Least uint64 `json:"least"` // least HashFile of them; 0: none
}

// BigFile is what must go through one open file, bytes, for it to count: a log line does not make a
// mode of I/O.
const BigFile = 1 << 20

// HashFile spreads a file's number over 52 bits (the finaliser of SplitMix64), so that the least of
// several is a random one of them; a float64 holds it exactly. It is never 0.
func HashFile(number uint64) uint64 {
	h := number + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return (h^h>>31)>>12 | 1
}

// Report is everything a mount says of itself; counters are cumulative since Started.
type Report struct {
	MountPoint string               `json:"mount_point"`
	Forwarder  topology.ForwarderID `json:"forwarder"`
	Addr       string               `json:"addr"`
	// Generation counts remaps since the mount started, beginning with 1.
	Generation uint64    `json:"generation"`
	Started    time.Time `json:"started"`
	// CountsUnderWay says that the operations show what is under way; mounts of before did not.
	CountsUnderWay bool `json:"counts_under_way,omitempty"`
	// Connected is false while the forwarder does not answer and operations wait.
	Connected bool `json:"connected"`
	OpenFiles int  `json:"open_files"`
	Waiting   int  `json:"waiting"` // operations in flight
	// Path is what the kernel counts of the connection to the forwarder; it begins anew with each.
	Path Path `json:"path,omitzero"`
	// Ops is by operation: read, write, and each metadata operation.
	Ops map[string]Op `json:"ops"`
	// Jobs holds the jobs seen in the last hour; "" is everything without a job.
	Jobs map[topology.JobID]Share `json:"jobs,omitempty"`
}

// Path is what the kernel counts of a TCP connection, in segments that carry data.
type Path struct {
	Connection uint64 `json:"connection"` // the Nth of the mount since its start, from 1; 0: not counted
	Sent       uint64 `json:"sent"`
	Resent     uint64 `json:"resent"` // of these: sent again
	Received   uint64 `json:"received"`
	Disordered uint64 `json:"disordered"` // of these: came before something sent earlier
}

// Request is one line on the control socket.
type Request struct {
	// Op is "stats", "remap" (drain first) or "force" (cut the old forwarder off).
	Op        string               `json:"op"`
	Addr      string               `json:"addr,omitempty"` // HOST:PORT, for remap and force
	Forwarder topology.ForwarderID `json:"forwarder,omitempty"`
}

// Response answers a Request.
type Response struct {
	Error  string `json:"error,omitempty"`
	Report Report `json:"report"`
	// Changed is false where the mount was there already.
	Changed bool `json:"changed,omitempty"`
	// LostFiles counts open files that could not be opened again at the new forwarder (removed while
	// open); their I/O fails with ESTALE.
	LostFiles int           `json:"lost_files,omitempty"`
	Took      time.Duration `json:"took_ns,omitempty"`
}

// maxResponse bounds a line on the control socket.
const maxResponse = 16 << 20

// Ask sends one request to a mount's control socket. A refusal is an error that says why.
func Ask(ctx context.Context, socket string, q Request) (Response, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return Response{}, fmt.Errorf("mount control socket: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return Response{}, fmt.Errorf("mount control socket %s: %w", socket, err)
	}
	var r Response
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 64<<10), maxResponse)
	if !lines.Scan() {
		return Response{}, fmt.Errorf("mount control socket %s: no answer: %w", socket,
			errors.Join(lines.Err(), context.Cause(ctx)))
	}
	if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
		return Response{}, fmt.Errorf("mount control socket %s: answer: %w", socket, err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("mount %s: %s", r.Report.MountPoint, r.Error)
	}
	return r, nil
}
