package attack

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"fairway/cmd/lab/simmachine"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// TestMain prints the table of what was attacked.
func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	if long && len(table.rows) > 0 {
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w,
			"ATTACK\tIT GOT\tMEMORY MB\tCPU s\tTIME s\tOTHERS' REQUESTS ms, MEDIAN\tLONGEST\tHONEST ACK ms, "+
				"MEDIAN\tLONGEST\tFAILED")
		for _, row := range table.rows {
			fmt.Fprintln(w, row)
		}
		w.Flush()
	}
	os.Exit(code)
}

var table struct {
	sync.Mutex
	rows []string
}

// others are callers who mean no harm, at work since before an attack: one asks for the overview, one brings frames.
type others struct {
	s    *site
	done chan struct{}
	wait sync.WaitGroup

	mu             sync.Mutex
	requests, acks []time.Duration
	failed         int
	why            string
	peak           int64
}

func (s *site) others(t *testing.T) *others {
	t.Helper()
	o := &others{s: s, done: make(chan struct{})}
	honest := s.agent(t, manySecret, "cn2", topology.Compute)
	o.every(50*time.Millisecond, func() {
		begun := time.Now()
		a := s.askLocal("GET", "/api/v1/overview", "")
		o.note(&o.requests, time.Since(begun), a.code == 200, a.body)
	})
	o.every(100*time.Millisecond, func() {
		begun := time.Now()
		m, err := honest.send(frames("cn2", topology.Compute, time.Now().UnixMilli()), 30*time.Second)
		_, ok := m.(wire.Ack)
		o.note(&o.acks, time.Since(begun), ok, fmt.Sprint(m, err))
	})
	o.every(20*time.Millisecond, func() {
		rss := s.status("VmRSS")
		o.mu.Lock()
		defer o.mu.Unlock()
		o.peak = max(o.peak, rss)
	})
	if long {
		s.fullMachine(t, o.done)
	}
	return o
}

func (o *others) every(d time.Duration, do func()) {
	o.wait.Go(func() {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-o.done:
				return
			case <-tick.C:
				do()
			}
		}
	})
}

func (o *others) note(into *[]time.Duration, took time.Duration, ok bool, why string) {
	select {
	case <-o.done:
		return // the daemon may be gone
	default:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	*into = append(*into, took)
	if !ok {
		o.failed++
		o.why = why
	}
}

// taken is what others had since it was taken last.
func (o *others) taken() (requests, acks []time.Duration, failed int, peak int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	requests, acks, failed, peak = o.requests, o.acks, o.failed, o.peak
	o.requests, o.acks, o.failed, o.peak = nil, nil, 0, 0
	return requests, acks, failed, peak
}

const mostMemory = 1.5e9

// attack runs an attack beside the others and puts what it took into the table; do returns what it got. Nobody else
// may be refused, and the daemon stays in its bounds of memory.
func attack(t *testing.T, s *site, name string, do func() string) {
	t.Helper()
	o := s.others(t)
	calm := 300 * time.Millisecond
	if long {
		calm = 10 * time.Second
	}
	time.Sleep(calm)
	beforeRequests, beforeAcks, _, _ := o.taken()
	memory, cpu, begun := s.status("VmRSS"), s.cpu(), time.Now()
	got := do()
	took := time.Since(begun)
	time.Sleep(max(calm/2-took, 0)) // what it set off
	requests, acks, failed, peak := o.taken()
	used := s.cpu() - cpu
	close(o.done)
	o.wait.Wait()
	row := fmt.Sprintf("%s\t%s\t%d -> %d\t%.1f\t%.1f\t%s -> %s\t%s -> %s\t%s -> %s\t%s -> %s\t%d", name, got,
		memory>>20, peak>>20,
		used.Seconds(), took.Seconds(), median(beforeRequests), median(requests), longest(beforeRequests),
		longest(requests),
		median(beforeAcks), median(acks), longest(beforeAcks), longest(acks), failed)
	t.Log(strings.ReplaceAll(row, "\t", " | "))
	table.Lock()
	table.rows = append(table.rows, row)
	table.Unlock()
	if failed > 0 {
		t.Errorf("others were refused or not answered %d times: %s", failed, o.why)
	}
	if peak > mostMemory {
		t.Errorf("the daemon had %d MB", peak>>20)
	}
}

func longest(d []time.Duration) string {
	if len(d) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", slices.Max(d).Seconds()*1000)
}

func median(d []time.Duration) string {
	if len(d) == 0 {
		return "-"
	}
	slices.Sort(d)
	return fmt.Sprintf("%.1f", d[len(d)/2].Seconds()*1000)
}

func frames(node topology.NodeID, role topology.Role, millis ...int64) (out []collector.Frame) {
	for _, ms := range millis {
		out = append(out, collector.Frame{Node: node, Role: role, TimeMillis: ms,
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 1e6}}})
	}
	return out
}

// bigMachine is a machine of TaihuLight's size.
func bigMachine(t *testing.T) *simmachine.Machine {
	t.Helper()
	m, err := simmachine.New(simmachine.TaihuLight(1))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fullMachine streams a machine of TaihuLight's size until done is closed.
func (s *site) fullMachine(t *testing.T, done chan struct{}) {
	t.Helper()
	const speakers = 16
	m := bigMachine(t)
	var agents []*agent
	for i := range speakers {
		agents = append(agents, s.agent(t, manySecret, topology.NodeID(fmt.Sprint("speaker", i)), topology.Compute))
	}
	s.wait.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Until(time.Now().Truncate(time.Second).Add(time.Second))):
			}
			all := m.Step(time.Now().Truncate(time.Second))
			var wait sync.WaitGroup
			for i, a := range agents {
				part := all[i*len(all)/speakers : (i+1)*len(all)/speakers]
				wait.Go(func() { _, _ = a.send(part, 30*time.Second) })
			}
			wait.Wait()
		}
	})
}
