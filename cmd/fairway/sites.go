package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
)

// siteFile lists the machines of a site that has several, each with a daemon of its own.
const siteFile = "/etc/fairway/sites.toml"

// sites is what the file holds.
type sites struct {
	Site map[string]siteEntry `toml:"site"`
}

type siteEntry struct {
	Addr      string `toml:"addr"`
	TokenFile string `toml:"token_file"`
}

// sitesPath is where the file is looked for.
func sitesPath() string {
	if path := os.Getenv("FAIRWAY_SITES"); path != "" {
		return path
	}
	return siteFile
}

func readSites(path string) (sites, error) {
	var s sites
	b, err := os.ReadFile(path)
	if err != nil {
		return s, program.BadUsage(fmt.Errorf("sites: %w; each [site.NAME] in it has addr and token_file", err))
	}
	if _, err := program.ParseSettings(path, b, &s, []string{"site", "addr", "token_file"},
		"'fairway sites --help'"); err != nil {
		return s, program.BadUsage(err)
	}
	for name, e := range s.Site {
		if e.Addr == "" {
			return s, program.BadUsage(fmt.Errorf("%s: site.%s has no addr", path, name))
		}
	}
	return s, nil
}

// choose puts the address and the token of --site in place.
func (o *options) choose() error {
	if o.site == "" {
		return nil
	}
	if o.addrGiven() {
		return program.BadUsage(errors.New("--site and --addr both name a daemon: leave one out"))
	}
	path := sitesPath()
	s, err := readSites(path)
	if err != nil {
		return err
	}
	e, ok := s.Site[o.site]
	if !ok {
		return program.BadUsage(fmt.Errorf("%s has no site %q; it has %s", path, o.site,
			strings.Join(slices.Sorted(maps.Keys(s.Site)), ", ")))
	}
	o.addr, o.site = e.Addr, ""
	if e.TokenFile != "" {
		o.tokenFile = e.TokenFile
	}
	return nil
}

func newSites() *cobra.Command {
	return &cobra.Command{
		Use:   "sites",
		Short: "List the machines that --site NAME chooses from",
		Long: "They are in " + siteFile + " (or the file of FAIRWAY_SITES), each with the address of its daemon:\n\n" +
			"  [site.hpc1]\n  addr = \"https://fairway.hpc1:7071\"\n  token_file = \"/etc/fairway/hpc1.token\"\n\n" +
			"Nothing of several machines is merged: one command asks one daemon.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := readSites(sitesPath())
			if err != nil {
				return err
			}
			return printSites(c.OutOrStdout(), s)
		},
	}
}

func printSites(w io.Writer, s sites) error {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(s.Site)) {
		e := s.Site[name]
		rows = append(rows, []string{name, e.Addr, e.TokenFile})
	}
	return printTable(w, []string{"SITE", "ADDRESS", "TOKEN FILE"}, rows)
}
