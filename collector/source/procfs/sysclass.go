package procfs

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
)

// sysClass is what /sys has of a node's links and processors: it is looked for once a minute.
type sysClass struct {
	files    fs.FS
	ports    []string        // folders of InfiniBand's ports, those of RDMA over Ethernet among them
	octets   [][2]string     // files of the bytes that cards received and sent which count them in none of these
	cards    []string        // physical network cards; an InfiniBand card's link is its port's
	carriers map[string]bool // links of net/dev that count where any is known: others pass on what these carry
	ipoib    map[string]bool // links of net/dev whose bytes a port or card counts, too
	stacked  map[string]bool // disks that are made of others, and links that are
	rated    map[string]bool // cards whose rate was known once
	packages []string        // thermal_throttle of one processor of each package
	listed   time.Time
}

// listSys finds the ports, cards and packages of processors. What is not there is left out.
func (s *Source) listSys(now time.Time) {
	c := &s.sys
	if !c.listed.IsZero() && now.Sub(c.listed) < listEvery {
		return
	}
	c.listed, c.ports, c.octets, c.cards, c.ipoib = now, nil, nil, nil, map[string]bool{}
	c.carriers, c.stacked = map[string]bool{}, map[string]bool{}
	if c.rated == nil {
		c.rated = map[string]bool{}
	}
	for _, pattern := range []string{"block/*/slaves/*", "class/net/*/lower_*"} {
		made, _ := fs.Glob(c.files, pattern) // the patterns are good
		for _, m := range made {
			of := strings.TrimSuffix(path.Dir(m), "/slaves")
			c.stacked[path.Base(of)] = true
		}
	}
	c.listPackages(s)
	counted := false
	ports, _ := fs.Glob(c.files, "class/infiniband/*/ports/*") // the pattern is good
	for _, p := range ports {
		if !s.skip(link, s.intern([]byte(strings.Split(p, "/")[2])), s.opt.SkipLinks) {
			c.ports = append(c.ports, p)
			if s.says(p+"/counters/port_rcv_data") == "" { // Amazon's EFA
				c.addOctets(s, p+"/hw_counters/rx_bytes", p+"/hw_counters/tx_bytes")
			}
			counted = counted || s.says(p+"/link_layer") == "InfiniBand" && s.says(p+"/counters/port_rcv_data") != ""
		}
	}
	slingshot, _ := fs.Glob(c.files, "class/cxi/cxi[0-9]*") // the pattern is good
	for _, card := range slingshot {
		number := strings.TrimPrefix(path.Base(card), "cxi")
		if name := "hsn" + number; !s.skip(link, name, s.opt.SkipLinks) {
			c.ipoib[name] = c.addOctets(s, card+"/device/telemetry/hni_sts_rx_ok_octets",
				card+"/device/telemetry/hni_sts_tx_ok_octets")
		}
	}
	const infiniband = "32" // the kernel's number of the hardware
	nets, _ := fs.Glob(c.files, "class/net/*")
	for _, n := range nets {
		name := path.Base(n)
		if s.says(n+"/type") == infiniband {
			c.ipoib[name], c.carriers[name] = counted, true
			continue
		}
		if strings.Contains(s.says(n+"/phys_port_name"), "pf") {
			continue // it represents a function of a card that switches by itself, whose port counts all
		}
		_, virtual := fs.Stat(c.files, n+"/device")
		_, whole := fs.Stat(c.files, n+"/device/physfn") // virtual functions come and go with containers
		if virtual == nil {
			c.carriers[name] = true
		}
		// A virtual machine's card that hands its traffic to a function of the host's has that as its lower one.
		card := virtual == nil && whole != nil && !c.stacked[name]
		if card && !s.skip(link, s.intern([]byte(name)), s.opt.SkipLinks) {
			c.cards = append(c.cards, n)
		}
	}
}

// addOctets takes a card's files of bytes, if they are there.
func (c *sysClass) addOctets(s *Source, received, sent string) (there bool) {
	if there = s.says(received) != "" && s.says(sent) != ""; there {
		c.octets = append(c.octets, [2]string{received, sent})
	}
	return there
}

// says is a file of one line; "" where it is not there, and where its driver does not serve it: a port's that counts
// nothing (iWARP's) says so.
func (s *Source) says(name string) string {
	text, err := fs.ReadFile(s.sys.files, name)
	if text = bytes.TrimSpace(text); err != nil || bytes.HasPrefix(text, []byte("N/A")) {
		return ""
	}
	return string(text)
}

// number is a counter; ok is false where says has none.
func (s *Source) number(name string) (v uint64, ok bool, err error) {
	text := s.says(name)
	if text == "" {
		return 0, false, nil
	}
	text, _, _ = strings.Cut(text, "@") // behind it is when a card of Slingshot counted
	if v, ok = collector.Decimal([]byte(text)); !ok {
		return 0, false, fmt.Errorf("%s of sys is %.40q, want a count", name, text)
	}
	return v, true, nil
}

// addPorts adds what the ports moved by RDMA. known is false where a counter of 32 bits stands at its end: it stays
// there, and what goes on is not known.
func (s *Source) addPorts(rx, tx *collector.Total) (known bool, err error) {
	const word, end = 4, 1<<32 - 1
	for _, p := range s.sys.ports {
		for i, to := range []*collector.Total{rx, tx} {
			name := [...]string{"port_rcv_data", "port_xmit_data"}[i]
			words, wide, err := s.number(p + "/counters_ext/" + name + "_64")
			there := wide
			if err == nil && !wide {
				words, there, err = s.number(p + "/counters/" + name)
			}
			switch {
			case err != nil:
				return false, err
			case !there:
				continue
			case !wide && words == end:
				return false, nil
			}
			s.rates.AddTo(to, key{kind: port, name: p, field: uint8(i)}, word*words)
		}
	}
	for _, files := range s.sys.octets {
		for i, to := range []*collector.Total{rx, tx} {
			octets, there, err := s.number(files[i])
			if err != nil {
				return false, err
			}
			if there {
				s.rates.AddTo(to, key{kind: port, name: files[i]}, octets)
			}
		}
	}
	return true, nil
}

// portErrors are the counters of link_errors. They are of 8 and 16 bits and stay at their end.
var portErrors = [...]string{"symbol_error", "link_downed", "port_rcv_errors", "port_xmit_discards"}

// waiting adds the ticks in which a port could not send. known is false where the counter, of 32 bits, stands at its
// end: within minutes of waiting, where nobody resets it.
func (s *Source) waiting(p string, ticks *collector.Total) (known bool, err error) {
	const field, end = 2, 1<<32 - 1 // behind the fields of the port's bytes
	n, there, err := s.number(p + "/counters/port_xmit_wait")
	if err != nil || there && n == end {
		return false, err
	}
	if there {
		s.rates.AddTo(ticks, key{kind: port, name: p, field: field}, n)
	}
	return true, nil
}

// unknown16 and unknown32 are -1 as drivers of 16 and 32 bits write a rate that they do not know; others write 0.
const unknown16, unknown32 = 1<<16 - 1, 1<<32 - 1

// linkState reads the rates of the links that are up, and the errors of ports and how long they waited.
func (s *Source) linkState(into *collector.Reading) error {
	var errs, ticks collector.Total
	counted := true
	bits, fewest := 0.0, 0.0
	for _, p := range s.sys.ports {
		for i, name := range portErrors {
			const behind = 3 // the fields of the port's bytes and of its waiting
			n, ok, err := s.number(p + "/counters/" + name)
			if err != nil {
				return err
			}
			if ok {
				s.rates.AddTo(&errs, key{kind: port, name: p, field: uint8(behind + i)}, n)
			}
		}
		// The width of a port of RDMA over Ethernet is a way to write its rate, which its card has.
		if s.says(p+"/link_layer") != "InfiniBand" || !strings.HasSuffix(s.says(p+"/state"), "ACTIVE") {
			continue
		}
		known, err := s.waiting(p, &ticks)
		if err != nil {
			return err
		}
		counted = counted && known
		if rate, lanes, ok := parseRate(s.says(p + "/rate")); ok {
			bits += rate
			if fewest == 0 || lanes < fewest {
				fewest = lanes
			}
		}
	}
	known := true
	for _, n := range s.sys.cards {
		if s.says(n+"/carrier") != "1" {
			continue
		}
		const mega = 1e6
		speed, ok := collector.Decimal([]byte(s.says(n + "/speed")))
		if ok && speed > 0 && speed != unknown16 && speed < unknown32 {
			bits += mega * float64(speed)
			s.sys.rated[n] = true
		} else if s.sys.rated[n] {
			known = false
		}
	}
	into.AddTotal(collector.LinkErrors, &errs)
	if counted {
		into.AddTotal(collector.LinkWaitTicks, &ticks)
	}
	// Without one link's rate the sum would look like a link that has become slower. Cards that never say theirs, as a
	// management controller's do, are not in it.
	if known && bits > 0 {
		into.Add(collector.LinkRateBits, bits)
	}
	if fewest > 0 {
		into.Add(collector.LinkLanes, fewest)
	}
	if len(s.sys.ports)+len(s.sys.cards) == 0 {
		return fs.ErrNotExist
	}
	return nil
}

// parseRate reads "100 Gb/sec (4X EDR)"; the name of the speed is missing at some.
func parseRate(text string) (bits, lanes float64, ok bool) {
	f := strings.Fields(text)
	const fields, giga = 3, 1e9
	if len(f) < fields || f[1] != "Gb/sec" {
		return 0, 0, false
	}
	rate, err := strconv.ParseFloat(f[0], 64)
	width, isWidth := strings.CutSuffix(strings.Trim(f[2], "()"), "X")
	n, notNumber := strconv.ParseUint(width, 10, 8)
	if err != nil || notNumber != nil || !isWidth || n == 0 || !(rate > 0 && rate < 1e6) {
		return 0, 0, false
	}
	return rate * giga, float64(n), true
}
