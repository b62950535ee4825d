package procfs

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/collector"
)

const (
	ib   = "class/infiniband/mlx5_0/ports/1/"
	roce = "class/infiniband/mlx5_1/ports/1/"
)

// linksOf are the files of an InfiniBand port with its interface, a card with RDMA over Ethernet, a virtual function of
// it, and links that are no cards or down.
func linksOf() map[string]string {
	return map[string]string{
		ib + "link_layer": "InfiniBand\n", ib + "state": "4: ACTIVE\n", ib + "rate": "100 Gb/sec (4X EDR)\n",
		ib + "counters/port_rcv_data": "1000\n", ib + "counters/port_xmit_data": "2000\n",
		ib + "counters/port_xmit_wait": "500\n",
		ib + "counters/symbol_error":   "1\n", ib + "counters/port_rcv_errors": "65535\n",
		roce + "link_layer": "Ethernet\n", roce + "state": "4: ACTIVE\n", roce + "rate": "25 Gb/sec (1X EDR)\n",
		roce + "counters/port_rcv_data": "10\n", roce + "counters/port_xmit_data": "10\n",
		"class/net/ib0/type": "32\n", "class/net/ib0/device/vendor": "0x15b3\n", "class/net/ib0/speed": "100000\n",
		"class/net/ib0/carrier": "1\n",
		"class/net/eth0/type":   "1\n", "class/net/eth0/device/vendor": "0x15b3\n", "class/net/eth0/speed": "25000\n",
		"class/net/eth0/carrier": "1\n",
		"class/net/vf0/type":     "1\n", "class/net/vf0/device/physfn/vendor": "0x15b3\n",
		"class/net/vf0/speed":   "25000\n",
		"class/net/vf0/carrier": "1\n",
		"class/net/bond0/type":  "1\n", "class/net/bond0/speed": "25000\n", "class/net/bond0/carrier": "1\n",
		"class/net/eth1/type": "1\n", "class/net/eth1/device/vendor": "0x15b3\n", "class/net/eth1/speed": "-1\n",
		"class/net/eth1/carrier": "0\n",
		"class/net/eth2/type":    "1\n", "class/net/eth2/device/vendor": "0x15b3\n", "class/net/eth2/speed": "25000\n",
		"class/net/eth2/carrier": "0\n",
	}
}

// noPMA is what ports say whose driver counts nothing.
var noPMA = map[string]string{ib + "counters/port_rcv_data": "N/A (no PMA)\n",
	ib + "counters/port_xmit_data": "N/A (no PMA)\n", ib + "counters/symbol_error": "N/A (no PMA)\n",
	ib + "counters/port_rcv_errors": "N/A (no PMA)\n", roce + "counters/port_rcv_data": "N/A (no PMA)\n"}

// TestLinksOfSysClass: each byte and each link counts once, by RDMA or through the kernel, and what cannot be known is
// absent.
func TestLinksOfSysClass(t *testing.T) {
	const none = -1.0 // absent
	for name, c := range map[string]struct {
		before, after           map[string]string // what differs; "": the file is missing
		skip                    []string
		rx, bits, lanes, errors float64 // bytes and errors in the second
		wrong                   bool    // an error
	}{
		"as they are": {nil, nil, nil, 9000 + 4*600, 125e9, 4, 3, false},
		"the port runs on one lane": {nil, map[string]string{ib + "rate": "25 Gb/sec (1X EDR)\n"}, nil,
			9000 + 4*600, 50e9, 1, 3, false},
		"a rate without a name": {nil, map[string]string{ib + "rate": "2.5 Gb/sec (1X)\n"}, nil,
			9000 + 4*600, 27.5e9, 1, 3, false},
		"the port is down": {nil, map[string]string{ib + "state": "1: DOWN\n"}, nil, 9000 + 4*600, 25e9, none, 3,
			false},
		"a counter at its end": {map[string]string{ib + "counters/port_rcv_data": "4294967000\n"},
			map[string]string{ib + "counters/port_rcv_data": "4294967295\n"}, nil, none, 125e9, 4, 3, false},
		"the wider ones": {map[string]string{ib + "counters_ext/port_rcv_data_64": "5000000000\n",
			ib + "counters/port_rcv_data": "4294967295\n"},
			map[string]string{ib + "counters_ext/port_rcv_data_64": "5000000700\n",
				ib + "counters/port_rcv_data": "4294967295\n"}, nil, 9000 + 4*710, 125e9, 4, 3, false},
		"counters that were reset": {nil, map[string]string{ib + "counters/port_rcv_data": "0\n",
			ib + "counters/symbol_error": "0\n"}, nil, none, 125e9, 4, none, false},
		"no counters": {map[string]string{ib + "counters/port_rcv_data": "", ib + "counters/symbol_error": "",
			ib + "counters/port_rcv_errors": "", roce + "counters/port_rcv_data": ""},
			map[string]string{ib + "counters/port_rcv_data": "", ib + "counters/symbol_error": "",
				ib + "counters/port_rcv_errors": "", roce + "counters/port_rcv_data": ""}, nil,
			9000 + 500, 125e9, 4, none, false},
		"a rate of 16 bits that is not known": {nil, map[string]string{"class/net/eth0/speed": "65535\n"}, nil,
			9000 + 4*600, none, 4, 3, false},
		"a rate of 32 bits that is not known": {nil, map[string]string{"class/net/eth0/speed": "4294967295\n"}, nil,
			9000 + 4*600, none, 4, 3, false},
		"a rate that is not known": {nil, map[string]string{"class/net/eth0/speed": "-1\n"}, nil,
			9000 + 4*600, none, 4, 3, false},
		"a card that never says its rate": {map[string]string{"class/net/eth1/carrier": "1\n"},
			map[string]string{"class/net/eth1/carrier": "1\n"}, nil, 9000 + 4*600, 125e9, 4, 3, false},
		"a port that counts nothing": {noPMA, noPMA, nil, 9000 + 500, 125e9, 4, none, false},
		"left out":                   {nil, nil, []string{"lo", "mlx5_0"}, 9000 + 500 + 4*10, 25e9, none, none, false},
		"not a count": {nil, map[string]string{ib + "counters/symbol_error": "many\n"}, nil, 9000 + 4*600, none, none,
			none, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				proc, sys := fstest.MapFS{}, fstest.MapFS{}
				skip := c.skip
				if skip == nil {
					skip = []string{"lo"}
				}
				s := New(Options{Root: "proc", Files: proc, Sys: sys, SkipLinks: skip})
				read := func(dev string, differs map[string]string) (collector.Frame, error) {
					clear(sys)
					files := linksOf()
					maps.Copy(files, differs)
					for name, text := range files {
						if text != "" {
							sys[name] = &fstest.MapFile{Data: []byte(text)}
						}
					}
					proc["net/dev"] = &fstest.MapFile{Data: []byte(dev)}
					r := collector.Reading{Now: time.Now()}
					err := s.Read(t.Context(), &r)
					time.Sleep(time.Second)
					return collector.Frame{Samples: r.Samples}, err
				}
				const rest = " 7 0 0 0 0 0 0 5 7 0 0 0 0 0 0\n"
				if _, err := read("eth0: 1000"+rest+"ib0: 500"+rest, c.before); err != nil {
					t.Fatal(err)
				}
				later := map[string]string{ib + "counters/port_rcv_data": "1590\n",
					roce + "counters/port_rcv_data": "20\n",
					ib + "counters/symbol_error":    "4\n"}
				maps.Copy(later, c.after)
				f, err := read("eth0: 10000"+rest+"ib0: 1000"+rest, later)
				if (err != nil) != c.wrong {
					t.Fatal(err)
				}
				for m, want := range map[collector.Metric]float64{collector.LinkRxBytes: c.rx,
					collector.LinkRateBits: c.bits, collector.LinkLanes: c.lanes, collector.LinkErrors: c.errors} {
					if v, ok := f.Value(m); ok != (want != none) || ok && !near(v, want) {
						t.Errorf("%v = %v, known %v; want %v", m, v, ok, want)
					}
				}
			})
		})
	}
}

// TestLinkWaits: the ticks in which a port had to wait are known until their counter stands at its end.
func TestLinkWaits(t *testing.T) {
	const none = -1.0 // absent
	for name, c := range map[string]struct {
		before, after, layer string
		want                 float64
	}{"waits": {"500", "900", "InfiniBand", 400}, "the end": {"4294967000", "4294967295", "InfiniBand", none},
		"stays at its end": {"4294967295", "4294967295", "InfiniBand", none},
		"is reset":         {"4294967295", "7", "InfiniBand", none}, "Ethernet": {"500", "900", "Ethernet", none}} {
		synctest.Test(t, func(t *testing.T) {
			sys := fstest.MapFS{}
			s := New(Options{Root: "proc", Files: fstest.MapFS{}, Sys: sys})
			var r collector.Reading
			for _, waited := range []string{c.before, c.after} {
				for file, text := range map[string]string{"link_layer": c.layer, "state": "4: ACTIVE",
					"counters/port_xmit_wait": waited} {
					sys[ib+file] = &fstest.MapFile{Data: []byte(text + "\n")}
				}
				r = collector.Reading{Now: time.Now()}
				if err := s.Read(t.Context(), &r); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			if v, ok := collector.SampleOf(r.Samples, collector.LinkWaitTicks); ok != (c.want != none) ||
				ok && v != c.want {
				t.Errorf("%s: %v, known %v; want %v", name, v, ok, c.want)
			}
		})
	}
}

// TestSysBesideProc: the folders of a real /sys/class are links to those of the devices.
func TestSysBesideProc(t *testing.T) {
	root := t.TempDir()
	device := filepath.Join(root, "sys/devices/pci0/net/eth0")
	for name, text := range map[string]string{"type": "1\n", "speed": "25000\n", "carrier": "1\n",
		"device/vendor": "1\n"} {
		file := filepath.Join(device, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	class := filepath.Join(root, "sys/class/net")
	if err := errors.Join(os.MkdirAll(class, 0o755), os.Symlink(device, filepath.Join(class, "eth0"))); err != nil {
		t.Fatal(err)
	}
	s := New(Options{Root: filepath.Join(root, "proc")})
	r := collector.Reading{Now: time.Now()}
	if err := s.Read(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	if v, ok := collector.SampleOf(r.Samples, collector.LinkRateBits); !ok || v != 25e9 {
		t.Errorf("rate %v, known %v", v, ok)
	}
}
