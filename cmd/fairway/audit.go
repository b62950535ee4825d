package main

import (
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

func newAudit(o *options) *cobra.Command {
	query := map[string]*string{"actor": new(string), "subject": new(string), "from": new(string), "to": new(string)}
	c := &cobra.Command{
		Use:   "audit",
		Short: "List who did what, when and why",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := o.connect()
			if err != nil {
				return err
			}
			defer cl.Close()
			q := url.Values{}
			for name, v := range query {
				if *v != "" {
					q.Set(name, *v)
				}
			}
			entries, err := cl.Audit(c.Context(), q)
			if err != nil {
				return err
			}
			if o.json {
				return printJSON(c.OutOrStdout(), entries)
			}
			rows := make([][]string, 0, len(entries))
			for _, e := range entries {
				rows = append(rows, []string{strconv.FormatUint(e.Seq, 10), e.At.Local().Format("2006-01-02 15:04:05"), e.Actor, orDash(e.From), e.Action, e.Subject, orDash(e.Result), e.Reason})
			}
			return printTable(c.OutOrStdout(), []string{"SEQ", "AT", "ACTOR", "FROM", "ACTION", "SUBJECT", "RESULT", "REASON"}, rows)
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
