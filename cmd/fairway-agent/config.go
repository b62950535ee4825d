package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"fairway/cmd/program"
	"fairway/collector/source/diod"
	"fairway/collector/source/routes"
	"fairway/collector/topology"
)

// Config is the agent's file. The help tags are what `fairway-agent config` prints above each setting.
type Config struct {
	Node     string        `toml:"node" help:"This node's name without domain; empty: the host's name."`
	Role     string        `toml:"role" help:"The node's layer: compute, forwarder, storage or metadata."`
	Root     string        `toml:"root" help:"The directory that holds proc and sys."`
	LogLevel program.Level `toml:"log_level" help:"debug, info, warn or error."`
	Daemon   Daemon        `toml:"daemon"`
	Spool    SpoolConfig   `toml:"spool"`
	Routes   Routes        `toml:"routes"`
	Orders   Orders        `toml:"orders"`
	TBF      TBF           `toml:"tbf"`
	Source   Sources       `toml:"source"`
}

// Routes says where this compute node's way to storage can be looked at. Looking needs no right to move.
type Routes struct {
	By     string `toml:"by" help:"Observe this node's forwarders: lnet, nfs, dvs or lwfs; on one of them: addresses."`
	Net    string `toml:"net" help:"For lnet, the file system's network, such as o2ib1; orders by lnet read it, too."`
	Volume string `toml:"volume" help:"For lwfs, the link to the volume file that is in use."`
	// Forwarders are named in the layer's own words.
	Forwarders map[string]string `toml:"forwarders" help:"By forwarder, NID, address, DVS name or volume file."`
}

// Daemon says where frames go.
type Daemon struct {
	URL       string `toml:"url" help:"ws:// or wss://HOST:PORT, or unix:///PATH; of a cluster all, with commas."`
	TokenFile string `toml:"token_file" help:"File with this agent's token; empty: no token."`
	JoinFile  string `toml:"join_file" help:"File with a join token, by which a missing token_file is made."`
	CAFile    string `toml:"ca_file" help:"Certificates (PEM) to trust for wss; empty: the system's."`

	Certificate string `toml:"certificate" help:"This node's own certificate (PEM) for wss; empty: a token."`
	Key         string `toml:"key" help:"File (0600) of the certificate's key."`
	ClearText   bool   `toml:"clear_text" help:"Whether ws:// may lead beyond this host."`
}

// SpoolConfig says where seconds wait while the daemon is away.
type SpoolConfig struct {
	Dir string `toml:"dir" help:"Directory of the spool, at most 64 MiB; without a disk below /dev/shm."`
}

// Sources are the things an agent can read, each with its own table.
type Sources struct {
	UID         uint32   `toml:"uid" help:"User number to attach as to 9P servers."`
	SkipClients []string `toml:"skip_clients" help:"Clients to leave out, such as monitors; this node always is."`

	Mount   Mount   `toml:"mount"`
	Diod    Diod    `toml:"diod"`
	Ganesha Ganesha `toml:"ganesha"`
	Queue   Queue   `toml:"queue"`
	Procfs  Procfs  `toml:"procfs"`
	Lustre  Lustre  `toml:"lustre"`
	LNet    LNet    `toml:"lnet"`
	LWFS    LWFS    `toml:"lwfs"`
	DVS     DVS     `toml:"dvs"`
	GPFS    GPFS    `toml:"gpfs"`
}

// Mount is the fairway-mount of a compute node.
type Mount struct {
	Enabled bool   `toml:"enabled" help:"Read this compute node's fairway-mount: its programs' I/O, its forwarder."`
	Control string `toml:"control" help:"The mount's control socket."`
}

// Diod is the 9P server of a forwarding node.
type Diod struct {
	Enabled bool   `toml:"enabled" help:"Read a diod: bandwidth, operations, queue, metadata wait, clients."`
	Addr    string `toml:"addr" help:"Where it listens, HOST:PORT; no HOST: this node. It must export ctl."`
	Workers int    `toml:"workers" help:"Its threads for each tree (--nwthreads), 1 to 1024."`
	PIDFile string `toml:"pid_file" help:"File with diod's process ID, for its CPU time; empty: not measured."`
}

// Ganesha is the nfs-ganesha of a gateway, or of the server behind gateways.
type Ganesha struct {
	Enabled bool   `toml:"enabled" help:"Read an nfs-ganesha by D-Bus: a gateway, or the server behind them."`
	Addr    string `toml:"addr" help:"Its 9P, HOST:PORT or :PORT; a getattr a second is timed. Empty: none."`
	Export  string `toml:"export" help:"Tag or path of the export whose root is asked."`
}

// Queue is the fairway-queue in front of a forwarding node.
type Queue struct {
	Enabled bool   `toml:"enabled" help:"Read this node's fairway-queue: clients, which diod cannot see."`
	Control string `toml:"control" help:"Control socket of the queue (fairway-queue serve --control)."`
}

// Procfs is the Linux node.
type Procfs struct {
	Enabled   bool     `toml:"enabled" help:"Read the Linux node: disks, links, I/O pressure, NFS."`
	SkipLinks []string `toml:"skip_links" help:"Patterns of links not to count: they repeat the traffic of others."`
}

// Lustre is a node that is a Lustre client, object server or metadata server.
type Lustre struct {
	Enabled bool `toml:"enabled" help:"Read Lustre's counters, of a client, object server or metadata server."`
}

// LNet is Lustre's network on this node.
type LNet struct {
	Enabled bool `toml:"enabled" help:"Read LNet's counters: traffic, drops, messages waiting for credits."`
}

// LWFS is a forwarding server of Sunway's Lightweight File System.
type LWFS struct {
	Enabled bool   `toml:"enabled" help:"Follow an LWFS server's trace: operations, queue, rough latencies."`
	Trace   string `toml:"trace" help:"The trace file."`
}

// DVS is a client or server of Cray's Data Virtualization Service.
type DVS struct {
	Enabled bool `toml:"enabled" help:"Read DVS's counts of requests, as a client or, on a forwarder, as a server."`
}

// GPFS is a node of IBM Storage Scale.
type GPFS struct {
	Enabled bool `toml:"enabled" help:"Read GPFS's counts by mmpmon, as root: a protocol node's bytes and calls."`
}

func defaultConfig() Config {
	return Config{
		Role: topology.Compute.String(), Root: "/", LogLevel: "info",
		Daemon: Daemon{URL: "unix:///run/fairway/fairwayd.sock"},
		Spool:  SpoolConfig{Dir: "/var/lib/fairway-agent/spool"},
		Routes: Routes{Forwarders: map[string]string{}},
		Orders: Orders{By: byMount9p, Proxy: ProxyOpt{Listen: "127.0.0.1:564"},
			Remount: RemountOpt{Point: "/pfs", Type: "nfs"}, Allow: []string{},
			Forwarders: map[string]string{}},
		TBF: TBF{Partitions: 1},
		Source: Sources{
			SkipClients: []string{},
			Mount:       Mount{Control: "/run/fairway-mount/control"},
			Diod:        Diod{Addr: "127.0.0.1:564", Workers: diod.DefaultWorkers},
			Queue:       Queue{Control: "/run/fairway/queue.sock"},
			Procfs: Procfs{
				Enabled:   true,
				SkipLinks: []string{"lo", "veth*", "docker*", "br-*", "virbr*", "bond*", "ifb*", "*.*"},
			},
		},
	}
}

var settings = program.File[Config]{Path: "/etc/fairway/fairway-agent.toml", Defaults: defaultConfig,
	Check: (*Config).check}

// check names the node by its host where the settings do not.
func (c *Config) check() error {
	if c.Node == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("node is not set and the host has no name: %w", err)
		}
		c.Node, _, _ = strings.Cut(host, ".")
	}
	return c.validate()
}

func (c *Config) validate() error {
	role, ok := topology.ParseRole(c.Role)
	d := &c.Source.Diod
	switch {
	case !ok || role == topology.RoleUnknown:
		return fmt.Errorf("role = %q: want compute, forwarder, storage or metadata", c.Role)
	case c.Spool.Dir == "":
		return errors.New("spool.dir is empty: seconds need a place while the daemon is away")
	case d.Enabled && (d.Workers < 1 || d.Workers > 1024):
		return fmt.Errorf("source.diod.workers = %d: want 1 to 1024", d.Workers)
	case d.Enabled && d.Addr == "":
		return errors.New("source.diod.addr is empty: want HOST:PORT")
	case c.Source.Ganesha.Enabled && c.Source.Ganesha.Addr != "" && c.Source.Ganesha.Export == "":
		return errors.New("source.ganesha.export is empty: want the tag or path of an export at source.ganesha.addr")
	case c.Source.LWFS.Enabled && c.Source.LWFS.Trace == "":
		return errors.New("source.lwfs.trace is empty: want the path of the server's trace")
	}
	if err := c.Daemon.validate(); err != nil {
		return err
	}
	if err := c.validateRoutes(); err != nil {
		return err
	}
	if err := c.validateTBF(); err != nil {
		return err
	}
	return c.validateOrders()
}

func (c *Config) validateRoutes() error {
	r := &c.Routes
	switch {
	case r.By == "":
		return nil
	case !slices.Contains(routes.Kinds(), r.By):
		return fmt.Errorf("routes.by = %q: want %s", r.By, strings.Join(routes.Kinds(), ", "))
	case r.By == routes.Addresses && c.Role != topology.Forwarder.String():
		return errors.New(`routes.by = "addresses" is for forwarders, whose addresses clients of NFS report`)
	case len(r.Forwarders) == 0 && r.By != routes.NFS && r.By != routes.Addresses:
		return errors.New("routes.forwarders is empty: want each forwarder's NID, address, DVS name or volume file")
	case r.By == routes.LNet && r.Net == "":
		return errors.New("routes.net is empty: want the file system's LNet network, such as o2ib1")
	case r.By == routes.LWFS && strings.TrimPrefix(r.Volume, "/") == "":
		return errors.New("routes.volume is empty: want the link to LWFS's volume file in use")
	}
	return nil
}

// Renamed returns the name of now of settings that have had another one.
func (c *Config) Renamed() map[string]string {
	return map[string]string{"source.relay": "source.queue", "source.fwdmount": "source.mount",
		"orders.relay": "orders.tcpproxy", "orders.mount": "orders.remount",
		"routes.root": "root", "orders.remount.root": "root", "source.procfs.root": "root without /proc",
		"source.lustre.root": "root", "source.lnet.root": "root", "source.dvs.root": "root",
		"source.diod.skip_clients": "source.skip_clients", "source.ganesha.skip_clients": "source.skip_clients",
		"source.queue.skip_clients": "source.skip_clients", "source.diod.uid": "source.uid",
		"source.ganesha.uid": "source.uid", "daemon.urls": "daemon.url", "orders.lnet.net": "routes.net"}
}

// Retired returns the settings that went, with the reason why.
func (c *Config) Retired() map[string]string {
	const (
		direct = "each agent has a connection of its own, through a TCP proxy where it has no route (docs/scale.md)"
		nfs    = "what a node neither mounts nor serves by NFS has no counts to report"
	)
	return map[string]string{"gather": direct, "daemon.gatherers": direct,
		"source.queue.tables":      "a queue that is read takes the daemon's tables, where that has any",
		"phase":                    "it follows from the node's name, so that not all agents read at once",
		"source.ganesha.bus":       "DBUS_SYSTEM_BUS_ADDRESS says it, of the agent as of each program",
		"source.procfs.skip_disks": "a disk counts once, and what stands for others or for memory does not",
		"source.gpfs.command":      "mmpmon is below root where GPFS installs it",
		"source.lwfs.host":         "a server's trace has its own lines",
		"spool.max_bytes":          "64 MiB are two days of a node", "source.procfs.nfs_client": nfs,
		"source.procfs.nfs_server": nfs}
}
