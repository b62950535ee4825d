// Package swarm measures what agents cost a daemon: each is a real connection, with the agent's own sending code,
// frames and orders; only the sources and the spool's disk are left out. CPU and memory are the kernel's figures.
package swarm

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/procfs"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/webui/api"
	"fairway/webui/client"
)

// Options are what is measured.
type Options struct {
	Agents   int
	URL      string // the daemon's, for agents
	Token    string
	PID      int           // the daemon's
	For      time.Duration // the time that is measured
	Spread   time.Duration // over which the agents' seconds are spread
	Watch    string        // address of the API, for watchers
	Watchers int           // of the live feed
}

const (
	// perAddress is how many agents connect from one address of loopback, which has 28,000 ports.
	perAddress = 20_000
	// settle is how long everything goes on before the measuring begins.
	settle = 15 * time.Second
	// connectWithin bounds how long all agents may take to connect, drainWithin how long their last seconds may take.
	connectWithin = 10 * time.Minute
	drainWithin   = 30 * time.Second
	// late is the time to the acknowledgement from which a second is late.
	late = 5 * time.Second
)

// Run measures once and prints what it found.
func Run(ctx context.Context, o Options, out io.Writer) error {
	before, err := usageOf(o.PID)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	began := time.Now()
	s := start(ctx, o)
	defer s.running.Wait()
	defer stop()
	for s.connected() < o.Agents {
		if time.Since(began) > connectWithin {
			return fmt.Errorf("%d of %d agents connected within %s", s.connected(), o.Agents, connectWithin)
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d agents connected after %.1f s\n", o.Agents, time.Since(began).Seconds())
	screens := s.watch(ctx, o)
	if err := pause(ctx, settle); err != nil {
		return err
	}
	s.measure()
	screens.begin()
	first, err := usageOf(o.PID)
	if err != nil {
		return err
	}
	if err := pause(ctx, o.For); err != nil {
		return err
	}
	last, err := usageOf(o.PID)
	if err != nil {
		return err
	}
	r := s.end(drainWithin)
	took := last.at.Sub(first.at)
	fmt.Fprintf(out, "daemon     %5.1f %% of a core over %.0f s, %d MB resident (at most %d), %d files\n",
		100*(last.cpu-first.cpu)/took.Seconds(), took.Seconds(), last.resident>>20, last.peak>>20, last.files)
	fmt.Fprintf(out, "node-second %4.1f us\nconnection %5.1f kB\n",
		1e6*(last.cpu-first.cpu)/(float64(o.Agents)*took.Seconds()),
		float64(last.resident-before.resident)/float64(o.Agents)/1000)
	fmt.Fprintf(out, "seconds    %d sent, %d lost, %d late (over %s), %d connections lost\n", r.sent, r.lost,
		s.lags.above(late), late, r.breaks)
	fmt.Fprintf(out, "to the acknowledgement  median %s, p99 %s, all %s\n", s.lags.quantile(0.5),
		s.lags.quantile(0.99), s.lags.quantile(1))
	if o.Watchers > 0 {
		fmt.Fprintf(out, "counter to screen       median %s, p99 %s, all %s\n", screens.quantile(0.5),
			screens.quantile(0.99), screens.quantile(1))
	}
	if r.err != "" {
		fmt.Fprintf(out, "an agent says: %s\n", r.err)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// usage is what the kernel says of a process.
type usage struct {
	at             time.Time
	cpu            float64 // seconds
	resident, peak int64   // bytes
	files          int
}

func usageOf(pid int) (u usage, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return u, fmt.Errorf("process %d: %w", pid, err)
	}
	u.at = time.Now()
	st, err := p.Stat()
	if err != nil {
		return u, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return u, err
	}
	u.cpu, u.resident, u.peak = st.CPUTime(), int64(st.ResidentMemory()), int64(status.VmHWM)
	u.files, err = p.FileDescriptorsLen()
	return u, err
}

// watch opens the live feed for some watchers, and has the first one measure how old what it shows is.
func (s *swarm) watch(ctx context.Context, o Options) *lags {
	screens := &lags{}
	for i := range o.Watchers {
		s.running.Go(func() {
			c, err := client.New(o.Watch, "")
			if err != nil {
				return
			}
			defer c.Close()
			seen := map[topology.ForwarderID]int64{}
			c.Watch(ctx, func(v api.Overview, err error) {
				if i > 0 || err != nil {
					return
				}
				now := time.Now()
				for f := range v.Forwarders {
					row := &v.Forwarders[f]
					value := row.Value(collector.WriteBytes)
					if value == nil {
						continue
					}
					if was, known := seen[row.ID]; known && was != int64(*value) {
						screens.add(time.Duration(stampOf(now)-int64(*value)) * time.Millisecond)
					}
					seen[row.ID] = int64(*value)
				}
			})
		})
	}
	return screens
}
