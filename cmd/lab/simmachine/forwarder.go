package simmachine

import (
	"math"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// Service times of one request by one thread of a healthy forwarder over a healthy back end.
const (
	baseExec    = 0.4e-3 // s, of any data request
	threadBytes = 600e6  // bytes/s, one thread's streaming
	metaExec    = 0.25e-3
	// lockFactor is how much longer requests to one shared file hold a thread (N-1 mode), where Habits.LockHold is 0.
	lockFactor = 6
	// depth is how many requests a client keeps outstanding.
	depth = 2
)

// demand is what a second's jobs want of one forwarder.
type demand struct {
	read, write, meta float64 // bytes, bytes, operations
	readOps, writeOps float64
	// readHold and writeHold are thread seconds the requests would hold at a factor of 1.
	readHold, writeHold float64
	clients             float64
	byJob               []jobDemand
}

type jobDemand struct {
	j           *job
	read, write float64
}

func (d *demand) reset() { *d = demand{byJob: d.byJob[:0]} }

// hold is for how long a request of a program holds a thread of a healthy forwarder, seconds.
func (c *Config) hold(a *app) float64 {
	exec := baseExec + a.request/threadBytes*a.backCost
	switch {
	case a.mode != topology.ModeN1:
		return exec
	case c.LockHold > 0:
		return exec + c.LockHold
	}
	return exec * lockFactor
}

// add puts the wish of each of n nodes down, whose requests hold a thread for so many seconds. A job's nodes come one
// after the other.
func (d *demand) add(j *job, w wish, n, exec float64) {
	w = wish{n * w.read, n * w.write, n * w.meta}
	d.read += w.read
	d.write += w.write
	d.meta += w.meta
	d.readOps += w.read / j.app.request
	d.writeOps += w.write / j.app.request
	d.readHold += w.read / j.app.request * exec
	d.writeHold += w.write / j.app.request * exec
	d.clients += n
	if k := len(d.byJob); k > 0 && d.byJob[k-1].j == j {
		d.byJob[k-1].read += w.read
		d.byJob[k-1].write += w.write
		return
	}
	d.byJob = append(d.byJob, jobDemand{j, w.read, w.write})
}

// forwarder is one forwarding node and its last second.
type forwarder struct {
	id topology.ForwarderID
	served
	clients  int
	slow     bool
	slowFrom time.Time

	samples []collector.Sample
	shares  []collector.JobSamples
	bytes   []collector.Sample // backing of shares
}

// served is what a forwarder did in a second; times are of one operation, in seconds.
type served struct {
	// granted is the share of each wish that was served, 0..1.
	granted wish

	read, write, readOps, writeOps, metaOps float64
	readWait, writeWait, metaWait           float64
	readExec, writeExec, metaExec           float64
	queue, metaQueue, busy                  float64
}

// serve lives through one second: metadata first, then data as far as threads and bandwidth go.
// Waiting follows Little's law on the requests that clients keep outstanding.
func (f *forwarder) serve(m *Machine, d *demand) {
	threads, times := float64(m.cfg.Threads), f.times(m.now)
	f.metaExec = metaExec * times * m.slowdown
	f.granted = wish{1, 1, 1}
	metaBusy := d.meta * f.metaExec
	if metaBusy > threads {
		f.granted.meta = threads / metaBusy
		metaBusy = threads
	}
	f.metaOps = d.meta * f.granted.meta
	hold := d.readHold*times*m.slowdown + d.writeHold*times*m.slowdown
	left := math.Max(threads-metaBusy, 0.05*threads)
	share := 1.0
	if hold > left {
		share = left / hold
	}
	if limit := m.cfg.ForwarderBytesPerSec * (1 / times); (d.read+d.write)*share > limit {
		share = limit / (d.read + d.write)
	}
	f.granted.read, f.granted.write = share, share
	f.read, f.write = d.read*share, d.write*share
	f.readOps, f.writeOps = d.readOps*share, d.writeOps*share
	f.readExec = per(d.readHold, d.readOps) * times * m.slowdown
	f.writeExec = per(d.writeHold, d.writeOps) * times * m.slowdown
	f.busy = math.Min(hold*share+metaBusy, threads)
	f.wait(d, threads, metaBusy)
}

// wait derives queues from what clients keep outstanding beyond the requests in service.
func (f *forwarder) wait(d *demand, threads, metaBusy float64) {
	f.queue, f.metaQueue, f.readWait, f.writeWait, f.metaWait = 0, 0, 0, 0, 0
	ops := f.readOps + f.writeOps
	if ops > 0 {
		outstanding := d.clients * depth
		if f.granted.read < 1 {
			f.queue = math.Max(outstanding-f.busy, 0)
		} else { // an open queue of as many servers as threads (Sakasegawa's approximation)
			rho := math.Min(f.busy/threads, 0.99)
			f.queue = math.Pow(rho, math.Sqrt(2*(threads+1))) / (1 - rho)
		}
		f.readWait = f.queue / ops
		f.writeWait = f.readWait
	}
	if f.metaOps > 0 {
		rho := math.Min(metaBusy/threads, 0.99)
		f.metaQueue = math.Pow(rho, math.Sqrt(2*(threads+1))) / (1 - rho)
		if f.granted.meta < 1 {
			f.metaQueue = d.meta * (1 - f.granted.meta) / 4
		}
		// Priority skips the queue, not the request in service.
		f.metaWait = f.metaQueue/f.metaOps + f.busy/threads*per(f.readExec+f.writeExec, 2)/threads
	}
	f.queue += f.metaQueue
}

func per(a, n float64) float64 {
	if n == 0 {
		return 0
	}
	return a / n
}
