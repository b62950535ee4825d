package procfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"fairway/collector"
)

// factsEvery is how often a node says how it is set up.
const factsEvery = time.Minute

// mostFact bounds one fact, in bytes.
const mostFact = 64

// facts are files whose values nodes that do the same work should share. Their names are those of doctor's table.
var facts = []struct {
	name string
	sys  bool // below /sys
	file string
}{
	{"kernel", false, "sys/kernel/osrelease"},
	{"Lustre", true, "fs/lustre/version"},
	{"nfsd threads", false, "fs/nfsd/threads"},
	{"NFS slots", false, "sys/sunrpc/tcp_max_slot_table_entries"},
	{"TCP congestion control", false, "sys/net/ipv4/tcp_congestion_control"},
	{"TCP receive buffer", false, "sys/net/ipv4/tcp_rmem"},
	{"TCP send buffer", false, "sys/net/ipv4/tcp_wmem"},
	{"vm.dirty_ratio", false, "sys/vm/dirty_ratio"},
	{"CPU governor", true, "devices/system/cpu/cpu0/cpufreq/scaling_governor"},
}

// describe notes how the node is set up: name=value, with semicolons between them. What is not there is left out.
func (s *Source) describe(into *collector.Reading) {
	var all []string
	add := func(name, value string) {
		value = strings.Join(strings.Fields(value), " ")
		if value != "" && len(value) <= mostFact && !strings.ContainsAny(value, ";=") {
			all = append(all, name+"="+value)
		}
	}
	for _, f := range facts {
		from := s.files
		if f.sys {
			from = s.opt.Sys
		}
		if text, err := fs.ReadFile(from, f.file); err == nil {
			add(f.name, strings.TrimPrefix(string(text), "lustre: "))
		}
	}
	add("MTU", strings.Join(s.mtus(), " "))
	into.Note = strings.Join(all, ";")
}

// mtus are the MTUs of the links that are up and counted, each once.
func (s *Source) mtus() (out []string) {
	links, _ := fs.ReadDir(s.opt.Sys, "class/net")
	for _, l := range links {
		state, _ := fs.ReadFile(s.opt.Sys, path.Join("class/net", l.Name(), "operstate"))
		if strings.TrimSpace(string(state)) != "up" || s.skip(link, l.Name(), s.opt.SkipLinks) {
			continue
		}
		if mtu, err := fs.ReadFile(s.opt.Sys, path.Join("class/net", l.Name(), "mtu")); err == nil {
			out = append(out, strings.TrimSpace(string(mtu)))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
