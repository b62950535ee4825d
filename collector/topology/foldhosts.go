package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FoldHostList writes nodes as a host list that ParseHostList reads back, sorted: runs of names that
// differ in their last number alone are one entry, "cn[001-003,7],io1".
func FoldHostList(nodes []NodeID) string { return foldHosts(nodes, len(nodes), len(nodes)) }

// FoldShort is FoldHostList with the first three entries and four ranges of each, and how many more there are:
// "n[1,3,5,7,+1]".
func FoldShort(nodes []NodeID) string { return foldHosts(nodes, 3, 4) }

func foldHosts(nodes []NodeID, entries, most int) string {
	first := func(list []string, n int) string {
		if more := len(list) - n; more > 0 {
			list = append(list[:n], fmt.Sprintf("+%d", more))
		}
		return strings.Join(list, ",")
	}
	type host struct {
		NodeID
		prefix, digits string
		number         uint64
	}
	all := make([]host, len(nodes))
	for i, n := range nodes {
		all[i] = host{NodeID: n}
		all[i].prefix, all[i].digits, all[i].number = lastNumber(string(n))
	}
	slices.SortFunc(all, func(a, b host) int {
		switch {
		case a.prefix != b.prefix:
			return strings.Compare(a.prefix, b.prefix)
		case len(a.digits) != len(b.digits):
			return len(a.digits) - len(b.digits)
		}
		return strings.Compare(a.digits, b.digits)
	})
	all = slices.CompactFunc(all, func(a, b host) bool { return a.NodeID == b.NodeID })
	var out []string
	for i := 0; i < len(all); {
		var ranges []string
		j := i
		for j < len(all) && all[j].prefix == all[i].prefix && all[j].digits != "" {
			last := j
			for last+1 < len(all) && all[last+1].prefix == all[j].prefix &&
				len(all[last+1].digits) == len(all[j].digits) && all[last+1].number == all[last].number+1 {
				last++
			}
			if ranges = append(ranges, all[j].digits); last > j {
				ranges[len(ranges)-1] += "-" + all[last].digits
			}
			j = last + 1
		}
		switch {
		case len(ranges) > 1 || len(ranges) == 1 && strings.Contains(ranges[0], "-"):
			out = append(out, fmt.Sprintf("%s[%s]", all[i].prefix, first(ranges, most)))
		default: // one name, or one without a number at its end
			out = append(out, string(all[i].NodeID))
			j = i + 1
		}
		i = j
	}
	return first(out, entries)
}

// lastNumber cuts the digits at a name's end, where they are a number that a host list can count.
func lastNumber(name string) (prefix, digits string, number uint64) {
	at := len(strings.TrimRight(name, "0123456789"))
	if at == len(name) || len(name)-at > 9 {
		return name, "", 0
	}
	number, _ = strconv.ParseUint(name[at:], 10, 64) // at most nine digits
	return name[:at], name[at:], number
}
