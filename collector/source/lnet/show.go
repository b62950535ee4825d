package lnet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// PeerInterface is one network interface of a peer, as lnetctl peer show has it.
type PeerInterface struct {
	Primary, NID, State string
	Messages            uint64 // sent to it and received from it; with -v 1
	Counted             bool   // Messages are known
	// FromPut, FromReply and FromAck are the messages that came from it by kind; with -v 2, 2.11 and later.
	FromPut, FromReply, FromAck uint64
	ByKind                      bool      // they are known
	RoundTrips                  RoundTrip // with -v 1, 2.17.55 and later
}

// RoundTrip counts answered requests since LNet was started, and the nanoseconds that they took in all.
type RoundTrip struct{ Count, NanosecondsSum uint64 }

// ParsePeerShow reads lnetctl peer show at any verbosity.
func ParsePeerShow(text []byte) (out []PeerInterface, err error) {
	peers, err := parseShown(text, "peer")
	if err != nil {
		return nil, err
	}
	for _, peer := range peers {
		primary, named := valueOf(peer, "primary nid")
		if !named {
			return nil, fmt.Errorf("line %d: a peer without a primary nid", peer.Line)
		}
		for _, ni := range entries(childOf(peer, "peer ni")) {
			p := PeerInterface{Primary: primary}
			p.NID, _ = valueOf(ni, "nid")
			p.State, _ = valueOf(ni, "state")
			if p.NID == "" {
				return nil, fmt.Errorf("line %d: an interface of %q without a nid", ni.Line, primary)
			}
			if err := p.readCounts(childOf(ni, "statistics"), childOf(ni, "received_stats")); err != nil {
				return nil, fmt.Errorf("%s: %w", p.NID, err)
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// readCounts reads the counts of an interface, in all and by kind.
func (p *PeerInterface) readCounts(all, received *yaml.Node) (err error) {
	count := func(of *yaml.Node, name string) (n uint64) {
		text, has := valueOf(of, name)
		if !has {
			return 0
		}
		n, bad := strconv.ParseUint(text, 10, 64)
		if bad != nil && err == nil {
			err = fmt.Errorf("%s: %.40q is not a count", name, text)
		}
		return n
	}
	_, p.Counted = valueOf(all, "send_count")
	p.Messages = count(all, "send_count") + count(all, "recv_count")
	for _, kind := range []string{"get_rtt", "put_ack"} {
		n := count(all, kind+"_samples")
		p.RoundTrips.Count += n
		p.RoundTrips.NanosecondsSum += n * count(all, kind+"_avg_nsec")
	}
	_, p.ByKind = valueOf(received, "put")
	p.FromPut, p.FromReply, p.FromAck = count(received, "put"), count(received, "reply"), count(received, "ack")
	return err
}

// ParseNetShow reads the node's own network ids from lnetctl net show, without the loopback's.
func ParseNetShow(text []byte) (nids []string, err error) {
	nets, err := parseShown(text, "net")
	for _, net := range nets {
		for _, ni := range entries(childOf(net, "local NI(s)")) {
			if nid, _ := valueOf(ni, "nid"); nid != "" && !strings.HasSuffix(nid, "@lo") {
				nids = append(nids, nid)
			}
		}
	}
	if err == nil && len(nids) == 0 {
		err = errors.New("no network id but the loopback's")
	}
	return nids, err
}

// ParseRouteShow reads lnetctl route show; a node without routes prints nothing.
func ParseRouteShow(text []byte) (out []Route, err error) {
	routes, err := parseShown(text, "route")
	if err != nil {
		return nil, err
	}
	for _, e := range routes {
		r := Route{Hops: -1}
		r.Net, _ = valueOf(e, "net")
		r.State, _ = valueOf(e, "state")
		if r.Router, _ = valueOf(e, "gateway"); r.Router == "" {
			return nil, fmt.Errorf("line %d: a route without a gateway", e.Line)
		}
		for name, to := range map[string]*int{"hop": &r.Hops, "priority": &r.Priority} {
			if err := readSigned(e, name, to); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// Rule is one selection policy of the user (udsp).
type Rule struct {
	Index         int
	To, Preferred string // the destination, and the router that is preferred for it
}

// ParseRules reads lnetctl udsp show; a node without rules prints nothing.
func ParseRules(text []byte) (out []Rule, err error) {
	rules, err := parseShown(text, "udsp")
	if err != nil {
		return nil, err
	}
	for _, e := range rules {
		r := Rule{Index: -1}
		r.To, _ = valueOf(e, "dst")
		r.Preferred, _ = valueOf(e, "rte")
		if err := readSigned(e, "idx", &r.Index); err != nil {
			return nil, err
		}
		if r.Index < 0 {
			return nil, fmt.Errorf("line %d: a rule without an index", e.Line)
		}
		out = append(out, r)
	}
	return out, nil
}

// ParseGlobal reads one setting of lnetctl global show; has is false where the release lacks it.
func ParseGlobal(text []byte, name string) (value string, has bool, err error) {
	section, err := sectionOf(text, "global")
	if err == nil && section == nil {
		err = errors.New("it printed nothing")
	}
	value, has = valueOf(section, name)
	return value, has, err
}

// parseShown returns the entries of one section of what lnetctl printed.
func parseShown(text []byte, section string) ([]*yaml.Node, error) {
	of, err := sectionOf(text, section)
	if err != nil {
		return nil, err
	}
	if of != nil && of.Kind != yaml.SequenceNode && of.Tag != "!!null" {
		return nil, fmt.Errorf("line %d: %s is not a list", of.Line, section)
	}
	return entries(of), nil
}

// sectionOf finds a section in what lnetctl printed. Nothing at all is a section without entries; something without the
// section is an error, such as the one that it prints as YAML.
func sectionOf(text []byte, section string) (*yaml.Node, error) {
	in := yaml.NewDecoder(bytes.NewReader(quoteNames(text)))
	for {
		var doc yaml.Node
		err := in.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("not YAML: %w", err)
		}
		if len(doc.Content) > 0 {
			if of := childOf(doc.Content[0], section); of != nil {
				return of, nil
			}
		}
	}
	if len(bytes.TrimSpace(text)) > 0 {
		return nil, fmt.Errorf("no section %q in %.200q", section, text)
	}
	return nil, nil
}

// quoteNames quotes values that YAML reads as something else, such as *@tcp, a whole net.
func quoteNames(text []byte) []byte {
	var out []byte
	rest := text
	for {
		i := bytes.Index(rest, []byte(": "))
		if i < 0 || i+2 >= len(rest) {
			break
		}
		i += 2
		if end := bytes.IndexByte(rest[i:], '\n'); end > 0 && bytes.IndexByte([]byte("*&@%![{|>`"), rest[i]) >= 0 {
			out = append(append(out, rest[:i]...), strconv.Quote(string(rest[i:i+end]))...)
			i += end
		} else {
			out = append(out, rest[:i]...)
		}
		rest = rest[i:]
	}
	return append(out, rest...)
}

// entries are a list's.
func entries(of *yaml.Node) []*yaml.Node {
	if of == nil || of.Kind != yaml.SequenceNode {
		return nil
	}
	return of.Content
}

// childOf finds a key of a mapping; nil where it has no such key.
func childOf(of *yaml.Node, key string) *yaml.Node {
	if of == nil || of.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			return of.Content[i+1]
		}
	}
	return nil
}

// valueOf is the text of a key of a mapping.
func valueOf(of *yaml.Node, key string) (text string, has bool) {
	value := childOf(of, key)
	if value == nil || value.Kind != yaml.ScalarNode {
		return "", false
	}
	return value.Value, true
}

// readSigned reads a number of a mapping; one that is not there stays as it is.
func readSigned(of *yaml.Node, name string, to *int) error {
	text, has := valueOf(of, name)
	if !has {
		return nil
	}
	n, err := parseSigned(text)
	if err != nil {
		return fmt.Errorf("line %d: %s %.40q is not a number", of.Line, name, text)
	}
	*to = n
	return nil
}
