package setup

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/cmd/program"
	"fairway/collector/source/lnet"
	"fairway/collector/topology"
	"fairway/webui/access/hostuser"
)

const (
	// daemonUser is the user that the package makes and the unit names.
	daemonUser = "fairway"
	askWithin  = 10 * time.Second
)

// machine is what is asked: this one, or in tests another.
type machine struct {
	root string // holds proc, sys and etc
	// run runs a command and returns what it printed.
	run func(ctx context.Context, name string, args ...string) (string, error)
	// nameOf is the first label of an address's name; "" without one.
	nameOf   func(ctx context.Context, addr string) string
	hostname func() (string, error)
	addrs    func() []net.IP
	group    func(name string) bool
}

func thisMachine(root string) *machine {
	return &machine{root: root, hostname: os.Hostname,
		run: func(ctx context.Context, name string, args ...string) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			out, err := exec.CommandContext(ctx, name, args...).Output()
			return string(out), err
		},
		nameOf: func(ctx context.Context, addr string) string {
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			names, err := net.DefaultResolver.LookupAddr(ctx, addr)
			if err != nil || len(names) == 0 {
				return ""
			}
			name, _, _ := strings.Cut(names[0], ".")
			return name
		},
		addrs: func() (ips []net.IP) {
			all, _ := net.InterfaceAddrs()
			for _, a := range all {
				if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
					ips = append(ips, n.IP)
				}
			}
			return ips
		},
		group: func(name string) bool { _, err := hostuser.Group(name); return err == nil }}
}

// forwarder is one of the layer in question.
type forwarder struct {
	id   topology.NodeID
	addr string // HOST:PORT of its file service, or its NID
}

// site is what was found out.
type site struct {
	machine    *machine
	name       string
	compute    []topology.NodeID
	storage    []topology.NodeID
	forwarders []forwarder
	layer      *layer
	net        string // the LNet network behind the routers
	mounted    mounted
	peak       float64
	names      []string // of the daemon, for its certificate; the first is the one that agents use
	operators  string
	slurm      bool     // squeue --json answers
	slurmGroup bool     // there is a group slurm
	notes      []string // what was found, and what was not
	from       map[string]string
}

func (s *site) note(what, from, format string, args ...any) {
	if s.from == nil {
		s.from = map[string]string{}
	}
	s.from[what] = from
	s.notes = append(s.notes, fmt.Sprintf("found "+format, args...)+" ("+from+")")
}

// findNodes: compute nodes are sinfo's, or the flag's.
func (s *site) findNodes(ctx context.Context, o *initOptions) (err error) {
	from := "--compute"
	list := o.compute
	if list == "" {
		from = "sinfo"
		if list, err = s.machine.run(ctx, "sinfo", "--noheader", "--format=%N"); err != nil {
			return program.BadUsage(fmt.Errorf("init: which compute nodes there are is not known: sinfo: %w; "+
				"name them with --compute 'cn[1-512]'", err))
		}
	}
	if s.compute, err = hostList(list); err != nil {
		return program.BadUsage(fmt.Errorf("init: %s: %w", from, err))
	}
	if len(s.compute) == 0 {
		return program.BadUsage(fmt.Errorf("init: %s names no compute node; use --compute 'cn[1-512]'", from))
	}
	s.note("compute", from, "%d compute nodes", len(s.compute))
	if s.storage, err = hostList(o.storage); err != nil {
		return program.BadUsage(fmt.Errorf("init: --storage: %w", err))
	}
	return nil
}

// hostList reads host lists on lines of their own; each node counts once.
func hostList(text string) (out []topology.NodeID, err error) {
	for line := range strings.Lines(text) {
		nodes, err := topology.ParseHostList(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		out = append(out, nodes...)
	}
	return topology.Distinct(out), nil
}

// mounted is a file system of this host that comes through a forwarder.
type mounted struct{ kind, point, server string }

// findForwarders: LNet's routes, then mounted file systems, or the flag's.
func (s *site) findForwarders(ctx context.Context, o *initOptions) error {
	routers, behind, err := s.routers(ctx)
	if err != nil {
		return err
	}
	mounts := s.mounts()
	s.net = cmp.Or(o.net, behind)
	if i := slices.IndexFunc(mounts, func(m mounted) bool {
		return s.layer == nil ||
			m.kind == s.layer.mount
	}); i >= 0 {
		s.mounted = mounts[i]
	}
	switch {
	case s.layer != nil:
	case len(routers) > 0:
		s.layer = layerNamed("lnet")
	case s.mounted.kind == "nfs":
		s.layer = layerNamed("nfs")
	case s.mounted.kind == "9p":
		s.layer = layerNamed("diod")
	default:
		return program.BadUsage(fmt.Errorf("init: this host shows no forwarding layer: no LNet route, no NFS or 9P "+
			"mount below %s; say --layer (%s) and --forwarders", s.machine.root, layerNames()))
	}
	from := "--forwarders"
	switch {
	case o.forwarders != "":
		if s.forwarders, err = s.layer.parseForwarders(o.forwarders); err != nil {
			return program.BadUsage(fmt.Errorf("init: --forwarders: %w", err))
		}
	case s.layer.name == "lnet":
		from = "LNet's routes"
		for _, r := range routers {
			if r.id == "" {
				return program.BadUsage(fmt.Errorf("init: the router %s has no name; name the routers with "+
					"--forwarders NAME=NID,NAME=NID", r.addr))
			}
		}
		s.forwarders = routers
	default:
		from = "mounts"
		for _, m := range mounts {
			name, _, _ := strings.Cut(m.server, ".")
			if net.ParseIP(m.server) != nil {
				name = s.machine.nameOf(ctx, m.server)
			}
			f := forwarder{id: topology.NodeID(name), addr: s.layer.addrOf(m.server)}
			if m.kind == s.layer.mount && name != "" && !slices.Contains(s.forwarders, f) {
				s.forwarders = append(s.forwarders, f)
			}
		}
	}
	if len(s.forwarders) == 0 {
		return program.BadUsage(errors.New("init: which forwarders there are is not known; name them with " +
			"--forwarders 'fwd[1-4]'"))
	}
	if s.layer.name == "lnet" && s.net == "" {
		return program.BadUsage(errors.New("init: this host has no LNet route, so the network behind the routers is " +
			"not known; name it with --net, such as --net tcp1"))
	}
	s.note("forwarders", from, "%d forwarders of the layer %s", len(s.forwarders), s.layer.name)
	return s.distinct()
}

// distinct refuses a node in two layers.
func (s *site) distinct() error {
	seen := map[topology.NodeID]string{}
	for _, l := range s.layers() {
		for _, n := range l.nodes {
			if was := seen[n]; was != "" {
				return program.BadUsage(fmt.Errorf("init: node %s is listed as %s and as %s; name it once", n, was,
					l.role))
			}
			seen[n] = l.role
		}
	}
	return nil
}

// routers are those of this host's LNet, with their names where their addresses have one.
func (s *site) routers(ctx context.Context) (out []forwarder, behind string, err error) {
	for _, dir := range []string{"sys/kernel/debug/lnet", "proc/sys/lnet"} {
		path := filepath.Join(s.machine.root, dir, "routes")
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, routes, err := lnet.ParseRoutes(b)
		if err != nil {
			return nil, "", fmt.Errorf("init: %s: %w", path, err)
		}
		for _, r := range routes {
			behind = cmp.Or(behind, r.Net)
			addr, _, _ := strings.Cut(r.Router, "@")
			f := forwarder{id: topology.NodeID(s.machine.nameOf(ctx, addr)), addr: r.Router}
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
		return out, behind, nil
	}
	return nil, "", nil
}

// mounts are the NFS and 9P mounts of this host.
func (s *site) mounts() (out []mounted) {
	b, err := os.ReadFile(filepath.Join(s.machine.root, "proc/self/mounts"))
	if err != nil {
		return nil
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 4 {
			continue
		}
		m := mounted{kind: f[2], point: f[1]}
		m.server, _, _ = strings.Cut(f[0], ":")
		if m.kind == "nfs4" {
			m.kind = "nfs"
		}
		for _, opt := range strings.Split(f[3], ",") {
			if addr, ok := strings.CutPrefix(opt, "addr="); ok && m.kind == "nfs" {
				m.server = addr
			}
		}
		if m.kind == "nfs" || m.kind == "9p" && strings.Contains(f[3], "trans=tcp") {
			out = append(out, m)
		}
	}
	return out
}

// findPeak: the fastest link of this host stands for a forwarder's.
func (s *site) findPeak(o *initOptions) {
	if s.peak = o.peak; s.peak > 0 {
		s.note("peak", "--peak", "the peak of a forwarder, %.3g bytes/s", s.peak)
		return
	}
	link := ""
	speeds, _ := filepath.Glob(filepath.Join(s.machine.root, "sys/class/net/*/speed"))
	for _, path := range speeds {
		// Only a link with a device is a real one.
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "device")); err != nil {
			continue
		}
		if v := number(path) * 1e6 / 8; v > s.peak {
			s.peak, link = v, filepath.Base(filepath.Dir(path))
		}
	}
	rates, _ := filepath.Glob(filepath.Join(s.machine.root, "sys/class/infiniband/*/ports/*/rate"))
	for _, path := range rates {
		if v := number(path) * 1e9 / 8; v > s.peak {
			s.peak, link = v, filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(path))))
		}
	}
	if s.peak > 0 {
		s.note("peak", "link "+link+" of this host", "the peak of a forwarder, %.3g bytes/s", s.peak)
		return
	}
	s.notes = append(s.notes, "not found: the peak of a forwarder; until forwarder.peak_bytes_per_sec is set no "+
		"forwarder is called busy or idle")
}

// number is the first word of a file, 0 where it is not a number above 0.
func number(path string) float64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	word, _, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	v, err := strconv.ParseFloat(word, 64)
	if err != nil || v <= 0 {
		return 0
	}
	return v
}

// findNames: how the daemon is reached. The certificate is for all of this host's names and addresses.
func (s *site) findNames(ctx context.Context, o *initOptions) {
	host, err := s.machine.hostname()
	if err != nil {
		host = "localhost"
	}
	s.names = []string{cmp.Or(o.address, host), host, "localhost", "127.0.0.1", "::1"}
	for _, ip := range s.machine.addrs() {
		s.names = append(s.names, ip.String())
	}
	short, _, _ := strings.Cut(host, ".")
	s.name = cmp.Or(o.name, short)
	if text, err := s.machine.run(ctx, "scontrol", "show", "config"); err == nil && o.name == "" {
		for line := range strings.Lines(text) {
			if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == "ClusterName" {
				s.name = strings.TrimSpace(value)
			}
		}
	}
	s.names = topology.Distinct(s.names)
}

// findGroups: who can become root may be an operator without getting more.
func (s *site) findGroups(o *initOptions) {
	s.slurmGroup = s.machine.group("slurm")
	if s.operators = o.operators; s.operators != "" {
		s.note("operators", "--operators", "the operators' group %s", s.operators)
		return
	}
	for _, g := range []string{"wheel", "sudo"} {
		if s.machine.group(g) {
			s.operators = g
			s.note("operators", "its members can become root as well", "the operators' group %s", g)
			return
		}
	}
}

// findJobs: the batch system, if it answers.
func (s *site) findJobs(ctx context.Context) {
	if _, err := s.machine.run(ctx, "squeue", "--json"); err == nil {
		s.slurm = true
		s.note("slurm", "squeue --json answers", "Slurm's list of jobs")
	}
}

// giveTo gives a file to a user, where root has made it and there is such a user.
func giveTo(name, path string) error {
	u, err := hostuser.User(name)
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// patternOf is a pattern that all names fit, as narrow as their common beginning.
func patternOf(nodes []topology.NodeID) string {
	if len(nodes) == 0 {
		return "*"
	}
	prefix := string(nodes[0])
	for _, n := range nodes[1:] {
		for !strings.HasPrefix(string(n), prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	if len(nodes) > 1 {
		prefix = strings.TrimRight(prefix, "0123456789")
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(prefix) + "*"
}
