package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
)

// choose puts the address and the token of --site in place.
func (o *options) choose() error {
	if o.site == "" {
		return nil
	}
	if o.addrGiven() {
		return program.BadUsage(errors.New("--site and --addr both name a daemon: leave one out"))
	}
	path := program.SitesPath()
	s, err := program.ReadSites(path)
	if err != nil {
		return err
	}
	e, ok := s[o.site]
	if !ok {
		return program.BadUsage(fmt.Errorf("%s has no site %q; it has %s", path, o.site,
			strings.Join(slices.Sorted(maps.Keys(s)), ", ")))
	}
	o.addr, o.site = e.Addr, ""
	if e.TokenFile != "" {
		o.tokenFile = e.TokenFile
	}
	return nil
}

func newSites(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "sites",
		Short: "List the machines that --site NAME chooses from",
		Long: "They are in " + program.SiteFile + " (or the file of FAIRWAY_SITES), each with the address of its " +
			"daemon:\n\n" +
			"  [site.hpc1]\n  addr = \"https://fairway.hpc1:7117\"\n  token_file = \"/etc/fairway/hpc1.token\"\n\n" +
			"Nothing of several machines is merged: one command asks one daemon.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := program.ReadSites(program.SitesPath())
			if err != nil {
				return err
			}
			if o.json {
				return printJSON(c.OutOrStdout(), s)
			}
			return printSites(c.OutOrStdout(), s)
		},
	}
}

func printSites(w io.Writer, s map[string]program.Site) error {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		e := s[name]
		rows = append(rows, []string{name, e.Addr, e.TokenFile})
	}
	return printTable(w, []string{"SITE", "ADDRESS", "TOKEN FILE"}, rows)
}
