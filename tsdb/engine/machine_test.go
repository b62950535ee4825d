package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"fairway/collector"
	"fairway/collector/topology"
)

// machineMetrics are the metrics of the benchmarks' machines.
var machineMetrics = [8]collector.Metric{
	collector.ReadBytes, collector.WriteBytes, collector.ReadOps, collector.WriteOps,
	collector.QueueLen, collector.MetaOps, collector.MetaWait, collector.ServerTime,
}

// machineStart is the first second of every machine, a multiple of an hour.
const machineStart = 1_748_736_000

// machineSize is a machine's layers and how busy its compute nodes are. A machine with compute nodes of which none
// are sent has their load on its forwarders all the same.
type machineSize struct {
	compute, forwarders, storage int
	duty                         float64 // part of the time that a job spends in I/O
	copies                       int     // how often every node is there, under other names
	onlyForwarders               bool
}

// fullSize has as many nodes as TaihuLight. Of its compute nodes seven in ten run jobs, and jobs write or read a
// twentieth of the time: a node is idle in 96 of 100 seconds.
var fullSize = machineSize{compute: 40960, forwarders: 240, storage: 288, duty: 0.05, copies: 1}

var machineSizes = map[string]machineSize{
	"full":     fullSize,
	"eighth":   {compute: 5120, forwarders: 30, storage: 36, duty: 0.05, copies: 1},
	"busy":     {compute: 5120, forwarders: 30, storage: 36, duty: 0.57, copies: 1}, // 40 % of the nodes in I/O
	"fullbusy": {compute: 5120, forwarders: 30, storage: 36, duty: 0.57, copies: 8},
	"fnday":    {compute: 40960, forwarders: 240, storage: 0, duty: 0.05, copies: 1, onlyForwarders: true},
}

// machine draws the telemetry of a machine second by second from a seed: jobs on neighbouring compute nodes that
// take turns between computing and I/O, the forwarders and storage servers that carry what they move, and a few
// operations of idle nodes. All values are integers; waits are microseconds.
type machine struct {
	size   machineSize
	secs   int
	rng    *rand.Rand
	jobs   []machineJob
	frames []collector.Frame
	first  int // of the frames of the forwarders
	second int
	stray  []int      // frames of idle nodes that did something in the second before
	server []loadedBy // forwarders, then storage servers
}

// machineJob is one job: its nodes, what one of them does in a second of I/O, and when it does.
type machineJob struct {
	from, to    int // compute nodes
	ends        int // seconds
	read, write float64
	opBytes     int64 // of one operation
	period, io  int   // seconds
	offset      int
	wasDoing    bool
}

// loadedBy is what a server carries in a second, and the state of its slowly changing waits.
type loadedBy struct {
	readBytes, writeBytes, readOps, writeOps, metaOps float64
	wait, exec                                        float64
	background                                        float64 // operations/s of nodes that are not the machine's
}

// openMachine returns one of machineSizes.
func openMachine(_ testing.TB, set string, secs int) *machine {
	m := &machine{size: machineSizes[set], secs: secs}
	add := func(role topology.Role, format string, n int) {
		for c := range m.size.copies {
			for i := range n {
				f := collector.Frame{Node: topology.NodeID(fmt.Sprintf(format, c*n+i)), Role: role}
				for _, metric := range machineMetrics {
					f.Samples = append(f.Samples, collector.Sample{Metric: metric})
				}
				m.frames = append(m.frames, f)
			}
		}
	}
	if !m.size.onlyForwarders {
		add(topology.Compute, "cn%05d", m.size.compute)
	}
	m.first = len(m.frames)
	add(topology.Forwarder, "fwd%03d", m.size.forwarders)
	add(topology.Storage, "oss%03d", m.size.storage)
	m.rewind(nil)
	return m
}

// rewind begins again with the first second.
func (m *machine) rewind(testing.TB) {
	m.rng, m.jobs, m.second, m.stray = rand.New(rand.NewPCG(1, 2)), m.jobs[:0], 0, m.stray[:0]
	for i := range m.frames {
		for k := range m.frames[i].Samples {
			m.frames[i].Samples[k].Value = 0
		}
	}
	for at := 0; at < m.size.compute; {
		n := 16 << m.rng.IntN(6) // 16 to 512 nodes
		if m.rng.Float64() < 0.7 {
			m.jobs = append(m.jobs, machineJob{from: at, to: min(at+n, m.size.compute)})
		}
		at += n
	}
	m.server = make([]loadedBy, m.size.forwarders+m.size.storage)
	for i := range m.server {
		m.server[i] = loadedBy{wait: 80, exec: 400, background: 2 + 20*m.rng.Float64()}
	}
}

// begin gives a job's nodes to a new one.
func (m *machine) begin(j *machineJob) {
	period := 60 << m.rng.IntN(5) // a checkpoint every 1 to 16 minutes
	io := max(1, int(m.size.duty*float64(period)*(0.5+m.rng.Float64())))
	*j = machineJob{from: j.from, to: j.to, ends: m.second + 600 + m.rng.IntN(6600), opBytes: 1 << (16 + m.rng.IntN(5)),
		period: period, io: min(io, period), offset: m.rng.IntN(period)}
	rate := 5 + 60*m.rng.Float64() // operations/s of a node
	if m.rng.Float64() < 0.3 {
		j.read = rate
	} else {
		j.write = rate
	}
}

// draw returns a count around a mean.
func (m *machine) draw(mean float64) float64 {
	if mean <= 0 {
		return 0
	}
	return max(0, math.Round(mean+m.rng.NormFloat64()*math.Sqrt(mean)))
}

// set writes a node's second to its frame and those of its copies.
func (m *machine) set(frame, perCopy int, v [8]float64) {
	for c := range m.size.copies {
		for k, s := range m.frames[frame+c*perCopy].Samples {
			s.Value = v[k]
			m.frames[frame+c*perCopy].Samples[k] = s
		}
	}
}

// next returns the frames of the next second; they are valid until the next call.
func (m *machine) next(testing.TB, int) []collector.Frame {
	for i := range m.server {
		s := &m.server[i]
		*s = loadedBy{wait: s.wait, exec: s.exec, background: s.background}
	}
	for i := range m.jobs {
		if m.jobs[i].ends <= m.second {
			m.begin(&m.jobs[i])
		}
		m.run(&m.jobs[i])
	}
	m.strayOperations()
	for i := range m.server {
		m.serve(i)
	}
	for i := range m.frames {
		m.frames[i].TimeMillis = (machineStart + int64(m.second)) * 1000
	}
	m.second++
	return m.frames
}

// run draws one job's second.
func (m *machine) run(j *machineJob) {
	at := (m.second + j.offset) % j.period
	doing := at < j.io
	if !doing && !j.wasDoing {
		return
	}
	opens := 0.0
	if doing && (at == 0 || at == j.io-1) {
		opens = 4 // each node opens its files at the begin and closes them at the end
	}
	if j.wasDoing = doing; m.size.onlyForwarders {
		m.runUnseen(j, opens)
		return
	}
	for n := j.from; n < j.to; n++ {
		var v [8]float64
		if doing {
			v[2], v[3] = m.draw(j.read), m.draw(j.write)
			v[0], v[1] = v[2]*float64(j.opBytes), v[3]*float64(j.opBytes)
			v[4] = float64(m.rng.IntN(3))
			v[5] = m.draw(opens)
			if v[5] > 0 {
				v[6] = float64(150 + m.rng.IntN(200))
			}
			v[7] = float64(800 + m.rng.IntN(400))
			m.carry(n*m.size.forwarders/m.size.compute, &v)
			if m.size.storage > 0 {
				m.carry(m.size.forwarders+(n+m.second)%m.size.storage, &v)
			}
		}
		m.set(n, m.size.compute, v)
	}
}

// runUnseen draws what a job's nodes move over each forwarder, where the nodes themselves are not sent.
func (m *machine) runUnseen(j *machineJob, opens float64) {
	if !j.wasDoing {
		return
	}
	for n := j.from; n < j.to; {
		forwarder := n * m.size.forwarders / m.size.compute
		next := min(j.to, ((forwarder+1)*m.size.compute+m.size.forwarders-1)/m.size.forwarders)
		nodes := float64(next - n)
		v := [8]float64{2: m.draw(nodes * j.read), 3: m.draw(nodes * j.write), 5: m.draw(nodes * opens)}
		v[0], v[1] = v[2]*float64(j.opBytes), v[3]*float64(j.opBytes)
		m.carry(forwarder, &v)
		n = next
	}
}

// carry adds a node's second to a server's.
func (m *machine) carry(server int, v *[8]float64) {
	s := &m.server[server]
	s.readBytes, s.writeBytes = s.readBytes+v[0], s.writeBytes+v[1]
	s.readOps, s.writeOps, s.metaOps = s.readOps+v[2], s.writeOps+v[3], s.metaOps+v[5]
}

// strayOperations are what a few idle nodes do, such as a daemon that looks at a file.
func (m *machine) strayOperations() {
	if m.size.onlyForwarders {
		return
	}
	for _, n := range m.stray {
		m.set(n, m.size.compute, [8]float64{})
	}
	m.stray = m.stray[:0]
	for range m.size.compute / 500 {
		if n := m.rng.IntN(m.size.compute); m.frames[n].Samples[7].Value == 0 {
			m.set(n, m.size.compute, [8]float64{4096, 0, 1, 0, 0, 1, float64(150 + m.rng.IntN(200)), 500})
			m.stray = append(m.stray, n)
		}
	}
}

// serve draws a forwarder's or a storage server's second.
func (m *machine) serve(i int) {
	s := &m.server[i]
	if m.rng.IntN(120) == 0 {
		s.background = 2 + 20*m.rng.Float64()
	}
	reads, writes := m.draw(s.background), m.draw(s.background/4)
	ops := s.readOps + s.writeOps + reads + writes
	s.wait += 0.2*(80+ops/10-s.wait) + 4*m.rng.NormFloat64()
	s.exec += 0.2*(400+ops/5-s.exec) + 10*m.rng.NormFloat64()
	frame, per := m.first+i, m.size.forwarders
	if i >= m.size.forwarders {
		frame, per = m.first+m.size.copies*m.size.forwarders+i-m.size.forwarders, m.size.storage
	}
	m.set(frame, per, [8]float64{s.readBytes + 65536*reads, s.writeBytes + 4096*writes, s.readOps + reads,
		s.writeOps + writes, m.draw(ops / 400), s.metaOps + m.draw(3), math.Round(max(10, s.wait)),
		math.Round(max(50, s.exec))})
}

// TestMachine: the benchmarks' machine is mostly idle, its forwarders carry what its compute nodes move, and it is the
// same every time.
func TestMachine(t *testing.T) {
	const secs = 300
	m := openMachine(t, "eighth", secs)
	if n := len(m.frames); n != 5120+30+36 {
		t.Fatalf("%d nodes", n)
	}
	sum := func() (moved, carried float64, busy int) {
		m.rewind(t)
		for s := range secs {
			for i, f := range m.next(t, s) {
				if f.TimeMillis != (machineStart+int64(s))*1000 {
					t.Fatalf("second %d has time %d", s, f.TimeMillis)
				}
				switch bytes := f.Samples[0].Value + f.Samples[1].Value; f.Role {
				case topology.Compute:
					if moved += bytes; f.Samples[2].Value+f.Samples[3].Value > 0 {
						busy++
					}
				case topology.Forwarder:
					carried += bytes
				}
				for k, sample := range f.Samples {
					if sample.Value != math.Trunc(sample.Value) || sample.Value < 0 {
						t.Fatalf("node %d has %g as its %s", i, sample.Value, machineMetrics[k])
					}
				}
			}
		}
		return moved, carried, busy
	}
	moved, carried, busy := sum()
	if share := float64(busy) / (5120 * secs); share < 0.01 || share > 0.1 {
		t.Errorf("%.3f of the compute nodes' seconds are busy", share)
	}
	if moved == 0 || carried < moved*0.99 || carried > moved*1.1 {
		t.Errorf("the compute nodes move %g bytes, the forwarders carry %g", moved, carried)
	}
	if again, _, _ := sum(); again != moved {
		t.Errorf("drawn again the nodes move %g bytes, before %g", again, moved)
	}
}
