package main

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"fairway/cmd/program"
	"fairway/webui/api"
)

// consoles are the machines of the file that 'fairway --site' reads which a browser can go to.
func consoles(log *slog.Logger) (out []api.Site) {
	sites, err := program.ReadSites(program.SitesPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the browser offers no other machines", "err", err)
	}
	for _, name := range slices.SortedFunc(maps.Keys(sites), cmp.Compare) {
		addr, _, _ := strings.Cut(sites[name].Addr, ",") // any daemon of a cluster
		if strings.HasPrefix(addr, "http://") || strings.HasPrefix(addr, "https://") {
			out = append(out, api.Site{Name: name, Addr: strings.TrimRight(addr, "/")})
		}
	}
	return out
}
