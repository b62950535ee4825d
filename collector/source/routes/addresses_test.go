package routes

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// A forwarder reports the addresses that its kernel has, of this machine those that it says itself, and says nothing of
// its clients.
func TestAddressesOfThisKernel(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: /proc is Linux's")
	}
	s := New(Options{Kind: Addresses, Node: "gw1", Root: os.DirFS("/")})
	r := collector.Reading{Now: time.Now()}
	if err := s.Read(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	if r.RoutesComplete {
		t.Error("it says that these are all clients")
	}
	got := map[string]bool{}
	for _, one := range r.Routes {
		if got[one.Address] = true; one.Forwarder != "gw1" || one.Client != "" {
			t.Errorf("%+v", one)
		}
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, a := range all {
		n, ok := netip.AddrFromSlice(a.(*net.IPNet).IP)
		if n = n.Unmap(); !ok || !n.IsGlobalUnicast() {
			continue
		}
		if want++; !got[n.String()] {
			t.Errorf("%s is missing from %v", n, got)
		}
	}
	if want != len(got) {
		t.Errorf("%d addresses, want %d: %v", len(got), want, got)
	}
}

func TestAddressesAreNamed(t *testing.T) {
	tree := fstest.MapFS{"proc/net/fib_trie": file("Local:\n  |-- 127.0.0.1\n     /32 host LOCAL\n  |-- 10.2.0.0\n" +
		"     /24 link UNICAST\n  |-- 10.2.3.1\n     /32 host LOCAL\n"),
		"proc/net/if_inet6": file("fd000000000000000000000000000001 02 40 00 80     eth0\n" +
			"fe800000000000000000000000000001 02 40 20 80     eth0\nwhat\n" +
			"fd000000000000000000000000000002 02 40 00 a0     eth0\n" + // deprecated
			"fd000000000000000000000000000003 02 40 00 44     eth0\n" + // optimistic
			"fd000000000000000000000000000004 02 40 00 c0     eth0\n" + // tentative
			"fd000000000000000000000000000005 02 40 00 c8     eth0\n" + // another node has it
			"fd000000000000000000000000000006 02 40 00 x      eth0\n")}
	s := New(Options{Kind: Addresses, Node: "gw1", Root: tree})
	read := func() (addresses []string, err error) {
		r := collector.Reading{Now: time.Now()}
		err = s.Read(t.Context(), &r)
		for _, one := range r.Routes {
			addresses = append(addresses, one.Address)
		}
		return addresses, err
	}
	if got, err := read(); err != nil || !slices.Equal(got, []string{"10.2.3.1", "fd00::1", "fd00::2", "fd00::3"}) {
		t.Errorf("%v, %v", got, err)
	}
	tree["proc/net/if_inet6"], tree["proc/net/fib_trie"] = file(""), file("Local:\n")
	if got, err := read(); err == nil || !strings.Contains(err.Error(), "it has 0 addresses") {
		t.Errorf("%v, %v", got, err)
	}
	delete(tree, "proc/net/fib_trie")
	if got, err := read(); err == nil || errors.Is(err, collector.ErrNoData) {
		t.Errorf("%v, %v", got, err)
	}
}

// Without names of forwarders a client reports the addresses of its NFS mounts, and their parts of its bytes.
func TestFloatingAddresses(t *testing.T) { synctest.Test(t, testFloatingAddresses) }

func testFloatingAddresses(t *testing.T) {
	const first = "10.2.3.1:/gpfs /pfs nfs rw,vers=3,addr=10.2.3.1 0 0\nproc /proc proc rw 0 0\n"
	tree := fstest.MapFS{"proc/self/mounts": file(first)}
	s := New(Options{Kind: NFS, Node: "cn1", Root: tree})
	want := func(second int, routes ...collector.Route) {
		t.Helper()
		if got := read(t, s, second); !slices.Equal(got, routes) {
			t.Errorf("%+v, want %+v", got, routes)
		}
	}
	want(0, collector.Route{Client: "cn1", Address: "10.2.3.1"})
	tree["proc/self/mounts"] = file(first +
		"ces:/home /home nfs4 rw,addr=fd00:0::2 0 0\nx:/a /a nfs rw,addr=what 0 0\n")
	got := read(t, New(Options{Kind: NFS, Node: "cn1", Root: tree}), 1)
	if len(got) != 2 || got[1] != (collector.Route{Client: "cn1", Address: "fd00::2", Share: 0.5, Assumed: true}) ||
		got[0].Forwarder != topology.ForwarderID("") {
		t.Errorf("%+v", got)
	}
	tree["proc/self/mounts"] = file("proc /proc proc rw 0 0\n")
	r := collector.Reading{Now: time.Now()}
	if err := s.Read(t.Context(), &r); !errors.Is(err, collector.ErrNoData) || !r.RoutesComplete {
		t.Errorf("nothing is mounted: %v, %+v", err, r)
	}
}
