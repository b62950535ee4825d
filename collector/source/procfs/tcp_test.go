package procfs

import (
	"fmt"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/collector"
)

// snmp is net/snmp, some lines of it, after a node sent segments and sent some again.
func snmp(sent, again any) string {
	return fmt.Sprintf("Icmp: InMsgs InErrors\nIcmp: 4 0\n"+
		"Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs "+
		"OutSegs RetransSegs InErrs OutRsts InCsumErrors\n"+
		"Tcp: 1 200 120000 -1 354 870 129 0 24 43865 %v %v 0 851 0\nUdp: InDatagrams\nUdp: 3\n", sent, again)
}

// The share of the segments that were sent again is known where enough are sent.
func TestResentSegments(t *testing.T) {
	const none = -1.0 // absent
	for name, c := range map[string]struct {
		before, after string
		want          float64
		wrong         bool
	}{
		"three of a hundred": {snmp(1000, 5), snmp(10700, 305), 0.03, false},
		"none":               {snmp(1000, 5), snmp(10700, 5), 0, false},
		"few segments":       {snmp(1000, 5), snmp(1060, 35), none, false},
		"began anew":         {snmp(1000, 5), snmp(900, 0), none, false},
		"another order": {"Tcp: RetransSegs OutSegs\nTcp: 0 0\n",
			"Tcp: RetransSegs OutSegs\nTcp: 50 150\n", 0.25, false},
		"no such names":      {snmp(1, 1), "Tcp: InSegs\nTcp: 5\n", none, true},
		"values are cut off": {snmp(1, 1), "Tcp: OutSegs RetransSegs\nTcp: 5\n", none, true},
		"names alone":        {snmp(1, 1), "Tcp: OutSegs RetransSegs\n", none, true},
		"not a count":        {snmp(1, 1), snmp(5, "many"), none, true},
		"more values": {"Tcp: OutSegs RetransSegs\nTcp: 0 0 7\n",
			"Tcp: OutSegs RetransSegs\nTcp: 100 0 7\n", 0, false},
		"nothing about Tcp":   {snmp(1, 1), "Udp: InDatagrams\nUdp: 3\n", none, true},
		"not there any more ": {snmp(1, 1), "", none, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				proc := fstest.MapFS{"diskstats": {}, "net/snmp": {Data: []byte(c.before)}}
				s := New(Options{Root: "proc", Files: proc, Sys: fstest.MapFS{}})
				r := collector.Reading{Now: time.Now()}
				if err := s.Read(t.Context(), &r); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if proc["net/snmp"] = (&fstest.MapFile{Data: []byte(c.after)}); c.after == "" {
					delete(proc, "net/snmp")
				}
				r = collector.Reading{Now: time.Now()}
				if err := s.Read(t.Context(), &r); (err != nil) != c.wrong {
					t.Fatal(err)
				}
				if v, ok := collector.SampleOf(r.Samples, collector.ResentRatio); ok != (c.want != none) ||
					ok && !near(v, c.want) {
					t.Errorf("%v, known %v; want %v", v, ok, c.want)
				}
			})
		})
	}
}

// FuzzSegments: no text of net/snmp crashes the reader or makes a share below 0 or above 1.
func FuzzSegments(f *testing.F) {
	f.Add(snmp(1000, 5), snmp(2000, 10))
	f.Add("Tcp: OutSegs OutSegs RetransSegs\nTcp: 1 2 3\n", "Tcp:\nTcp:\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		proc := fstest.MapFS{}
		s := New(Options{Root: "proc", Files: proc, Sys: fstest.MapFS{}})
		at := time.Unix(1000, 0)
		for i, text := range []string{before, after} {
			proc["net/snmp"] = &fstest.MapFile{Data: []byte(text)}
			s.rates.Begin(at.Add(time.Duration(i) * time.Second))
			var r collector.Reading
			if s.segments(&r) != nil && len(r.Samples) > 0 {
				t.Error("an error and a value")
			}
			if v, ok := collector.SampleOf(r.Samples, collector.ResentRatio); ok && !(v >= 0 && v <= 1) {
				t.Errorf("a share of %v", v)
			}
		}
	})
}

// FuzzSys: no text of a file below /sys crashes the reader or makes a value below 0.
func FuzzSys(f *testing.F) {
	f.Add("0", "17", "100 Gb/sec (4X EDR)", "4294967295")
	f.Add("-1", "99999999999999999999", "0 Gb/sec (0X)", "")
	f.Fuzz(func(t *testing.T, pkg, count, rate, waited string) {
		const cpu = "devices/system/cpu/cpu0/"
		sys := fstest.MapFS{}
		for name, text := range map[string]string{cpu + "topology/physical_package_id": pkg,
			cpu + "thermal_throttle/package_throttle_count": count, ib + "rate": rate,
			cpu + "thermal_throttle/package_throttle_total_time_ms": count,
			ib + "counters/port_xmit_wait":                          waited,
			ib + "link_layer":                                       "InfiniBand", ib + "state": "4: ACTIVE"} {
			sys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		s := New(Options{Root: "proc", Files: fstest.MapFS{}, Sys: sys})
		at := time.Unix(1000, 0)
		for i := range 2 {
			s.rates.Begin(at.Add(time.Duration(i) * time.Second))
			s.listSys(at)
			var r collector.Reading
			for _, read := range []func(*collector.Reading) error{s.throttling, s.linkState} {
				_ = read(&r) // what is wrong is named
			}
			for _, v := range r.Samples {
				if !(v.Value >= 0) {
					t.Errorf("%v is %v", v.Metric, v.Value)
				}
			}
		}
	})
}
