package lmt

import (
	"fmt"
	"strconv"
	"strings"

	"fairway/collector"
	"fairway/collector/topology"
)

// mdtOps are the operations of a metadata target's string, three numbers each: samples, sum, sum of
// squares. Version 1 has the first 21.
var mdtOps = []string{"open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getxattr",
	"process_config", "connect",
	"reconnect", "disconnect", "statfs", "create", "destroy", "setattr", "getattr", "llog_init", "notify", "quotactl",
	"read_bytes", "write_bytes"}

// cerebroWord returns the metric's name of a cerebro line: "ost: 2;host;...", and what follows it.
func cerebroWord(line string) (word, rest string, ok bool) {
	word, rest, ok = strings.Cut(line, ":")
	if !ok || strings.ContainsAny(word, ",;\t") {
		return "", "", false
	}
	return strings.TrimPrefix(word, "lmt_"), strings.TrimSpace(rest), true
}

// ParseCerebro reads one line of the form "ost: 2;host;cpu;mem;target;..." ("mdt:" and "router:" alike).
// ok is false for lines of other metrics, which have nothing of a target's load.
func ParseCerebro(line string) (out []Reading, ok bool, err error) {
	word, rest, ok := cerebroWord(line)
	if !ok {
		return nil, false, nil
	}
	switch word {
	case "ost", "mdt", "router":
	default:
		return nil, false, nil
	}
	f := strings.Split(strings.TrimSuffix(rest, ";"), ";")
	if len(f) < 4 {
		return nil, true, fmt.Errorf("%s: %d fields, want at least version;host;cpu;memory", word, len(f))
	}
	head := Reading{Kind: word, Host: topology.NodeID(f[1])}
	if head.CPUPercent, err = percent(f[2]); err == nil {
		head.MemoryPercent, err = percent(f[3])
	}
	if err != nil {
		return nil, true, fmt.Errorf("%s: %w", word, err)
	}
	switch version := word + " " + f[0]; version {
	case "ost 2":
		out, err = groups(head, f[4:], 15, ostGroup)
	case "mdt 1":
		out, err = groups(head, f[4:], 6+3*21, mdtGroup)
	case "mdt 3":
		out, err = groups(head, f[4:], 6+3*23, mdtGroup)
	case "router 1.0":
		out, err = groups(head, f[4:], 1, func(r *Reading, f []string) error { return counts(f, &r.RoutedBytesTotal) })
	default:
		err = fmt.Errorf("version %q is not known (ost 2, mdt 1 and 3, router 1.0)", collector.Clip(f[0]))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", word, err)
	}
	return out, true, err
}

// groups reads the targets of a string, n fields each. Those before a bad one are kept.
func groups(head Reading, f []string, n int, one func(*Reading, []string) error) (out []Reading, err error) {
	for ; len(f) > 0; f = f[n:] {
		if len(f) < n {
			return out, fmt.Errorf("target %d has %d fields, want %d", len(out)+1, len(f), n)
		}
		r := head
		if err := one(&r, f[:n]); err != nil {
			return out, fmt.Errorf("target %d: %w", len(out)+1, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func ostGroup(r *Reading, f []string) error {
	r.setTarget(f[0])
	r.Recovery = f[14]
	if err := space(r, f); err != nil {
		return err
	}
	return counts(f[5:9], &r.ReadBytesTotal, &r.WriteBytesTotal, nil, &r.Exports)
}

func mdtGroup(r *Reading, f []string) error {
	r.setTarget(f[0])
	r.Recovery = f[5]
	if err := space(r, f); err != nil {
		return err
	}
	r.OpsTotal = map[string]uint64{}
	for i := 6; i < len(f); i += 3 {
		var n *uint64
		if err := counts(f[i:], &n); err != nil {
			return err
		}
		r.OpsTotal[mdtOps[(i-6)/3]] = *n
	}
	return nil
}

// space reads inodes and kilobytes, each free and in total.
func space(r *Reading, f []string) error {
	var inodes, kbytes *uint64
	if err := counts(f[1:], &r.InodesFree, &inodes, &r.KBytesFree, &kbytes); err != nil {
		return err
	}
	r.InodesUsed, _ = minus(inodes, r.InodesFree, true)
	r.KBytesUsed, _ = minus(kbytes, r.KBytesFree, true)
	return nil
}

// counts reads numbers; a nil place skips one.
func counts(f []string, to ...**uint64) error {
	for i, p := range to {
		if p == nil {
			continue
		}
		n, err := strconv.ParseUint(f[i], 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a count", collector.Clip(f[i]))
		}
		*p = &n
	}
	return nil
}

func percent(s string) (*float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 1e6) {
		return nil, fmt.Errorf("%q is not a percentage", collector.Clip(s))
	}
	return &v, nil
}
