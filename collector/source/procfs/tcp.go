package procfs

import (
	"bytes"
	"errors"

	"fairway/collector"
)

// fewestSegments are the segments a second below which a share of them says nothing.
const fewestSegments = 100

// segments reads which share of the node's TCP segments were sent again.
func (s *Source) segments(into *collector.Reading) error {
	text, err := s.readFile("net/snmp")
	if err != nil {
		return err
	}
	sent, again, err := parseSegments(text)
	if err != nil {
		return err
	}
	first, known := s.rates.Rate(key{kind: tcp, field: 0}, sent)
	second, known2 := s.rates.Rate(key{kind: tcp, field: 1}, again)
	if all := first + second; known && known2 && all >= fewestSegments {
		into.Add(collector.ResentRatio, second/all)
	}
	return nil
}

// parseSegments finds OutSegs, which has no segment twice, and RetransSegs: a line of names, then one of values.
func parseSegments(text []byte) (sent, again uint64, err error) {
	var room, room2 [32][]byte
	var names [][]byte
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		if !bytes.HasPrefix(line, []byte("Tcp:")) {
			continue
		}
		if names == nil {
			names = collector.Fields(room[:0], line)
			continue
		}
		found := 0
		for i, value := range collector.Fields(room2[:0], line) {
			if i >= len(names) {
				break
			}
			to := &sent
			switch string(names[i]) {
			case "OutSegs":
			case "RetransSegs":
				to = &again
			default:
				continue
			}
			n, ok := collector.Decimal(value)
			if !ok {
				return 0, 0, errors.New(string(names[i]) + " of Tcp is not a count")
			}
			*to = n
			found++
		}
		const both = 2
		if found != both {
			return 0, 0, errors.New("the lines of Tcp have no OutSegs and RetransSegs")
		}
		return sent, again, nil
	}
	return 0, 0, errors.New("there are no two lines of Tcp")
}
