package sitefiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/BurntSushi/toml"

	"fairway/cmd/lab/leash"
	"fairway/cmd/lab/sitefiles/model"
)

// Agents says how the agents of a site reach their daemon.
type Agents struct {
	URL, TokenFile string
	// Tool is the command whose further words are NODE, a program of that node, and the program's own.
	Tool []string
	// Orders says whether the agents may change tables.
	Orders bool
}

// PathIn is the folder with a node's own programs, first in its agent's PATH, of a site in a folder.
func PathIn(dir, node string) string { return filepath.Join(dir, "bin", node) }

// ConfigIn is a node's agent's configuration.
func ConfigIn(dir, node string) string { return filepath.Join(dir, "etc", node+".toml") }

// Configure writes the agents' configurations and the nodes' lnetctl.
func (s *Site) Configure(a Agents) error {
	for _, n := range s.shown() {
		if err := WriteAgent(s.opt.Dir, n.Name, s.agent(n, a), a.Tool, "lnetctl"); err != nil {
			return err
		}
	}
	return nil
}

// WriteAgent writes the configuration of a node's agent, and the node's own programs: each is the command with the
// words NODE and its name.
func WriteAgent(dir, node string, conf map[string]any, command []string, programs ...string) error {
	file, bin := ConfigIn(dir, node), PathIn(dir, node)
	for _, d := range []string{bin, filepath.Dir(file)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for _, program := range programs {
		words := leash.ShellWords(append(slices.Clone(command), node, program)...)
		script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", words)
		if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(toml.NewEncoder(f).Encode(conf), f.Close())
}

type table = map[string]any

// agent is the configuration of one node's agent.
func (s *Site) agent(n *model.Node, a Agents) table {
	role := map[model.Role]string{model.Client: "compute", model.Router: "forwarder", model.OSS: "storage",
		model.MDS: "metadata"}[n.Role]
	source := table{
		"lnet":   table{"enabled": true},
		"procfs": table{"enabled": true},
	}
	if n.Name == s.opt.Blind {
		delete(source, "lnet")
	}
	if n.Role != model.Router {
		source["lustre"] = table{"enabled": true}
	}
	c := table{
		"node": n.Name, "role": role, "root": s.Root(n.Name),
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
		c["routes"] = table{"by": "lnet", "net": net, "forwarders": gateways}
	}
	if a.Orders && n.Role != model.Router {
		c["orders"] = table{"enabled": true, "by": "lnet", "forwarders": gateways}
		if n.Role != model.Client {
			c["routes"] = table{"net": net}
		}
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
