package lwfs

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"

	"fairway/collector/topology"
)

// Quarter is a quarter of a cabinet, 256 compute nodes that share a default forwarder.
type Quarter struct{ Cabinet, Part int }

// quarterNodes is how many compute nodes a quarter has; four make a cabinet.
const quarterNodes = 256

var (
	condition = regexp.MustCompile(`\$CABID\s+-eq\s+(\d+)\s*\].*\$MIDPID\s+-eq\s+(\d+)\s*\]`)
	volume    = regexp.MustCompile(`lwfs_([A-Za-z]+[0-9]+)(?:_[a-z]+)?\.vol`)
)

// ParseCompID reads the shell text that links each quarter of a cabinet to its forwarder's volume. A
// quarter that is not in it has no default forwarder.
func ParseCompID(b []byte) (map[Quarter]topology.ForwarderID, error) {
	out := map[Quarter]topology.ForwarderID{}
	var at *Quarter
	for n := 1; len(b) > 0; n++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		if m := condition.FindSubmatch(line); m != nil {
			c, err1 := strconv.Atoi(string(m[1]))
			p, err2 := strconv.Atoi(string(m[2]))
			if err1 != nil || err2 != nil || p > 3 {
				return nil, fmt.Errorf("line %d: cabinet %s, quarter %s: a cabinet has quarters 0 to 3", n, m[1], m[2])
			}
			at = &Quarter{c, p}
			continue
		}
		if m := volume.FindSubmatch(line); m != nil && at != nil {
			id := topology.ForwarderID(m[1])
			if was, ok := out[*at]; ok && was != id {
				return nil, fmt.Errorf("line %d: cabinet %d quarter %d has %s and %s", n, at.Cabinet, at.Part, was, id)
			}
			out[*at] = id
			at = nil
		}
	}
	return out, nil
}

// QuarterOf is where a compute node stands, by its number.
func QuarterOf(compute int) Quarter {
	return Quarter{compute / (4 * quarterNodes), compute / quarterNodes % 4}
}

// ComputeID is the number of the compute node with the address 172.a.b.c; ok is false for any other.
func ComputeID(ip string) (id int, ok bool) {
	var a, b, c int
	if n, err := fmt.Sscanf(ip, "172.%d.%d.%d", &a, &b, &c); n != 3 || err != nil {
		return 0, false
	}
	return a*1024 + b*8 + c, true
}
