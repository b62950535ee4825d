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

	"fairway/cmd/lab/programs"
	"fairway/cmd/lab/simmachine"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// TestMain prints the table of what was attacked.
func TestMain(m *testing.M) {
	code := programs.Run(m.Run)
	if long && len(table.rows) > 0 {
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ATTACK\tIT GOT\tMEMORY MB\tCPU s\tTIME s\tOTHERS' REQUESTS ms, MEDIAN\tTIMES\tLONGEST\t"+
			"HONEST ACK ms, MEDIAN\tTIMES\tLONGEST\tFAILED")
		for _, row := range table.rows {
			fmt.Fprintln(w, row)
		}
		w.Flush()
		fmt.Printf("%d rows; others' requests took more than twice as long in %d: %s\n", len(table.rows),
			len(table.slow), strings.Join(table.slow, "; "))
	}
	os.Exit(code)
}

var table struct {
	sync.Mutex
	rows []string
	slow []string // attacks during which others waited more than twice as long as before and afterwards
}

// others are callers who mean no harm, at work since before an attack: one asks for the overview, one brings frames.
type others struct {
	s    *site
	done chan struct{}
	wait sync.WaitGroup

	mu  sync.Mutex
	had taken
}

func (s *site) others(t *testing.T) *others {
	t.Helper()
	o := &others{s: s, done: make(chan struct{})}
	honest := s.agent(t, manySecret, "cn2", topology.Compute)
	o.every(50*time.Millisecond, func() {
		begun := time.Now()
		a := s.askLocal("GET", "/api/v1/overview", "")
		o.note(&o.had.requests, time.Since(begun), a.code == 200, a.body)
	})
	o.every(100*time.Millisecond, func() {
		begun := time.Now()
		m, err := honest.send(frames("cn2", topology.Compute, time.Now().UnixMilli()), 30*time.Second)
		_, ok := m.(wire.Ack)
		o.note(&o.had.acks, time.Since(begun), ok, fmt.Sprint(m, err))
	})
	o.every(20*time.Millisecond, func() {
		rss := s.status("VmRSS")
		o.mu.Lock()
		defer o.mu.Unlock()
		o.had.peak = max(o.had.peak, rss)
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
		o.had.failed++
		o.had.why = why
	}
}

// taken is what others had since it was taken last.
type taken struct {
	requests, acks []time.Duration
	failed         int
	why            string
	peak           int64
}

func (o *others) taken() (all taken) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all, o.had = o.had, taken{}
	return all
}

const mostMemory = 1.5e9

// attack runs an attack beside the others and puts what it took into the table, beside the calm before and, at full
// size, after it; do returns what it got. Nobody else may be refused, and the daemon stays in its bounds of memory.
func attack(t *testing.T, s *site, name string, do func() string) {
	t.Helper()
	o := s.others(t)
	calm := 300 * time.Millisecond
	if long {
		calm = 10 * time.Second
	}
	time.Sleep(calm)
	var before, during, after taken
	before = o.taken()
	memory, cpu, begun := s.status("VmRSS"), s.cpu(), time.Now()
	got := do()
	took := time.Since(begun)
	time.Sleep(max(calm/2-took, 0)) // what it set off
	during = o.taken()
	used := s.cpu() - cpu
	if long && !s.gone() {
		time.Sleep(calm)
		after = o.taken()
	}
	close(o.done)
	o.wait.Wait()
	requests, slow := ratio(before.requests, during.requests, after.requests)
	acks, _ := ratio(before.acks, during.acks, after.acks)
	row := fmt.Sprintf("%s\t%s\t%d -> %d\t%.1f\t%.1f\t%s\t%s\t%d", name, got, memory>>20, during.peak>>20,
		used.Seconds(), took.Seconds(), requests, acks, during.failed)
	t.Log(strings.ReplaceAll(row, "\t", " | "))
	table.Lock()
	table.rows = append(table.rows, row)
	if slow {
		table.slow = append(table.slow, name)
	}
	table.Unlock()
	if during.failed > 0 {
		t.Errorf("others were refused or not answered %d times: %s", during.failed, during.why)
	}
	if during.peak > mostMemory {
		t.Errorf("the daemon had %d MB", during.peak>>20)
	}
}

// ratio writes how long requests took before, during and after an attack, how many times as long as in the slower of
// the two calms, against the machine's other work, and the longest.
func ratio(before, during, after []time.Duration) (cells string, slow bool) {
	calm := max(median(before), median(after))
	times := "-"
	if calm > 0 && len(during) > 0 {
		r := float64(median(during)) / float64(calm)
		times, slow = fmt.Sprintf("%.1f", r), r > 2
	}
	return fmt.Sprintf("%s -> %s -> %s\t%s\t%s -> %s -> %s", millis(median(before)), millis(median(during)),
		millis(median(after)), times, millis(longest(before)), millis(longest(during)), millis(longest(after))), slow
}

func longest(d []time.Duration) time.Duration { return slices.Max(append([]time.Duration{0}, d...)) }

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)/2]
}

// millis writes a duration; none is of what was not measured.
func millis(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", d.Seconds()*1000)
}

// TestAttackNothing is the control: nobody attacks, and then somebody on this host keeps both processors busy without a
// request, as an attack's own client does.
func TestAttackNothing(t *testing.T) {
	s := newSite(t, "")
	lasts := 100 * time.Millisecond
	if long {
		lasts = 20 * time.Second
	}
	attack(t, s, "nobody", func() string { time.Sleep(lasts); return "nothing" })
	attack(t, s, "nobody, while two threads of the attacker's keep the processors busy", func() string {
		var wait sync.WaitGroup
		for range 2 {
			wait.Go(func() {
				for end := time.Now().Add(lasts); time.Now().Before(end); {
				}
			})
		}
		wait.Wait()
		return "nothing"
	})
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
