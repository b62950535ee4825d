package sitefiles

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"fairway/cmd/fairway-demo/sitefiles/model"
)

// Agents says how the agents of a site reach their daemon.
type Agents struct {
	URL, TokenFile string
	// Lnetctl is the command whose further words are those of a node's lnetctl: NODE, then lnetctl's own.
	Lnetctl []string
	// Orders says whether the agents may change tables.
	Orders bool
}

// PathOf is the folder with a node's own programs, first in its agent's PATH.
func (s *Site) PathOf(node string) string { return filepath.Join(s.opt.Dir, "bin", node) }

// ConfigOf is a node's agent's configuration.
func (s *Site) ConfigOf(node string) string { return filepath.Join(s.opt.Dir, "etc", node+".toml") }

// Configure writes the agents' configurations and the nodes' lnetctl.
func (s *Site) Configure(a Agents) error {
	for _, n := range s.Nodes() {
		bin := s.PathOf(n.Name)
		for _, dir := range []string{bin, filepath.Dir(s.ConfigOf(n.Name))} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		var words []string
		for _, w := range append(a.Lnetctl, n.Name) {
			words = append(words, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", strings.Join(words, " "))
		if err := os.WriteFile(filepath.Join(bin, "lnetctl"), []byte(script), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(s.ConfigOf(n.Name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		if err := toml.NewEncoder(f).Encode(s.agent(n, a)); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

type table = map[string]any

// agent is the configuration of one node's agent.
func (s *Site) agent(n *model.Node, a Agents) table {
	root := s.Root(n.Name)
	role := map[model.Role]string{model.Client: "compute", model.Router: "forwarder", model.OSS: "storage",
		model.MDS: "metadata"}[n.Role]
	source := table{
		"lnet":   table{"enabled": true, "root": root},
		"procfs": table{"enabled": true, "root": filepath.Join(root, "proc")},
	}
	if n.Role != model.Router {
		source["lustre"] = table{"enabled": true, "root": root}
	}
	c := table{
		"node": n.Name, "role": role,
		"daemon": table{"url": a.URL, "token_file": a.TokenFile},
		"spool":  table{"dir": filepath.Join(s.opt.Dir, "spool", n.Name)},
		"source": source,
	}
	net, side := model.ServerNet, 0
	if n.Role != model.Client {
		net, side = model.ClientNet, 1
	}
	gateways := table{}
	for _, r := range s.model.Of(model.Router) {
		gateways[r.Name] = r.NIs[side].NID
	}
	if n.Role == model.Client {
		c["routes"] = table{"by": "lnet", "root": root, "net": net, "forwarders": gateways}
	}
	if a.Orders && n.Role != model.Router {
		c["orders"] = table{"enabled": true, "by": "lnet", "lnet": table{"net": net}, "forwarders": gateways}
	}
	return c
}

// Machine is what the daemon's configuration says of the site: its nodes, for the tables [[node]].
func (s *Site) Machine() []table {
	var out []table
	for _, n := range s.model.Nodes {
		t := table{"id": n.Name, "role": map[model.Role]string{model.Client: "compute", model.Router: "forwarder",
			model.OSS: "storage", model.MDS: "metadata"}[n.Role]}
		if n.Role == model.Router {
			t["addr"], t["peak_bytes_per_sec"] = n.NIs[0].NID, s.opt.Model.RouterRate
		}
		out = append(out, t)
	}
	return out
}
