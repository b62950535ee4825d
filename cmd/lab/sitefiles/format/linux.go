package format

import (
	"fmt"
	"math"
	"strings"
	"time"

	"fairway/cmd/lab/sitefiles/model"
)

// SchedStat is a thread's schedstat: on a processor and waiting for one, ns, and how often it ran.
func SchedStat(ran, waited time.Duration, slices uint64) string {
	return fmt.Sprintf("%d %d %d\n", ran.Nanoseconds(), waited.Nanoseconds(), slices)
}

// Pressure is a file of /proc/pressure; full is left out where the kernel has no such line.
func Pressure(some time.Duration, rate float64, full bool) string {
	line := fmt.Sprintf("avg10=%.2f avg60=%.2f avg300=%.2f total=%d\n", 100*rate, 100*rate, 100*rate,
		some.Microseconds())
	if full {
		return "some " + line + "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
	}
	return "some " + line
}

// NetDev is /proc/net/dev.
func NetDev(links []*model.NI) string {
	var b strings.Builder
	b.WriteString("Inter-|   Receive                                                |  Transmit\n" +
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo " +
		"colls carrier compressed\n")
	row := func(name string, in, out uint64) {
		fmt.Fprintf(&b, "%6s: %7d %7d    0    0    0     0          0         0 %8d %7d    0    0    0     0       0"+
			"          0\n", name, in, in/1400, out, out/1400)
	}
	row("lo", 1664039, 1664039)
	for _, ni := range links {
		row(ni.Link, ni.InBytes, ni.OutBytes)
	}
	return b.String()
}

// CPUStat is /proc/stat of a node whose only work is its network's.
func CPUStat(c model.CPU, up time.Duration, booted time.Time) string {
	const tick = 10 * time.Millisecond
	work := int64(c.Ran / tick)
	idle := max(0, int64(up/tick)*int64(c.Cores)-work)
	var b strings.Builder
	fmt.Fprintf(&b, "cpu  %d %d %d %d %d %d %d %d %d %d\n", 0, 0, work/2, idle, 0, 0, work-work/2, 0, 0, 0)
	for i := range int64(c.Cores) {
		n := int64(c.Cores)
		fmt.Fprintf(&b, "cpu%d %d %d %d %d %d %d %d %d %d %d\n", i, 0, 0, work/2/n, idle/n, 0, 0, (work-work/2)/n, 0, 0,
			0)
	}
	fmt.Fprintf(&b, "intr 0\nctxt %d\nbtime %d\nprocesses 2810\nprocs_running 1\nprocs_blocked 0\n", c.Slices,
		booted.Unix())
	return b.String()
}

// Throttling are the files of the processors of one package: each has the package's counts, of how often they began to
// be throttled and, since Linux 5.5, for how long they were.
func Throttling(cores int, times uint64, throttled time.Duration, timed bool) map[string]string {
	files := map[string]string{}
	for i := range cores {
		cpu := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", i)
		files[cpu+"topology/physical_package_id"] = "0\n"
		files[cpu+"thermal_throttle/package_throttle_count"] = fmt.Sprintf("%d\n", times)
		if timed {
			files[cpu+"thermal_throttle/package_throttle_total_time_ms"] = fmt.Sprintf("%d\n", throttled.Milliseconds())
		}
	}
	return files
}

// SNMP is what /proc/net/snmp has of TCP: segments that were sent, and those of them that were sent again.
func SNMP(sent, again uint64) string {
	return "Ip: Forwarding DefaultTTL InReceives\nIp: 2 64 43865\n" +
		"Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs " +
		"OutSegs RetransSegs InErrs OutRsts InCsumErrors\n" +
		fmt.Sprintf("Tcp: 1 200 120000 -1 354 870 129 0 24 %d %d %d 0 851 0\n", sent, sent, again)
}

// Infiniband are the files of one port of which a share of its lanes is left: bytes are counted in words of four, and
// packets that came with errors.
func Infiniband(in, out uint64, rateBits, left float64, wrong uint64) map[string]string {
	const word, lanes = 4, 4
	return map[string]string{
		"counters/port_rcv_data":      fmt.Sprintf("%d\n", in/word),
		"counters/port_xmit_data":     fmt.Sprintf("%d\n", out/word),
		"counters/port_xmit_wait":     "0\n",
		"counters/symbol_error":       "0\n",
		"counters/link_downed":        "0\n",
		"counters/port_rcv_errors":    fmt.Sprintf("%d\n", min(wrong, math.MaxUint16)),
		"counters/port_xmit_discards": "0\n",
		"rate":                        fmt.Sprintf("%.4g Gb/sec (%.0fX EDR)\n", left*rateBits/1e9, left*lanes),
		"link_layer":                  "InfiniBand\n",
		"state":                       "4: ACTIVE\n",
	}
}

// NetClass are the files of a network card; infiniband is one whose link is a port's.
func NetClass(infiniband bool, rateBits float64) map[string]string {
	kind := "1\n"
	if infiniband {
		kind = "32\n"
	}
	return map[string]string{"type": kind, "carrier": "1\n", "operstate": "up\n", "device/vendor": "0x15b3\n",
		"speed": fmt.Sprintf("%.0f\n", rateBits/1e6)}
}

// FibTrie are the IPv4 addresses of a node in its table of local routes.
func FibTrie(own []string) string {
	var b strings.Builder
	b.WriteString("Local:\n  +-- 0.0.0.0/0 2 0 2\n     +-- 127.0.0.0/8 2 0 2\n        |-- 127.0.0.1\n")
	b.WriteString("           /32 host LOCAL\n")
	for _, a := range own {
		fmt.Fprintf(&b, "     |-- %s\n        /32 host LOCAL\n", a)
	}
	return b.String()
}
