// Package swarm measures what agents cost a daemon: each is a real connection, with the agent's own sending code,
// frames and orders; only the sources and the spool's disk are left out. CPU and memory are the kernel's figures.
package swarm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"fairway/collector"
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
	// perPart is how many agents a process has: each takes a file, a port and some goroutines.
	perPart = 4000
	// settle is how long everything goes on before the measuring begins.
	settle = 15 * time.Second
	// connectWithin bounds how long all agents may take to connect.
	connectWithin = 10 * time.Minute
	// late is the time to the acknowledgement from which a second is late.
	late = 5 * time.Second
)

// PartCommand is the hidden command of this program that runs a Part, given as JSON.
const PartCommand = "swarm-part"

// child is a part's process.
type child struct {
	in  io.WriteCloser
	out *json.Decoder
	cmd *exec.Cmd
}

func (c *child) ask(word string) (r Result, err error) {
	if _, err = fmt.Fprintln(c.in, word); err == nil {
		err = c.out.Decode(&r)
	}
	return r, err
}

// Run measures once and prints what it found.
func Run(ctx context.Context, o Options, out io.Writer) (err error) {
	before, err := usageOf(o.PID)
	if err != nil {
		return err
	}
	children, err := o.start(ctx)
	defer func() {
		for _, c := range children {
			_ = c.in.Close()
			err = errors.Join(err, c.cmd.Wait())
		}
	}()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := connectAll(ctx, children, o.Agents); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d agents connected after %.1f s\n", o.Agents, time.Since(began).Seconds())
	screens, stop := o.watch(ctx)
	defer stop()
	if err := pause(ctx, settle); err != nil {
		return err
	}
	for _, c := range children {
		if _, err := fmt.Fprintln(c.in, sayMeasure); err != nil {
			return err
		}
	}
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
	sum, all := Result{}, &lags{}
	for _, c := range children { // all of them end at once
		if _, err := fmt.Fprintln(c.in, sayEnd); err != nil {
			return err
		}
	}
	for _, c := range children {
		var r Result
		if err := c.out.Decode(&r); err != nil {
			return err
		}
		sum.Sent, sum.Lost, sum.Breaks = sum.Sent+r.Sent, sum.Lost+r.Lost, sum.Breaks+r.Breaks
		if sum.Err == "" {
			sum.Err = r.Err
		}
		all.merge(r.Lags)
	}
	took := last.at.Sub(first.at)
	fmt.Fprintf(out, "daemon     %5.1f %% of a core over %.0f s, %d MB resident (at most %d), %d files\n",
		100*(last.cpu-first.cpu)/took.Seconds(), took.Seconds(), last.resident>>20, last.peak>>20, last.files)
	fmt.Fprintf(out, "node-second %4.1f us\nconnection %5.1f kB\n",
		1e6*(last.cpu-first.cpu)/(float64(o.Agents)*took.Seconds()),
		float64(last.resident-before.resident)/float64(o.Agents)/1000)
	fmt.Fprintf(out, "seconds    %d sent, %d lost, %d late (over %s), %d connections lost\n", sum.Sent, sum.Lost,
		all.above(late), late, sum.Breaks)
	fmt.Fprintf(out, "to the acknowledgement  median %s, p99 %s, all %s\n", all.quantile(0.5), all.quantile(0.99),
		all.quantile(1))
	if o.Watchers > 0 {
		fmt.Fprintf(out, "counter to screen       median %s, p99 %s, all %s\n", screens.quantile(0.5),
			screens.quantile(0.99), screens.quantile(1))
	}
	if sum.Err != "" {
		fmt.Fprintf(out, "an agent says: %s\n", sum.Err)
	}
	return nil
}

// start starts the processes of the agents, each with an address of loopback of its own: an address has 28,000 ports.
func (o *Options) start(ctx context.Context) (children []*child, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for first := 0; first < o.Agents; first += perPart {
		part, err := json.Marshal(Part{First: first, Count: min(perPart, o.Agents-first), URL: o.URL, Token: o.Token,
			Spread: o.Spread, From: fmt.Sprintf("127.0.%d.1", 1+first/perPart)})
		if err != nil {
			return children, err
		}
		cmd := exec.CommandContext(ctx, self, PartCommand)
		cmd.Env = append(os.Environ(), partVariable+"="+string(part))
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		in, err := cmd.StdinPipe()
		if err != nil {
			return children, err
		}
		answers, err := cmd.StdoutPipe()
		if err != nil {
			return children, err
		}
		if err := cmd.Start(); err != nil {
			return children, err
		}
		children = append(children, &child{in: in, out: json.NewDecoder(bufio.NewReader(answers)), cmd: cmd})
	}
	return children, nil
}

// partVariable has the Part, which holds the token: a command line can be read by everybody.
const partVariable = "FAIRWAY_SWARM_PART"

// RunPart is the life of a part's process.
func RunPart(ctx context.Context, in io.Reader, out io.Writer) error {
	var p Part
	if err := json.Unmarshal([]byte(os.Getenv(partVariable)), &p); err != nil {
		return fmt.Errorf("%s is for fairway-demo swarm: %w", PartCommand, err)
	}
	return p.Run(ctx, in, out)
}

func connectAll(ctx context.Context, children []*child, want int) error {
	for until := time.Now().Add(connectWithin); ; {
		n := 0
		for _, c := range children {
			r, err := c.ask("")
			if err != nil {
				return err
			}
			n += r.Connected
		}
		if n == want {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d of %d agents connected within %s", n, want, connectWithin)
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
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
func (o *Options) watch(ctx context.Context) (*lags, func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	screens := &lags{}
	for i := range o.Watchers {
		all.Go(func() {
			c, err := client.New(o.Watch, "")
			if err != nil {
				return
			}
			defer c.Close()
			seen := map[string]int64{}
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
					if was, known := seen[string(row.ID)]; known && was != int64(*value) {
						screens.add(time.Duration(stampOf(now)-int64(*value)) * time.Millisecond)
					}
					seen[string(row.ID)] = int64(*value)
				}
			})
		})
	}
	return screens, func() { cancel(); all.Wait() }
}
