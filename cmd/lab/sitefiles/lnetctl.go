package sitefiles

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// Check says what is wrong with a trick; an empty mode is right: it ends all.
func (t *Trick) Check() error {
	switch t.Mode {
	case "", TrickBusy, TrickHang, TrickIgnore, TrickLie:
		return nil
	}
	return fmt.Errorf("mode %q: want busy, hang, ignore or lie", t.Mode)
}

// shadow is what a lying lnetctl shows.
type shadow struct {
	routes []*model.Route
	rules  []model.Rule
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
	if err := t.Check(); err != nil {
		return err
	}
	if t.Mode == "" {
		s.tricks, s.shadows = nil, map[string]*shadow{}
		return nil
	}
	if t.Node != "" && s.model.Node(t.Node) == nil {
		return fmt.Errorf("node %q is not of this site", t.Node)
	}
	s.tricks = append(s.tricks, t)
	return nil
}

func (s *Site) trickOn(node string, args []string) string {
	line := strings.Join(args, " ")
	for _, t := range s.tricks {
		if (t.Node == "" || t.Node == node) && strings.HasPrefix(line, t.Command) {
			return t.Mode
		}
	}
	return ""
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
	c := command{site: s, node: n, object: args[0], verb: args[1], shadow: s.shadows[node]}
	changes := c.verb == "add" || c.verb == "del" || c.verb == "set" || c.object == "set"
	switch mode := s.trickOn(node, args); {
	case mode == TrickHang:
		return Answer{Hang: true}
	case mode == TrickBusy:
		return c.refuse(model.Errno(model.Busy))
	case mode == TrickIgnore && changes:
		return Answer{}
	case mode == TrickLie && changes && c.shadow == nil:
		c.shadow = &shadow{rules: slices.Clone(n.Table.Rules)}
		for _, r := range n.Table.Routes {
			copied := *r
			c.shadow.routes = append(c.shadow.routes, &copied)
		}
		s.shadows[node] = c.shadow
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
	shadow       *shadow
	object, verb string
	flags        map[string]string
	words        []string
}

// short names of options.
var short = map[string]string{"-n": "net", "-g": "gateway", "-c": "hop", "-p": "priority", "-v": "verbose"}

func (c *command) parse(args []string) error {
	c.flags = map[string]string{}
	for i := 0; i < len(args); i++ {
		name, isLong := strings.CutPrefix(args[i], "--")
		if !isLong {
			if name = short[args[i]]; name == "" {
				if strings.HasPrefix(args[i], "-") {
					return fmt.Errorf("lnetctl: unrecognized option '%s'", args[i])
				}
				c.words = append(c.words, args[i])
				continue
			}
		}
		if key, value, ok := strings.Cut(name, "="); ok {
			c.flags[key] = value
			continue
		}
		if name == "verbose" { // its argument may be left out
			c.flags[name] = "1"
			if i+1 < len(args) {
				if _, err := strconv.Atoi(args[i+1]); err == nil {
					c.flags[name] = args[i+1]
					i++
				}
			}
			continue
		}
		if i+1 == len(args) {
			return fmt.Errorf("lnetctl: option '--%s' requires an argument", name)
		}
		i++
		c.flags[name] = args[i]
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
		model.Invalid: "Invalid argument", model.Unreachable: "No route to host", model.Busy: "Device or resource busy"}[e]
}

func (c *command) run() (string, error) {
	switch c.object + " " + c.verb {
	case "route show":
		return c.site.opt.Release.RouteShow(c.routes(), c.number("verbose", 0)), nil
	case "route add":
		return "", c.addRoute()
	case "route del":
		return "", c.delRoute()
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
	all := c.node.Table.Routes
	if c.shadow != nil {
		all = c.shadow.routes
	}
	var out []*model.Route
	for _, r := range all {
		if net := c.flags["net"]; net == "" || net == r.Net {
			out = append(out, r)
		}
	}
	return out
}

func (c *command) addRoute() error {
	net, gateway := c.flags["net"], c.flags["gateway"]
	if c.shadow != nil {
		c.shadow.routes = append(c.shadow.routes,
			&model.Route{Net: net, Gateway: gateway, Hops: c.number("hop", -1), Priority: c.number("priority", 0)})
		return nil
	}
	return c.node.AddRoute(net, gateway, c.number("hop", -1), c.number("priority", 0))
}

func (c *command) delRoute() error {
	net, gateway := c.flags["net"], c.flags["gateway"]
	if c.shadow != nil {
		c.shadow.routes = slices.DeleteFunc(c.shadow.routes,
			func(r *model.Route) bool { return r.Net == net && r.Gateway == gateway })
		return nil
	}
	return c.node.DelRoute(net, gateway)
}

func (c *command) udsp() (string, error) {
	rules := c.node.Table.Rules
	if c.shadow != nil {
		rules = c.shadow.rules
	}
	switch c.verb {
	case "show":
		return format.RuleShow(rules), nil
	case "add":
		r := model.Rule{Src: c.flags["src"], Dst: c.flags["dst"], Rte: c.flags["rte"]}
		if c.shadow != nil {
			c.shadow.rules = append(c.shadow.rules, r)
			return "", nil
		}
		return "", c.node.AddRule(r, c.number("idx", -1))
	case "del":
		i := c.number("idx", -1)
		if c.shadow != nil && i >= 0 && i < len(rules) {
			c.shadow.rules = slices.Delete(c.shadow.rules, i, i+1)
			return "", nil
		}
		return "", c.node.DelRule(i)
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
