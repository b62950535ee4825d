package papers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
)

// overheadResults runs a program in pairs with and without collection. It waits for a link, as jobs on a real machine
// do: of one that takes all of two processors the noise is a hundred times what is asked for.
func overheadResults(ctx context.Context, l *Lab) ([]Row, error) {
	row, err := l.pairs(ctx, "4 nodes writing through one forwarder of 40 MB/s", pick(l, 40e6, 8e6),
		workload.Spec{Name: "pair", Mode: workload.FilePerProcess, BurstBytes: pick[int64](l, 16, 2) << 20})
	if err != nil {
		return nil, err
	}
	return []Row{row}, nil
}

// pairs is one program's.
func (l *Lab) pairs(ctx context.Context, what string, link float64, w workload.Spec) (_ Row, err error) {
	s, err := l.newSite(ctx, testbed.Config{Forwarders: 1, ComputeNodes: 4, LinkBytesPerSec: link},
		func(c daemon.Settings) { c.Table("dispatch")["policy"] = "avoid" })
	if err != nil {
		return Row{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	c := &contention{l, s.tb}
	var percent []float64
	for i := range pick(l, 6, 2) {
		var seconds [2]float64 // without, with; each twice
		// In the order ABBA, then BAAB, so that a machine that becomes slower or faster meanwhile is so for both.
		for _, k := range [4]int{0, 1, 1, 0} {
			with := (i + k) % 2
			signal := syscall.SIGSTOP
			if with == 1 {
				signal = syscall.SIGCONT
			}
			if err := s.tb.SignalAgents(signal); err != nil {
				return Row{}, err
			}
			time.Sleep(pick(l, 1200*time.Millisecond, 100*time.Millisecond)) // agents that go on send what they missed
			took, err := c.together(ctx, w, nodes(0, 4))
			if err != nil {
				return Row{}, err
			}
			seconds[with] += took
		}
		percent = append(percent, 100*(seconds[1]/seconds[0]-1))
		l.say("%.2f s with agents, %.2f s without: %+.2f %%", seconds[1], seconds[0], percent[i])
	}
	at, half := confidence(percent)
	return Row{
		Effect: fmt.Sprintf("I/O time with collection, more than without: %s; mean %+.2f %% +- %.2f (95 %% confidence)",
			what, at, half), Paper: "", Values: percent, Unit: " %", Bar: "mean <= 1 %",
		Why: "agents, forwarders and jobs share two processors"}, s.tb.SignalAgents(syscall.SIGCONT)
}

// confidence is the mean of some values and half the width of its 95 % interval, by Student's t.
func confidence(v []float64) (at, half float64) {
	at = mean(v)
	if len(v) < 2 {
		return at, math.Inf(1)
	}
	sum := 0.0
	for _, x := range v {
		sum += (x - at) * (x - at)
	}
	n := float64(len(v))
	// t of 95 % with 1, 2, 3 ... degrees of freedom; beyond, the normal distribution's with Cornish and Fisher's
	// first correction.
	table := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201}
	t := 1.96 + 2.37/(n-1)
	if int(n)-2 < len(table) {
		t = table[int(n)-2]
	}
	return at, t * math.Sqrt(sum/(n-1)) / math.Sqrt(n)
}
