package testbed

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/BurntSushi/toml"
	"github.com/prometheus/procfs"

	"fairway/cmd/lab/leash"
	"fairway/collector/topology"
)

// Agents says how the nodes' agents reach their daemon.
type Agents struct {
	Program   string // the fairway-agent to run
	DaemonURL string // as nodes reach it
	TokenFile string // "" sends none
}

// StartAgents starts an agent on every forwarder, back end and compute node (without root: on every
// forwarder) and waits until each has opened its spool, which it does when its configuration is
// sound. Whether the daemon hears them is the daemon's to say.
func (tb *Testbed) StartAgents(ctx context.Context, a Agents) error {
	var watched []*node
	for _, m := range tb.Machine().Nodes {
		if m.Role == topology.Compute && !tb.cfg.Root {
			continue // nothing but a name
		}
		n, err := tb.find(m.ID)
		if err != nil {
			return err
		}
		watched = append(watched, n)
	}
	return eachNode(watched, func(n *node) error {
		text, err := tb.agentConfig(n, a)
		if err != nil {
			return err
		}
		file := filepath.Join(tb.NodeDir(n.id), "agent.toml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		bus := "DBUS_SYSTEM_BUS_ADDRESS=unix:path=" + tb.BusSocket(n.id)
		p, err := tb.launch(n, "fairway-agent", "env", bus, a.Program, "--config", file)
		if err != nil {
			return err
		}
		tb.mu.Lock()
		tb.agents = append(tb.agents, p)
		tb.mu.Unlock()
		return p.AwaitReady(ctx, readyWithin, func(context.Context) error {
			_, err := os.Stat(tb.spoolDir(n.id))
			return err
		})
	})
}

// SignalAgents sends every agent a signal, such as SIGSTOP to have them do nothing for a while.
func (tb *Testbed) SignalAgents(s syscall.Signal) error {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	var errs []error
	for _, p := range tb.agents {
		errs = append(errs, p.Signal(s))
	}
	return errors.Join(errs...)
}

func (tb *Testbed) spoolDir(id topology.NodeID) string { return filepath.Join(tb.NodeDir(id), "spool") }

// agentConfig is a node's configuration file.
func (tb *Testbed) agentConfig(n *node, a Agents) ([]byte, error) {
	type table = map[string]any
	_, isForwarder := tb.forwarderIndex(topology.ForwarderID(n.id))
	// the disks are the machine's
	role, sources := topology.Compute, table{"procfs": table{"skip_disks": []string{"*"}}}
	mounted := !isForwarder && !tb.isBackEnd(n.id) && tb.cfg.MountProgram != ""
	switch {
	case tb.cfg.Layer == NFS && (isForwarder || tb.isBackEnd(n.id)):
		g := table{"enabled": true}
		sources["skip_clients"] = []string{hostName}
		role = topology.Storage
		if isForwarder {
			role = topology.Forwarder
			g["addr"], g["export"] = tb.ForwarderAddr(topology.ForwarderID(n.id)), tb.Attach()
		}
		sources["ganesha"] = g
	case isForwarder:
		role = topology.Forwarder
		sources["diod"] = table{
			"enabled": true, "addr": tb.ForwarderAddr(topology.ForwarderID(n.id)), "workers": diodWorkers,
			"pid_file": tb.pidFile(n.id),
		}
		sources["uid"] = os.Geteuid()
		sources["skip_clients"] = []string{hostName, string(queueNode(topology.ForwarderID(n.id)))}
		if slices.Contains(tb.cfg.queued(), topology.ForwarderID(n.id)) {
			sources["queue"] = table{"enabled": true,
				"control": tb.QueueSocket(topology.ForwarderID(n.id))}
		}
	case mounted:
		sources["mount"] = table{"enabled": true, "control": tb.MountSocket(n.id)}
	}
	orders := table{"enabled": mounted}
	if tb.net != nil { // on loopback nothing is mounted
		orders["allow"] = []string{tb.net.subnet.String()}
	}
	var b bytes.Buffer
	err := toml.NewEncoder(&b).Encode(table{
		"node": string(n.id), "role": role.String(),
		"daemon": table{"url": a.DaemonURL, "token_file": a.TokenFile, "clear_text": true},
		"spool":  table{"dir": tb.spoolDir(n.id)},
		"orders": orders,
		"source": sources,
	})
	return b.Bytes(), err
}

// pidFile names diod's process as the node numbers it.
func (tb *Testbed) pidFile(id topology.NodeID) string {
	return filepath.Join(tb.NodeDir(id), "diod.pid")
}

// writePIDFile finds the number that a process has in its own process namespace.
func (tb *Testbed) writePIDFile(n *node, p *leash.Process) error {
	proc, err := procfs.NewProc(p.PID())
	if err != nil {
		return err
	}
	status, err := proc.NewStatus()
	if err != nil {
		return err
	}
	pid := strconv.FormatUint(status.NSpids[len(status.NSpids)-1], 10)
	return os.WriteFile(tb.pidFile(n.id), []byte(pid+"\n"), 0o644)
}
