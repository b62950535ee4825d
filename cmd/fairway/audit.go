package main

import (
	"context"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"fairway/console"
	"fairway/webui/client"
)

func newAudit(o *options) *cobra.Command {
	query := map[string]*string{"actor": new(string), "subject": new(string), "from": new(string), "to": new(string)}
	c := &cobra.Command{
		Use:   "audit",
		Short: "List who did what, when and why",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q := url.Values{}
			for name, v := range query {
				if *v != "" {
					q.Set(name, *v)
				}
			}
			return show(o, c, func(ctx context.Context, cl *client.Client) ([]console.AuditEntry, error) { return cl.Audit(ctx, q) }, printAudit)
		},
	}
	c.AddCommand(newAuditVerify(o))
	f := c.Flags()
	f.StringVar(query["actor"], "actor", "", "only what this person or policy did")
	f.StringVar(query["subject"], "subject", "", "only this plan or node")
	f.StringVar(query["from"], "from", "", "not before this time (RFC 3339)")
	f.StringVar(query["to"], "to", "", "before this time (RFC 3339)")
	return c
}

func printAudit(w io.Writer, entries []console.AuditEntry) error {
	rows := make([][]string, 0, len(entries))
	for _, e := range entries {
		rows = append(rows, []string{strconv.FormatUint(e.Seq, 10), stamp(e.At), e.Actor, orDash(e.From), e.Action, e.Subject, orDash(e.Result), e.Reason})
	}
	return printTable(w, []string{"SEQ", "AT", "ACTOR", "FROM", "ACTION", "SUBJECT", "RESULT", "REASON"}, rows)
}
