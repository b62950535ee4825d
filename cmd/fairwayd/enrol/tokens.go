package enrol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/program"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
	"fairway/webui/access"
	"fairway/webui/client"
)

// List is fairwayd tokens.
func List(path *string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "tokens",
		Short: "List the tokens of the configuration and the nodes whose own tokens are revoked",
		Args:  cobra.NoArgs,
		RunE: config.File.With(path, func(c *cobra.Command, _ []string, conf *config.Config) error {
			all, err := listTokens(conf)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(program.Raw(c.OutOrStdout())).Encode(all)
			}
			return all.print(c.OutOrStdout())
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer as JSON")
	c.AddCommand(&cobra.Command{
		Use:   "revoke NODE...",
		Short: "Refuse the tokens and certificates that these nodes have now, by the daemon that runs here",
		Long: "Asks the daemon on this host, which must run, to refuse the tokens and certificates that these nodes " +
			"have now. It is a record of the journal, and so holds at every daemon of a cluster and after a restore. " +
			"Their connections end within 20 s.",
		Args: cobra.MinimumNArgs(1),
		RunE: config.File.With(path, func(c *cobra.Command, nodes []string, conf *config.Config) error {
			return Revoke(c.Context(), conf.Listen.Socket, nodes)
		}),
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
	Node      topology.NodeID `json:"node"`
	RevokedAt time.Time       `json:"revoked_at"`
	// IssuedUntil is up to when tokens are refused: clocks may differ by the hour between the two.
	IssuedUntil time.Time `json:"issued_until"`
}

// readRevoked reads in a state directory's journal up to when nodes' tokens are refused.
func readRevoked(stateDir string) (map[topology.NodeID]time.Time, error) {
	revoked := map[topology.NodeID]time.Time{}
	_, err := journal.Read(filepath.Join(stateDir, "journal"), func(r *journal.Record) error {
		for n, until := range r.Revoked {
			if until.After(revoked[n]) {
				revoked[n] = until
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return revoked, err
}

func listTokens(c *config.Config) (*tokenList, error) {
	revoked, err := readRevoked(c.StateDir)
	if err != nil {
		return nil, err
	}
	all := &tokenList{Tokens: []listedToken{}, NodesSecret: c.Access.Enrolment.SecretFile, Revoked: []revokedNode{}}
	for i := range c.Access.Tokens {
		k := &c.Access.Tokens[i]
		all.Tokens = append(all.Tokens, listedToken{k.Name, k.Role, k.Nodes})
	}
	for _, n := range slices.Sorted(maps.Keys(revoked)) {
		all.Revoked = append(all.Revoked, revokedNode{n, access.RevokedAt(revoked[n]).UTC(), revoked[n].UTC()})
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
		fmt.Fprintf(t, "node %s\trevoked\tat %s; fairwayd enroll makes another\n", topology.Clean(string(n.Node)),
			n.RevokedAt.Format(time.RFC3339))
	}
	return t.Flush()
}

// Revoke asks the daemon that answers at a socket to refuse what nodes have been given until now.
func Revoke(ctx context.Context, socket string, nodes []string) error {
	ask := map[topology.NodeID]time.Time{}
	for _, n := range nodes {
		ask[topology.NodeID(n)] = time.Time{}
	}
	cl, err := client.New("unix:"+socket, "")
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err = cl.RevokeNodes(ctx, ask); err != nil {
		return fmt.Errorf("revoke: %w (the daemon must run: it records the revocation)", err)
	}
	return nil
}
