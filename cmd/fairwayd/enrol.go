package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
	"fairway/webui/access"
	"fairway/webui/client"
)

// Enrolment says what nodes' own tokens are made with.
type Enrolment struct {
	SecretFile string `toml:"secret_file" help:"Secret (0600) behind nodes' tokens; fairwayd enroll makes it."`
}

// enrolment returns what makes and checks nodes' tokens; nil without a secret's file. revoked is up to when a node's
// are refused; nil where none is checked.
func (c *Config) enrolment(revoked func(topology.NodeID) time.Time, log *slog.Logger) *access.Enrolment {
	path := c.Access.Enrolment.SecretFile
	if path == "" {
		return nil
	}
	secrets := &watched[[]string]{paths: []string{path}, log: log,
		read: func() ([]string, error) { return readSecrets(path) }}
	return &access.Enrolment{Secrets: secrets.get, Revoked: revoked}
}

// readSecrets reads one secret a line; the first one makes new tokens.
func readSecrets(path string) (out []string, err error) {
	text, err := readPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("access.enrolment.secret_file: %w", err)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(line) < minSecret {
			return nil,
				fmt.Errorf("access.enrolment.secret_file: %s has a line of %d letters, a secret has at least %d",
					path, len(line), minSecret)
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("access.enrolment.secret_file: %s is empty; fairwayd enroll --rotate writes a secret",
			path)
	}
	return out, nil
}

// olderRevoked is where earlier versions kept whose tokens are refused: a node's name and Unix seconds a line.
const olderRevoked = "revoked-nodes"

// recordRevoked has the journal take what the older file says, and removes it. Until that is done its nodes
// are refused here.
func (d *daemon) recordRevoked(ctx context.Context) {
	path := filepath.Join(d.conf.StateDir, olderRevoked)
	for wait := time.Second; d.older.Load() != nil; {
		c, err := client.New("unix:"+d.conf.Listen.Socket, "")
		if err == nil {
			_, err = c.RevokeNodes(ctx, *d.older.Load())
			c.Close()
		}
		if err == nil {
			err = os.Remove(path)
		}
		if err == nil {
			d.older.Store(nil)
			return
		}
		d.log.Warn("revoked nodes are not in the journal yet, and refused at this daemon alone", "file", path,
			"err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			wait = min(2*wait, time.Minute)
		}
	}
}

// readOlderRevoked reads the older file; without one nobody is in it. A bad line is an error: a revocation that is
// passed over lets somebody in.
func (d *daemon) readOlderRevoked() error {
	path := filepath.Join(d.conf.StateDir, olderRevoked)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	out := map[topology.NodeID]time.Time{}
	if err == nil {
		err = parseRevoked(b, path, out)
	}
	if len(out) > 0 {
		d.older.Store(&out)
	}
	return err
}

// revokedUntil is up to when a node's tokens are refused here.
func (d *daemon) revokedUntil(n topology.NodeID) time.Time {
	until := d.desk.RevokedUntil(n)
	if older := d.older.Load(); older != nil && (*older)[n].After(until) {
		return (*older)[n]
	}
	return until
}

func parseRevoked(b []byte, path string, out map[topology.NodeID]time.Time) error {
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		if len(f) == 0 {
			continue
		}
		unix, err := int64(0), error(nil)
		if len(f) == 2 {
			unix, err = strconv.ParseInt(f[1], 10, 64)
		}
		if len(f) != 2 || err != nil {
			return fmt.Errorf("%s:%d: %q: want a node's name and Unix seconds", path, n, lines.Text())
		}
		if at := time.Unix(unix, 0); at.After(out[topology.NodeID(f[0])]) {
			out[topology.NodeID(f[0])] = at
		}
	}
	return lines.Err()
}

func newEnroll(path *string) *cobra.Command {
	var join, dir string
	var lasts time.Duration
	var rotate bool
	c := &cobra.Command{
		Use: "enroll [NODE...]",
		Short: "Make the tokens of nodes' agents, each good for its node alone, or a join token by which agents get " +
			"theirs",
		RunE: func(c *cobra.Command, nodes []string) error {
			conf, err := settings.Load(*path)
			if err != nil {
				return err
			}
			if join == "" && len(nodes) == 0 && !rotate {
				return program.BadUsage(errors.New("no node is named; name some, or use --join PATTERN"))
			}
			made, err := conf.haveSecret(rotate)
			if err != nil {
				return err
			}
			if made != "" {
				fmt.Fprintf(c.ErrOrStderr(), "made %s; the daemon's user must be able to read it\n", made)
			}
			e := conf.enrolment(nil, nil)
			if join != "" {
				token, err := e.JoinToken(join, time.Now().Add(lasts))
				if err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout(), token)
			}
			for _, n := range nodes {
				if err := enrol(c.OutOrStdout(), e, topology.NodeID(n), dir); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&join, "join", "", "print a join token for nodes whose names fit this pattern, such as 'cn*'")
	f.DurationVar(&lasts, "for", time.Hour, "how long the join token lasts")
	f.StringVar(&dir, "dir", "", "write each node's token to DIR/NODE.token instead of printing it")
	f.BoolVar(&rotate, "rotate", false,
		"put a new secret first; the old ones verify until their lines are taken out of the file")
	return c
}

// haveSecret makes the file of the secret where it is missing, or puts a new one in front. It returns the path of a
// file that was made.
func (c *Config) haveSecret(rotate bool) (made string, err error) {
	path := c.Access.Enrolment.SecretFile
	if path == "" {
		return "", fmt.Errorf("%w: access.enrolment.secret_file is not set: say where the secret is kept",
			program.ErrSettings)
	}
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		made = path
	case err != nil:
		return "", err
	case !rotate:
		return "", nil
	}
	part := path + ".part"
	defer os.Remove(part)
	if err := os.WriteFile(part, append([]byte(rand.Text()+rand.Text()+"\n"), old...), 0o600); err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil {
		if err := sameOwner(part, info); err != nil {
			return "", err
		}
	}
	return made, os.Rename(part, path)
}

func enrol(w io.Writer, e *access.Enrolment, n topology.NodeID, dir string) error {
	token, err := e.NodeToken(n, time.Now())
	if err != nil {
		return err
	}
	if dir == "" {
		_, err = fmt.Fprintln(w, token)
		return err
	}
	if n != topology.NodeID(filepath.Base(string(n))) {
		return fmt.Errorf("node %q: its name cannot be a file's; leave --dir out", n)
	}
	f, err := os.OpenFile(filepath.Join(dir, string(n)+".token"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, token)
	return errors.Join(err, f.Close())
}

func newTokens(path *string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "tokens",
		Short: "List the tokens of the configuration and the nodes whose own tokens are revoked",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			conf, err := settings.Load(*path)
			if err != nil {
				return err
			}
			all, err := conf.listTokens()
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(all)
			}
			return all.print(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer as JSON")
	c.AddCommand(&cobra.Command{
		Use:   "revoke NODE...",
		Short: "Refuse the tokens that these nodes have been given until now, by the daemon that runs here",
		Long: "Asks the daemon on this host, which must run, to refuse the tokens that these nodes have been given " +
			"until now. It is a record of the journal, and so holds at every daemon of a cluster and after a " +
			"restore. Their connections end within 20 s.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, nodes []string) error {
			conf, err := settings.Load(*path)
			if err != nil {
				return err
			}
			return conf.revoke(c.Context(), nodes)
		},
	})
	return c
}

// tokenList is who may speak to the daemon by a token; the secrets themselves are not in it.
type tokenList struct {
	Tokens []listedToken `json:"tokens"`
	// NodesSecret is the file of the secret behind the nodes' own tokens; empty: they have none.
	NodesSecret string        `json:"nodes_secret_file,omitempty"`
	Revoked     []revokedNode `json:"revoked"`
}

type listedToken struct {
	Name  string     `json:"name"`
	Role  remap.Role `json:"role"`
	Nodes []string   `json:"nodes,omitempty"` // an agent's token without any speaks for every node
}

type revokedNode struct {
	Node        topology.NodeID `json:"node"`
	IssuedUntil time.Time       `json:"issued_until"`
}

func (c *Config) listTokens() (*tokenList, error) {
	revoked := map[topology.NodeID]time.Time{}
	_, err := journal.Read(filepath.Join(c.StateDir, "journal"), func(r *journal.Record) error {
		for n, until := range r.Revoked {
			if until.After(revoked[n]) {
				revoked[n] = until
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := &tokenList{Tokens: []listedToken{}, NodesSecret: c.Access.Enrolment.SecretFile, Revoked: []revokedNode{}}
	for i := range c.Access.Tokens {
		k := &c.Access.Tokens[i]
		all.Tokens = append(all.Tokens, listedToken{k.Name, k.Role, k.Nodes})
	}
	for _, n := range slices.Sorted(maps.Keys(revoked)) {
		all.Revoked = append(all.Revoked, revokedNode{n, revoked[n].UTC()})
	}
	return all, nil
}

func (l *tokenList) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TOKEN\tROLE\tNODES")
	for _, k := range l.Tokens {
		nodes := strings.Join(k.Nodes, " ")
		if nodes == "" && k.Role == access.RoleAgent {
			nodes = "every node"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", topology.Clean(k.Name), k.Role, topology.Clean(nodes))
	}
	if l.NodesSecret != "" {
		fmt.Fprintf(t, "nodes' own\tagent\teach its node (secret in %s)\n", topology.Clean(l.NodesSecret))
	}
	for _, n := range l.Revoked {
		fmt.Fprintf(t, "node %s\trevoked\tissued until %s\n", topology.Clean(string(n.Node)),
			n.IssuedUntil.Format(time.RFC3339))
	}
	return t.Flush()
}

// revoke asks the daemon of this host.
func (c *Config) revoke(ctx context.Context, nodes []string) error {
	ask := map[topology.NodeID]time.Time{}
	for _, n := range nodes {
		ask[topology.NodeID(n)] = time.Time{}
	}
	cl, err := client.New("unix:"+c.Listen.Socket, "")
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err = cl.RevokeNodes(ctx, ask); err != nil {
		return fmt.Errorf("revoke: %w (the daemon must run: it records the revocation)", err)
	}
	return nil
}

// sameOwner gives a file to who owns another one, where root has made it.
func sameOwner(path string, as fs.FileInfo) error {
	st, ok := as.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, int(st.Uid), int(st.Gid))
}
