// Package setup writes a new site's settings: it asks this machine, and takes what it is given.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairwayd/certify"
	"fairway/cmd/fairwayd/config"
	"fairway/cmd/fairwayd/enrol"
	"fairway/cmd/program"
	"fairway/collector/appendlog"
)

// initOptions are what a person may say where the machine cannot be asked.
type initOptions struct {
	name, layer, compute, forwarders, storage string
	net                                       string
	address, port                             string
	operators                                 string
	peak                                      float64
	orders                                    bool
	call                                      callOptions
	writeOptions
}

// writeOptions say where files go, whether they replace others, and how long the join tokens in them last.
type writeOptions struct {
	dir, state string
	force      bool
	joinFor    time.Duration
}

// callOptions say who is called.
type callOptions struct{ alertmanager, mailTo, mailServer string }

// Command is fairwayd init.
func Command() *cobra.Command {
	o, root := initOptions{}, ""
	c := &cobra.Command{
		Use:   "init",
		Short: "Write the settings of a new site, for daemon and agents, with certificates and a join token",
		Long: "Asks this machine: nodes of sinfo, forwarders of LNet's routes or of mounted file systems, the\n" +
			"speed of links, user groups, the batch system. A flag says what it cannot find out. It writes into DIR\n" +
			"  fairwayd.toml                the daemon's settings, each with where it is from\n" +
			"  tls/, enroll.secret          the site's certificates, and what nodes' tokens are made with\n" +
			"  nodes/ROLE/                  what a node of the role gets as /etc/fairway: the agent's settings,\n" +
			"                               the authority's certificate, a join token, the capabilities that the\n" +
			"                               unit needs\n" +
			"and prints what comes next. Nothing that exists is overwritten without --force; secrets and\n" +
			"certificates never are.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if port, err := strconv.ParseUint(o.port, 10, 16); err != nil || port == 0 {
				return program.BadUsage(fmt.Errorf("init: --port %q: want 1 to 65535", o.port))
			}
			found, err := o.look(c.Context(), thisMachine(root))
			if err != nil {
				return err
			}
			return o.write(c.OutOrStdout(), found, time.Now())
		},
	}
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "the machine's name, on every screen (default: Slurm's cluster, else this host)")
	f.StringVar(&o.layer, "layer", "", "kind of forwarder: "+layerNames()+" (default: what this host shows)")
	f.StringVar(&o.compute, "compute", "", "compute nodes as a host list such as 'cn[1-512]' (default: sinfo's)")
	f.StringVar(&o.forwarders, "forwarders", "",
		"forwarders as a host list, each with =HOST:PORT (LNet: =NID) behind it where that is another name")
	f.StringVar(&o.net, "net", "", "the LNet network behind the routers (default: that of this host's routes)")
	f.StringVar(&o.storage, "storage", "", "storage servers with an agent of their own, as a host list")
	f.StringVar(&o.address, "address", "", "how nodes and people reach the daemon (default: this host's name)")
	f.StringVar(&o.port, "port", "7117", "the daemon's port")
	f.StringVar(&o.operators, "operators", "", "Unix group of the operators (default: wheel or sudo)")
	f.Float64Var(&o.peak, "peak", 0, "peak of a forwarder in a direction, bytes/s (default: this host's fastest link)")
	f.BoolVar(&o.orders, "orders", false, "let the agents move compute nodes; without it plans can only be proposed")
	f.StringVar(&o.call.alertmanager, "alertmanager", "", "URL of an Alertmanager that is alerted")
	f.StringVar(&o.call.mailTo, "mail-to", "", "address that is alerted by mail")
	f.StringVar(&o.call.mailServer, "mail-server", "127.0.0.1:25", "mail server, HOST:PORT, of --mail-to")
	f.StringVar(&o.dir, "dir", "/etc/fairway", "directory to write to")
	f.StringVar(&o.state, "state-dir", "", "the daemon's state_dir (default: /var/lib/fairway)")
	f.StringVar(&root, "root", "/", "directory that holds the proc and sys to look at")
	f.DurationVar(&o.joinFor, "join-for", 24*time.Hour, "how long the join token lasts")
	f.BoolVar(&o.force, "force", false, "replace settings that exist")
	return c
}

// write writes everything and says what comes next.
func (o *initOptions) write(w io.Writer, s *site, now time.Time) error {
	main := filepath.Join(o.dir, "fairwayd.toml")
	files := map[string]string{main: s.daemonSettings(o, now)}
	for _, l := range s.layers() {
		files[filepath.Join(o.dir, "nodes", l.role, "fairway-agent.toml")] = s.agentSettings(o, l, now)
	}
	for path := range files {
		if _, err := os.Stat(path); err == nil && !o.force {
			return program.BadUsage(fmt.Errorf("init: %s exists; edit it, or replace it with --force", path))
		}
	}
	if err := s.keys(o, w, now); err != nil {
		return err
	}
	conf, _, err := config.File.Parse(main, []byte(files[main]))
	if err != nil {
		return fmt.Errorf("init made settings that cannot be used: %w", err)
	}
	join, err := s.join(o, &conf, now)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(o.dir, "tls", "ca.pem"))
	if err != nil {
		return err
	}
	for _, l := range s.layers() {
		dir := filepath.Join(o.dir, "nodes", l.role)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := errors.Join(appendlog.ReplaceFile(filepath.Join(dir, "ca.pem"), ca, 0o644),
			appendlog.ReplaceFile(filepath.Join(dir, "join.token"), []byte(join[l.role]+"\n"),
				0o600)); err != nil {
			return err
		}
		if rights := s.rights(o, l.role); rights != "" {
			files[filepath.Join(dir, rightsFile)] = fmt.Sprintf("# Goes to /etc/systemd/system/fairway-agent.service.d"+
				" there.\n[Service]\nCapabilityBoundingSet=%s\n", rights)
		}
	}
	for path, text := range files {
		if err := appendlog.ReplaceFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	s.say(w, o, now)
	return nil
}

// keys makes what is missing of the authority, the server's certificate and the secret of the tokens. The daemon's user
// gets what the daemon reads.
func (s *site) keys(o *initOptions, w io.Writer, now time.Time) error {
	dir := filepath.Join(o.dir, "tls")
	a, made, err := certify.Open(dir, now)
	if err != nil {
		return err
	}
	if made {
		fmt.Fprintf(w, "made the authority %s; keep %s somewhere safe when all nodes are enrolled\n",
			filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key"))
	}
	if _, err := os.Stat(filepath.Join(dir, "server.pem")); errors.Is(err, fs.ErrNotExist) {
		if _, err := a.IssueServer(s.names, now); err != nil {
			return err
		}
		fmt.Fprintf(w, "made the certificate %s for %s\n", filepath.Join(dir, "server.pem"),
			strings.Join(s.names, " "))
	}
	secret := filepath.Join(o.dir, "enroll.secret")
	if _, err := enrol.HaveSecret(secret, false); err != nil {
		return err
	}
	for _, path := range []string{secret, filepath.Join(dir, "server.key")} {
		if err := giveTo(daemonUser, path); err != nil {
			return err
		}
	}
	return nil
}

// join makes a join token for each layer's nodes.
func (s *site) join(o *initOptions, conf *config.Config, now time.Time) (tokens map[string]string, err error) {
	tokens = map[string]string{}
	for _, l := range s.layers() {
		e, pattern := enrol.Tokens(conf.Access.Enrolment.SecretFile, nil, nil), patternOf(l.nodes)
		if tokens[l.role], err = e.JoinToken(pattern, now.Add(o.joinFor)); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}

// say says what was found and what comes next.
func (s *site) say(w io.Writer, o *initOptions, now time.Time) {
	for _, line := range s.notes {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "wrote %s\n", filepath.Join(o.dir, "fairwayd.toml"))
	for _, l := range s.layers() {
		fmt.Fprintf(w, "wrote %s for %d %s nodes\n", filepath.Join(o.dir, "nodes", l.role), len(l.nodes), l.role)
	}
	fmt.Fprintf(w, "next: systemctl enable --now fairwayd\n")
	fmt.Fprintf(w, "then: give each node its role's files as /etc/fairway, and start fairway-agent there, until %s "+
		"(docs/install.md)\n", now.Add(o.joinFor).UTC().Format("2006-01-02 15:04 UTC"))
	if o.orders && s.layer.orders == byRemount {
		fmt.Fprintf(w, "on compute nodes %s is not enough to mount for the whole node: their unit wants "+
			"/usr/share/doc/fairway-agent/fairway-agent-remount.conf\n", rightsFile)
	}
	fmt.Fprintf(w, "then: fairway doctor\n")
}

// look asks the machine and takes what the flags say.
func (o *initOptions) look(ctx context.Context, m *machine) (*site, error) {
	s := &site{machine: m}
	if o.layer != "" {
		if s.layer = layerNamed(o.layer); s.layer == nil {
			return nil, program.BadUsage(fmt.Errorf("init: --layer %q: want %s", o.layer, layerNames()))
		}
	}
	if err := s.findNodes(ctx, o); err != nil {
		return nil, err
	}
	if err := s.findForwarders(ctx, o); err != nil {
		return nil, err
	}
	s.findPeak(o)
	s.findNames(ctx, o)
	s.findGroups(o)
	s.findJobs(ctx)
	return s, nil
}
