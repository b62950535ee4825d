package lists

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/client"
	"fairway/webui/sites"
)

func newSites(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "sites",
		Short: "Ask all machines that --site NAME chooses from, and show them in one list",
		Long: "They are in " + program.SiteFile + " (or the file of FAIRWAY_SITES), each with the address of its " +
			"daemon:\n\n" +
			"  [site.hpc1]\n  addr = \"https://fairway.hpc1:7117\"\n  token_file = \"/etc/fairway/hpc1.token\"\n\n" +
			"Each shows its state and what is worst there. Below are the storage targets that one accuses and\n" +
			"another uses, and whose job does most of the I/O there. One that does not answer costs its row.\n" +
			"With --addr of a 'fairwayd view --of' this is what that one knows, and since when one is silent.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.AddrGiven() {
				daemon, err := o.Connect()
				if err != nil {
					return err
				}
				defer daemon.Close()
				switch v, err := daemon.ViewOfSites(c.Context()); {
				case err == nil:
					return showSites(o, c.OutOrStdout(), &v)
				case !errors.Is(err, api.ErrNotFound): // a daemon of one machine knows no others
					return err
				}
			}
			s, err := program.ReadSites(program.SitesPath())
			if err != nil {
				return err
			}
			var places []client.Place
			for _, name := range slices.Sorted(maps.Keys(s)) {
				places = append(places, client.Place{Name: name, Addr: s[name].Addr,
					TokenFile: cmp.Or(s[name].TokenFile, o.TokenFile)})
			}
			v := sites.Merge(client.AskSites(c.Context(), places), time.Now())
			return showSites(o, c.OutOrStdout(), &v)
		},
	}
}

func showSites(o *cli.Options, w io.Writer, v *sites.View) error {
	if o.JSON {
		return cli.PrintJSON(w, v)
	}
	return printSites(w, v)
}

func printSites(w io.Writer, v *sites.View) error {
	for _, line := range []string{v.Sentence, v.Second} {
		if line != "" {
			fmt.Fprintln(w, cli.OneLine.Replace(line)+".")
		}
	}
	fmt.Fprintln(w)
	var rows [][]string
	for i := range v.Sites {
		r := &v.Sites[i]
		age, findings, worst := "-", "-", cmp.Or(r.Why, "-")
		if !r.Since.IsZero() {
			worst += ", for " + remap.Span(v.At.Sub(r.Since).Seconds())
		}
		if r.Findings != nil {
			findings = strconv.Itoa(*r.Findings)
		}
		if r.AgeSeconds != nil {
			age = remap.Span(*r.AgeSeconds)
		}
		if r.Worst != nil {
			worst = r.Worst.Text()
		}
		rows = append(rows, []string{r.Site, r.State, age, findings, r.Addr, worst})
	}
	if err := cli.PrintTable(w, []string{"SITE", "STATE", "NEWEST", "FINDINGS", "ADDRESS", "WORST"}, rows); err != nil {
		return err
	}
	if len(v.Shared) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nSHARED TARGETS")
	for i := range v.Shared {
		fmt.Fprintln(w, cli.OneLine.Replace(v.Shared[i].Text))
		for _, line := range v.Shared[i].Lines {
			fmt.Fprintln(w, "  "+cli.OneLine.Replace(line))
		}
	}
	if v.Left > 0 {
		fmt.Fprintf(w, "%d further ones are not shown.\n", v.Left)
	}
	_, err := fmt.Fprintln(w, sites.Note)
	return err
}
