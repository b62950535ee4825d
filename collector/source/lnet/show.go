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

// shownPeer is an entry of lnetctl peer show.
type shownPeer struct {
	Primary    string `yaml:"primary nid"`
	Interfaces []struct {
		NID, State string
		Statistics struct {
			Sent     *count `yaml:"send_count"`
			Received count  `yaml:"recv_count"`
			Gets     count  `yaml:"get_rtt_samples"`
			GetNanos count  `yaml:"get_rtt_avg_nsec"`
			PutAcks  count  `yaml:"put_ack_samples"`
			PutNanos count  `yaml:"put_ack_avg_nsec"`
		}
		ByKind struct {
			Put        *count
			Reply, Ack count
		} `yaml:"received_stats"`
	} `yaml:"peer ni"`
}

// ParsePeerShow reads lnetctl peer show at any verbosity.
func ParsePeerShow(text []byte) (out []PeerInterface, err error) {
	var peers []shownPeer
	if err := readShown(text, "peer", &peers); err != nil {
		return nil, err
	}
	for i, peer := range peers {
		if peer.Primary == "" {
			return nil, fmt.Errorf("peer %d of %d has no primary nid", i+1, len(peers))
		}
		for _, ni := range peer.Interfaces {
			if ni.NID == "" {
				return nil, fmt.Errorf("an interface of %q without a nid", peer.Primary)
			}
			p := PeerInterface{Primary: peer.Primary, NID: ni.NID, State: ni.State}
			all, kinds := &ni.Statistics, &ni.ByKind
			if p.Counted = all.Sent != nil; p.Counted {
				p.Messages = uint64(*all.Sent + all.Received)
			}
			if p.ByKind = kinds.Put != nil; p.ByKind {
				p.FromPut, p.FromReply, p.FromAck = uint64(*kinds.Put), uint64(kinds.Reply), uint64(kinds.Ack)
			}
			p.RoundTrips = RoundTrip{uint64(all.Gets + all.PutAcks),
				uint64(all.Gets*all.GetNanos + all.PutAcks*all.PutNanos)}
			out = append(out, p)
		}
	}
	return out, nil
}

// ParseNetShow reads the node's own network ids from lnetctl net show, without the loopback's.
func ParseNetShow(text []byte) (nids []string, err error) {
	var nets []struct {
		Interfaces []struct{ NID string } `yaml:"local NI(s)"`
	}
	err = readShown(text, "net", &nets)
	for _, net := range nets {
		for _, ni := range net.Interfaces {
			if ni.NID != "" && !strings.HasSuffix(ni.NID, "@lo") {
				nids = append(nids, ni.NID)
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
	var routes []struct {
		Net, State, Gateway string
		Hop                 *signed
		Priority            signed
	}
	if err := readShown(text, "route", &routes); err != nil {
		return nil, err
	}
	for _, e := range routes {
		if e.Gateway == "" {
			return nil, fmt.Errorf("a route to %q without a gateway", e.Net)
		}
		r := Route{Net: e.Net, Hops: -1, Priority: int(e.Priority), State: e.State, Router: e.Gateway}
		if e.Hop != nil {
			r.Hops = int(*e.Hop)
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
	var rules []struct {
		Idx      *signed
		Dst, Rte string
	}
	if err := readShown(text, "udsp", &rules); err != nil {
		return nil, err
	}
	for i, e := range rules {
		if e.Idx == nil || *e.Idx < 0 {
			return nil, fmt.Errorf("rule %d of %d has no index", i+1, len(rules))
		}
		out = append(out, Rule{int(*e.Idx), e.Dst, e.Rte})
	}
	return out, nil
}

// ParseGlobal reads one setting of lnetctl global show; has is false where the release lacks it.
func ParseGlobal(text []byte, name string) (value string, has bool, err error) {
	var settings map[string]yaml.Node
	err = readShown(text, "global", &settings)
	if err == nil && settings == nil {
		err = errors.New("it printed nothing")
	}
	of, has := settings[name]
	return of.Value, has, err
}

// count is what has been counted since LNet was started.
type count uint64

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *count) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a count", text)
	}
	*c = count(n)
	return nil
}

// signed is a number of 32 bits that may be printed with or without its sign.
type signed int

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *signed) UnmarshalText(text []byte) error {
	n, err := parseSigned(string(text))
	if err != nil {
		return fmt.Errorf("%.40q is not a number", text)
	}
	*s = signed(n)
	return nil
}

// readShown reads a section of what lnetctl printed. Nothing at all is a section without entries; something without the
// section is an error, such as the one that it prints as YAML.
func readShown(text []byte, section string, into any) error {
	in := yaml.NewDecoder(bytes.NewReader(quoteNames(text)))
	for {
		var doc yaml.Node
		err := in.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("not YAML: %w", err)
		}
		var sections map[string]yaml.Node
		_ = doc.Decode(&sections) // what has no keys has no section
		if of, has := sections[section]; has {
			return of.Decode(into)
		}
	}
	if len(bytes.TrimSpace(text)) > 0 {
		return fmt.Errorf("no section %q in %.200q", section, text)
	}
	return nil
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
