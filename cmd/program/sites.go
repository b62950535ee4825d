package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// SiteFile lists the machines of a site that has several, each with a daemon of its own.
const SiteFile = "/etc/fairway/sites.toml"

// Site is one machine of such a site.
type Site struct {
	Addr      string `toml:"addr" json:"addr"`
	TokenFile string `toml:"token_file" json:"token_file,omitempty"`
}

// SitesPath is where the file is looked for.
func SitesPath() string {
	if path := os.Getenv("FAIRWAY_SITES"); path != "" {
		return path
	}
	return SiteFile
}

// ReadSites reads the machines by their names. The error wraps fs.ErrNotExist without the file.
func ReadSites(path string) (map[string]Site, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, BadUsage(fmt.Errorf("sites: %w; each [site.NAME] in it has addr and token_file", err))
	}
	if err != nil {
		return nil, BadUsage(fmt.Errorf("sites: %w", err))
	}
	var s struct {
		Site map[string]Site `toml:"site"`
	}
	if _, err := ParseSettings(path, b, &s, []string{"site", "addr", "token_file"},
		"'fairway sites --help'"); err != nil {
		return nil, BadUsage(err)
	}
	for name, e := range s.Site {
		if e.Addr == "" {
			return nil, BadUsage(fmt.Errorf("%s: site.%s has no addr", path, name))
		}
	}
	return s.Site, nil
}
