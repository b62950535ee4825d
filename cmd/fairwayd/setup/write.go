package setup

import (
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/program"
	"fairway/collector/topology"
)

// layer is a kind of forwarding layer: what its nodes' agents read, and how they are moved. docs/layers.md says why.
type layer struct {
	name  string
	mount string // kind of the file system that compute nodes have mounted; "" where that shows nothing
	port  string // of a forwarder's file service that the daemon and mounts dial; "" where none does
	// sources of the agents, by role; lines of TOML.
	forwarder, compute, storage string
	// orders is how a compute node's agent changes its forwarder; "" where it cannot.
	orders string
	// routes is how it observes which one it uses; "" where forwarders or the mount report it, or a path is missing.
	routes string
}

const lustreToo = "\n# Lustre's counters; only root reads what is below debugfs.\n[source.lustre]\nenabled = true\n"

var siteLayers = []layer{
	{name: "diod", mount: "9p", port: "564",
		forwarder: "# The node's diod, at the node's name; it must export ctl (-e ctl). workers is its --nwthreads.\n" +
			"[source.diod]\nenabled = true\naddr = \":564\"\n",
		compute: "# The node's fairway-mount: fairway-mount@.service has it here.\n" +
			"[source.mount]\nenabled = true\ncontrol = \"/run/fairway-mount/control\"\n",
		orders: byMount},
	{name: "ganesha", mount: "9p", port: "564",
		forwarder: "# The node's nfs-ganesha, by D-Bus; the agent must be root.\n[source.ganesha]\nenabled = true\n" +
			"# The tag of its 9P export has the agent time a getattr each second: metadata wait.\n" +
			"# addr = \":564\"\n# export = \"TAG\"\n",
		compute: "# The node's fairway-mount: fairway-mount@.service has it here.\n" +
			"[source.mount]\nenabled = true\ncontrol = \"/run/fairway-mount/control\"\n",
		storage: "[source.ganesha]\nenabled = true\n", orders: byMount},
	{name: "nfs", mount: "nfs",
		forwarder: "# The node's NFS server, disks and links.\n[source.procfs]\nenabled = true\n",
		compute:   "# The node's NFS mounts and links.\n[source.procfs]\nenabled = true\n",
		orders:    byRemount, routes: "nfs"},
	{name: "lnet",
		forwarder: "# LNet's counters, as root: it samples stats, peers and buffers.\n[source.lnet]\nenabled = true\n",
		compute:   "# LNet's counters, as root.\n[source.lnet]\nenabled = true\n" + lustreToo,
		storage:   "# LNet's counters, as root.\n[source.lnet]\nenabled = true\n" + lustreToo,
		orders:    byRoutes, routes: byRoutes},
	{name: "lustre",
		forwarder: "# The node's Lustre mounts.\n[source.lustre]\nenabled = true\n",
		storage:   "# The node's Lustre targets.\n[source.lustre]\nenabled = true\n"},
	{name: "lwfs",
		forwarder: "# The trace of the node's LWFS server: set trace to its path, then enable it.\n" +
			"[source.lwfs]\nenabled = false\ntrace = \"\"\n" + lustreToo},
	{name: "dvs",
		forwarder: "# The node's DVS server.\n[source.dvs]\nenabled = true\n" + lustreToo,
		compute:   "# The node's DVS mounts.\n[source.dvs]\nenabled = true\n", routes: "dvs"},
	{name: "gpfs",
		forwarder: "# The node's GPFS by mmpmon, as root.\n[source.gpfs]\nenabled = true\n\n" +
			"# Which addresses it has; 'by = \"ces\"' below [orders] would move them (docs/drivers.md).\n" +
			"[routes]\nby = \"addresses\"\n",
		compute: "# The node's NFS mounts and links.\n[source.procfs]\nenabled = true\n\n" +
			"# The addresses that it has mounted; the forwarders say where these are.\n[routes]\nby = \"nfs\"\n"},
}

// How compute nodes are moved, in the agents' words.
const (
	byMount   = "mount9p"
	byRemount = "remount"
	byRoutes  = "lnet"
)

func layerNames() string {
	var names []string
	for _, l := range siteLayers {
		names = append(names, l.name)
	}
	return strings.Join(names, ", ")
}

func layerNamed(name string) *layer {
	i := slices.IndexFunc(siteLayers, func(l layer) bool { return l.name == name })
	if i < 0 {
		return nil
	}
	return &siteLayers[i]
}

// addrOf is where the file service of a host is.
func (l *layer) addrOf(host string) string {
	if l.port == "" {
		return host
	}
	return host + ":" + l.port
}

// parseForwarders reads a host list whose entries may have =ADDRESS behind them.
func (l *layer) parseForwarders(text string) (out []forwarder, err error) {
	var plain []string
	for rest := text; rest != ""; {
		var entry string
		if entry, rest = topology.CutHostList(rest); strings.TrimSpace(entry) == "" {
			continue
		}
		name, addr, with := strings.Cut(strings.TrimSpace(entry), "=")
		if !with {
			plain = append(plain, entry)
			continue
		}
		if !topology.CleanName(name) || addr == "" {
			return nil, fmt.Errorf("%q: want NAME=ADDRESS", entry)
		}
		out = append(out, forwarder{topology.NodeID(name), addr})
	}
	nodes, err := hostList(strings.Join(plain, "\n"))
	for _, n := range nodes {
		out = append(out, forwarder{n, l.addrOf(string(n))})
	}
	return out, err
}

// agents are the nodes of a role, which have the same settings.
type agents struct {
	role    string
	sources string
	nodes   []topology.NodeID
}

// layers are the roles that have nodes.
func (s *site) layers() (out []agents) {
	var ids []topology.NodeID
	for _, f := range s.forwarders {
		ids = append(ids, f.id)
	}
	for _, a := range []agents{
		{topology.Forwarder.String(), s.layer.forwarder, ids},
		{topology.Compute.String(), s.layer.compute, s.compute},
		{topology.Storage.String(), s.layer.storage, s.storage},
	} {
		if len(a.nodes) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// daemonSettings is the daemon's file.
func (s *site) daemonSettings(o *initOptions, now time.Time) string {
	def := config.Default()
	tls := filepath.Join(o.dir, "tls")
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by 'fairwayd init' on %s. It has what differs from the defaults; 'fairwayd config' "+
		"prints every\n# setting with its help. The daemon reads this file at its start.\n\n",
		now.UTC().Format("2006-01-02"))
	c := []program.Chosen{{Key: "name", Value: s.name}}
	if o.state != "" {
		c = append(c, program.Chosen{Key: "state_dir", Value: o.state})
	}
	b.WriteString(program.WriteSettings(&def, c) + s.nodeList())
	host := s.names[0]
	c = []program.Chosen{
		{Key: "listen.http", Value: ":" + o.port, From: "all addresses of this host, by TLS"},
		{Key: "listen.hosts", Value: s.names, From: "names and addresses of this host"},
		{Key: "listen.tls.certificate", Value: filepath.Join(tls, "server.pem"), From: "'fairwayd certificate " + host +
			"' renews it"},
		{Key: "listen.tls.key", Value: filepath.Join(tls, "server.key")},
		{Key: "access.enrolment.secret_file", Value: filepath.Join(o.dir, "enroll.secret")},
	}
	if s.operators != "" {
		c = append(c, program.Chosen{Key: "access.groups." + s.operators, Value: "operator", From: s.from["operators"]})
	}
	if s.slurmGroup {
		c = append(c, program.Chosen{Key: "access.groups.slurm", Value: "scheduler",
			From: "for Slurm's hooks, docs/slurm.md"})
	}
	if s.peak > 0 {
		c = append(c, program.Chosen{Key: "forwarder.peak_bytes_per_sec", Value: s.peak,
			From: s.from["peak"] + "; where forwarders differ, set peak_bytes_per_sec of a node above"})
	}
	if o.orders && s.layer.orders != "" {
		c = append(c, program.Chosen{Key: "driver.kind", Value: config.DriverAgents,
			From: "the compute nodes' agents obey"})
		if s.layer.orders == byRoutes {
			c = append(c, program.Chosen{Key: "driver.drain", Value: true, From: "they obey there, too"})
		}
	}
	if s.slurm {
		c = append(c, program.Chosen{Key: "slurm.jobs", Value: []string{"squeue", "--json"}, From: s.from["slurm"]})
	}
	b.WriteString(program.WriteSettings(&def, c))
	b.WriteString(receivers(o, host))
	return b.String()
}

// nodeList has a line a node.
func (s *site) nodeList() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n# The machine's nodes: compute nodes (%s), forwarders of the layer %s (%s).\nnode = [\n",
		s.from["compute"], s.layer.name, s.from["forwarders"])
	for _, f := range s.forwarders {
		fmt.Fprintf(&b, "  {id = %q, role = \"forwarder\", addr = %q},\n", f.id, f.addr)
	}
	for _, a := range s.layers() {
		if a.role == topology.Forwarder.String() {
			continue
		}
		for _, n := range a.nodes {
			fmt.Fprintf(&b, "  {id = %q, role = %q},\n", n, a.role)
		}
	}
	b.WriteString("]\n")
	return b.String()
}

// receivers are who is called.
func receivers(o *initOptions, host string) string {
	text := ""
	if o.call.alertmanager != "" {
		text += fmt.Sprintf("\n[[alert.receiver]]\nname = \"alertmanager\"\nkind = \"alertmanager\"\nurl = %q\n",
			o.call.alertmanager)
	}
	if o.call.mailTo != "" {
		text += fmt.Sprintf("\n[[alert.receiver]]\nname = \"mail\"\nkind = \"mail\"\nserver = %q\n", o.call.mailServer)
		if config.Local(o.call.mailServer) {
			text += "tls = \"none\" # it does not leave this host\n"
		}
		text += fmt.Sprintf("from = %q\nto = [%q]\n", "fairway@"+host, o.call.mailTo)
	}
	if text == "" {
		return "\n# Nobody is called yet when a forwarder is slow: docs/alerts.md.\n"
	}
	return text
}

// agentSettings is the file of a role's agents.
func (s *site) agentSettings(o *initOptions, a agents, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by 'fairwayd init' on %s for every %s node of %s: it goes to /etc/fairway there, with\n"+
		"# ca.pem and join.token. 'fairway-agent config' prints every setting with its help, 'fairway-agent check' "+
		"tries "+
		"them.\n\n# The node's layer. Its name is the host's.\nrole = %q\n", now.UTC().Format("2006-01-02"), a.role,
		s.name,
		a.role)
	fmt.Fprintf(&b, "\n[daemon]\n# By TLS, signed by the site's own authority.\nurl = \"wss://%s\"\n"+
		"ca_file = \"/etc/fairway/ca.pem\"\n# With the join token the node gets a token of its own, once.\n"+
		"join_file = \"/etc/fairway/join.token\"\ntoken_file = \"/var/lib/fairway-agent/token\"\n",
		net.JoinHostPort(s.names[0], o.port))
	if a.sources != "" {
		b.WriteString("\n" + a.sources)
	}
	if a.role == topology.Compute.String() && s.layer.routes != "" {
		fmt.Fprintf(&b, "\n[routes]\n# Which forwarder this node uses is looked at here.\nby = %q\n",
			s.layer.routes)
		if s.layer.routes == byRoutes {
			fmt.Fprintf(&b, "net = %q\n", s.net)
		}
		b.WriteString("\n[routes.forwarders]\n" + s.addresses())
	}
	switch {
	case s.layer.orders == "":
	case a.role == topology.Compute.String():
		b.WriteString(s.orders(o.orders))
	case a.role == topology.Storage.String() && s.layer.orders == byRoutes:
		b.WriteString(s.serverOrders())
	}
	return b.String()
}

// orders is how a compute node is moved; without leave the same lines are there, switched off.
func (s *site) orders(leave bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n[orders]\n# Whether the daemon may change this node's forwarder.\nenabled = %t\nby = %q\n",
		leave,
		s.layer.orders)
	switch s.layer.orders {
	case byMount:
		var allow []string
		for _, f := range s.forwarders {
			host, _, _ := strings.Cut(f.addr, ":")
			allow = append(allow, fmt.Sprintf("%q", host))
		}
		fmt.Fprintf(&b, "# Only to these.\nallow = [%s]\n", strings.Join(allow, ", "))
		return b.String()
	case byRemount:
		fmt.Fprintf(&b, "\n[orders.remount]\npoint = %q\ntype = \"nfs\"\n", cmp.Or(s.mounted.point, "/scratch"))
	}
	what := "\n# Each forwarder in the words of the command that moves.\n"
	if s.layer.orders == byRemount {
		what = "\n# Each forwarder's address; the path and the options are those of the mount that it replaces.\n"
	}
	b.WriteString(what + "[orders.forwarders]\n" + s.addresses())
	return b.String()
}

// serverOrders is how a server steers what it sends; which NIDs the routers have on its side, no other node shows.
func (s *site) serverOrders() string {
	_, net, _ := strings.Cut(s.forwarders[0].addr, "@")
	text := fmt.Sprintf("\n[routes]\n# The clients' network.\nnet = %q\n\n[orders]\n# A server chooses the router of "+
		"what it sends. Name the routers as this node reaches them,\n# then enable it.\nenabled = false\nby = %q\n\n"+
		"[orders.forwarders]\n", net, byRoutes)
	for _, f := range s.forwarders {
		text += fmt.Sprintf("# %q = \"ADDRESS@%s\"\n", f.id, s.net)
	}
	return text
}

// rightsFile has what the unit of a role's agents needs beyond nothing.
const rightsFile = "capabilities.conf"

// rights are the capabilities of a role's agents; docs/security.md says what for.
func (s *site) rights(o *initOptions, role string) string {
	moved := o.orders && role == topology.Compute.String()
	switch {
	case s.layer.name == "lnet" && moved:
		return "CAP_NET_ADMIN CAP_SYS_ADMIN"
	case s.layer.name == "lnet":
		return "CAP_NET_ADMIN"
	case s.layer.orders == byRemount && moved:
		return "CAP_SYS_ADMIN CAP_NET_BIND_SERVICE CAP_SYS_PTRACE CAP_DAC_READ_SEARCH"
	}
	return ""
}

// addresses has a line a forwarder.
func (s *site) addresses() string {
	var b strings.Builder
	for _, f := range s.forwarders {
		fmt.Fprintf(&b, "%q = %q\n", f.id, f.addr)
	}
	return b.String()
}
