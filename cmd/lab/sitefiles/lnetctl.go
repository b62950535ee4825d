package sitefiles

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"fairway/cmd/lab/sitefiles/format"
	"fairway/cmd/lab/sitefiles/model"
)

// Trick is what the site's lnetctl or mmces does instead of its work, on a node (empty: on all), for commands whose
// words begin with Command (empty: for all).
type Trick struct {
	Node    string `json:"node"`
	Command string `json:"command"`
	Mode    string `json:"mode"`
}

// The modes of a trick.
const (
	TrickBusy   = "busy"   // the kernel refuses
	TrickHang   = "hang"   // no answer
	TrickIgnore = "ignore" // reports success and does nothing
	TrickLie    = "lie"    // reports success, shows the change, and does nothing
)

// Tricks are those of a site's programs.
type Tricks []Trick

// Take adds a trick on one of some nodes, or on all; an empty mode takes all tricks away.
func (all *Tricks) Take(t Trick, nodes []string) error {
	switch t.Mode {
	case "":
		*all = nil
		return nil
	case TrickBusy, TrickHang, TrickIgnore, TrickLie:
	default:
		return fmt.Errorf("mode %q: want busy, hang, ignore or lie", t.Mode)
	}
	if t.Node != "" && !slices.Contains(nodes, t.Node) {
		return fmt.Errorf("node %q is not of this site", t.Node)
	}
	*all = append(*all, t)
	return nil
}

// On is the mode of the trick on a node's command line; empty: none.
func (all Tricks) On(node, line string) string {
	for _, t := range all {
		if (t.Node == "" || t.Node == node) && strings.HasPrefix(line, t.Command) {
			return t.Mode
		}
	}
	return ""
}

// Answer is a program's.
type Answer struct {
	Out  string `json:"out,omitempty"`
	Err  string `json:"err,omitempty"`
	Code int    `json:"code"`
	Hang bool   `json:"hang,omitempty"`
}

// Trick adds a trick; an empty mode takes all tricks away.
func (s *Site) Trick(t Trick) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Mode == "" {
		s.shadows = map[string]*model.Table{}
	}
	return s.tricks.Take(t, s.Nodes())
}

// Lnetctl runs the lnetctl of a node.
func (s *Site) Lnetctl(node string, args []string) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.model.Node(node)
	if n == nil {
		return Answer{Err: fmt.Sprintf("node %q is not of this site\n", node), Code: 1}
	}
	if len(args) < 2 {
		return Answer{Err: "Usage: lnetctl OBJECT VERB [OPTIONS]\n", Code: 1}
	}
	c := command{site: s, node: n, object: args[0], verb: args[1]}
	changes := c.verb == "add" || c.verb == "del" || c.verb == "set" || c.object == "set"
	switch mode := s.tricks.On(node, strings.Join(args, " ")); {
	case mode == TrickHang:
		return Answer{Hang: true}
	case mode == TrickBusy:
		return c.refuse(model.Errno(model.Busy))
	case mode == TrickIgnore && changes:
		return Answer{}
	case mode == TrickLie && changes && s.shadows[node] == nil:
		s.shadows[node] = n.Table.Clone()
	}
	if shadow := s.shadows[node]; shadow != nil { // all that it does is done to that, and shown of it
		shown := *n
		shown.Table, c.node = shadow, &shown
	}
	if err := c.parse(args[2:]); err != nil {
		return Answer{Err: err.Error() + "\n", Code: 1}
	}
	out, err := c.run()
	var errno model.Errno
	if errors.As(err, &errno) {
		return c.refuse(errno)
	}
	if err != nil {
		return Answer{Err: err.Error() + "\n", Code: 1}
	}
	return Answer{Out: out}
}

// command is one call of lnetctl.
type command struct {
	site         *Site
	node         *model.Node
	object, verb string
	flags        map[string]string
	words        []string
}

func (c *command) parse(args []string) error {
	f := pflag.NewFlagSet("lnetctl", pflag.ContinueOnError)
	f.Usage = func() {}
	for name, short := range map[string]string{"net": "n", "gateway": "g", "hop": "c", "priority": "p", "verbose": "v",
		"nid": "", "src": "", "dst": "", "rte": "", "idx": ""} {
		f.StringP(name, short, "", "")
	}
	f.Lookup("verbose").NoOptDefVal = "1"
	if err := f.Parse(args); err != nil {
		return fmt.Errorf("lnetctl: %w", err)
	}
	c.flags, c.words = map[string]string{}, f.Args()
	f.Visit(func(x *pflag.Flag) { c.flags[x.Name] = x.Value.String() })
	if c.flags["verbose"] != "" && len(c.words) > 0 { // its argument may be left out
		c.flags["verbose"] = c.words[0]
	}
	return nil
}

func (c *command) number(name string, other int) int {
	if n, err := strconv.Atoi(c.flags[name]); err == nil {
		return n
	}
	return other
}

func (c *command) refuse(e model.Errno) Answer {
	return Answer{Code: 255,
		Err: fmt.Sprintf("%s:\n    - %s:\n          errno: %d\n          descr: \"cannot %s %s: %s\"\n",
			c.verb, c.object, int(e), c.verb, c.object, text(e))}
}

func text(e model.Errno) string {
	return map[model.Errno]string{model.NotThere: "No such file or directory", model.Exists: "File exists",
		model.Invalid: "Invalid argument", model.Unreachable: "No route to host",
		model.Busy: "Device or resource busy"}[e]
}

func (c *command) run() (string, error) {
	switch c.object + " " + c.verb {
	case "route show":
		return c.site.opt.Release.RouteShow(c.routes(), c.number("verbose", 0)), nil
	case "route add":
		return "", c.node.AddRoute(c.flags["net"], c.flags["gateway"], c.number("hop", -1),
			c.number("priority", 0))
	case "route del":
		return "", c.node.DelRoute(c.flags["net"], c.flags["gateway"])
	case "peer show":
		return c.peers(), nil
	case "net show":
		return c.site.opt.Release.NetShow(c.node.NIs, c.number("verbose", 0)), nil
	case "stats show":
		return c.site.opt.Release.StatsShow(c.node.LNet), nil
	case "global show":
		return c.site.opt.Release.GlobalShow(c.site.opt.Model.Discovery, c.node.Table.DropAsym), nil
	case "set drop_asym_route":
		if c.site.opt.Release >= 14 && len(c.words) == 1 {
			c.node.Table.DropAsym = c.words[0] == "1"
			return "", nil
		}
	}
	if c.object == "udsp" && c.site.opt.Release >= 15 {
		return c.udsp()
	}
	return "", fmt.Errorf("lnetctl: '%s %s' is not a command", c.object, c.verb)
}

func (c *command) routes() []*model.Route {
	var out []*model.Route
	for _, r := range c.node.Table.Routes {
		if net := c.flags["net"]; net == "" || net == r.Net {
			out = append(out, r)
		}
	}
	return out
}

func (c *command) udsp() (string, error) {
	switch c.verb {
	case "show":
		return format.RuleShow(c.node.Table.Rules), nil
	case "add":
		return "", c.node.AddRule(model.Rule{Src: c.flags["src"], Dst: c.flags["dst"], Rte: c.flags["rte"]},
			c.number("idx", -1))
	case "del":
		return "", c.node.DelRule(c.number("idx", -1))
	}
	return "", fmt.Errorf("lnetctl: 'udsp %s' is not a command", c.verb)
}

// primary is the first identifier of the peer with a NID, as the node knows it.
func (c *command) primary(nid string) string {
	for _, p := range c.node.Peers {
		if p.NID == nid && p.Node().Role == model.Router {
			return c.node.Primary(p.Node())
		}
	}
	return nid
}

func (c *command) peers() string {
	var out []*model.Peer
	for _, p := range c.node.Peers {
		if nid := c.flags["nid"]; nid == "" || nid == p.NID || nid == c.primary(p.NID) {
			out = append(out, p)
		}
	}
	return c.site.opt.Release.PeerShow(out, c.primary, c.number("verbose", 0))
}
