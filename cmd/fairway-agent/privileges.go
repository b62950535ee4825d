package main

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"fairway/collector/source/routes"
)

// need is a capability (capabilities(7)) that a setting cannot do without. Root's files need none: they are
// root's to read.
type need struct {
	cap cap.Value
	by  string // the setting
}

// needs are those of this node's settings; most nodes have none.
func (c *Config) needs() []need {
	var out []need
	if s := c.Source.Diod; s.Enabled && s.PIDFile != "" {
		out = append(out, need{cap.SYS_PTRACE, "source.diod.pid_file"}) // /proc/PID/io of another user's diod
	}
	if s := c.Source.LWFS; s.Enabled && othersAlone(s.Trace) {
		out = append(out, need{cap.DAC_READ_SEARCH, "source.lwfs.trace"})
	}
	if c.Source.LNet.Enabled || c.Routes.By == routes.LNet {
		out = append(out, need{cap.NET_ADMIN, "source.lnet"}) // lnetctl's counts of each peer
	}
	if c.TBF.RPCsPerSecond > 0 {
		out = append(out, need{cap.SYS_ADMIN, "tbf.rpcs_per_second"}) // lctl
	}
	if !c.Orders.Enabled {
		return out
	}
	by := fmt.Sprintf("orders.by = %q", c.Orders.By)
	switch c.Orders.By {
	case byTCPProxy:
		out = append(out, need{cap.NET_BIND_SERVICE, by}) // a port below 1024
	case byLNet:
		out = append(out, need{cap.NET_ADMIN, by}, need{cap.SYS_ADMIN, by}) // lnetctl
	case byCES:
		// Addresses of the node's interfaces, and files of the users that its services run as.
		out = append(out, need{cap.NET_ADMIN, by}, need{cap.DAC_OVERRIDE, by})
	case byRemount:
		// mount(8), NFS servers that take requests of ports below 1024 alone, and who has files of a mount open.
		out = append(out, need{cap.SYS_ADMIN, by}, need{cap.NET_BIND_SERVICE, by}, need{cap.SYS_PTRACE, by},
			need{cap.DAC_READ_SEARCH, by})
	}
	return out
}

// othersAlone says whether a file is another user's, and neither root's nor everybody's to read.
func othersAlone(path string) bool {
	const everybody = 0o004
	info, err := os.Stat(path)
	if err != nil {
		return false // it is not there yet, or cannot be looked for either way
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && owner.Uid != 0 && owner.Gid != 0 && info.Mode().Perm()&everybody == 0
}

// dropPrivileges gives up every capability that no setting needs, for this process and those that it starts. An agent
// without capabilities, as under another user, has nothing to give up.
func dropPrivileges(c *Config, log *slog.Logger) error {
	had := cap.GetProc()
	keep := cap.NewSet()
	var kept []string
	for _, n := range c.needs() {
		if ok, err := had.GetFlag(cap.Permitted, n.cap); err != nil || !ok {
			log.Warn("a capability is missing", "capability", n.cap, "for", n.by, "do",
				"name it in CapabilityBoundingSet= of a drop-in: systemctl edit fairway-agent")
			continue
		}
		if err := keep.SetFlag(cap.Permitted, true, n.cap); err != nil {
			return fmt.Errorf("capability %v: %w", n.cap, err)
		}
		kept = append(kept, fmt.Sprintf("%v (%s)", n.cap, n.by))
	}
	if err := keep.Fill(cap.Effective, cap.Permitted); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if err := bound(keep, had); err != nil {
		return err
	}
	if err := keep.SetProc(); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	if len(kept) == 0 {
		kept = []string{"none"}
	}
	log.Info("capabilities kept", "kept", strings.Join(slices.Compact(kept), ", "))
	return nil
}

// bound keeps programs that root's agent starts from getting back what the agent gave up. Only who may set
// capabilities may lower the bound; who may not has been bounded by whoever started the agent.
func bound(keep, had *cap.Set) error {
	if may, err := had.GetFlag(cap.Effective, cap.SETPCAP); err != nil || !may {
		return nil
	}
	for v := cap.Value(0); v < cap.MaxBits(); v++ {
		if ok, err := keep.GetFlag(cap.Permitted, v); err == nil && ok {
			continue
		}
		if err := cap.DropBound(v); err != nil {
			return fmt.Errorf("give up capability %v for programs: %w", v, err)
		}
	}
	return nil
}
