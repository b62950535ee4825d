package procfs

import (
	"testing"
	"testing/fstest"
	"time"

	"fairway/collector"
)

func TestDescribeNotesHowANodeIsSetUp(t *testing.T) {
	s := New(Options{SkipLinks: []string{"veth*"},
		Files: fstest.MapFS{"net/dev": file("one\ntwo\n"), "sys/kernel/osrelease": file("6.1.0-18\n"),
			"sys/net/ipv4/tcp_rmem": file("4096\t131072\t6291456\n"), "fs/nfsd/threads": file("a=b;c\n")},
		Sys: fstest.MapFS{"fs/lustre/version": file("lustre: 2.15.3\n"),
			"class/net/eth0/mtu": file("9000\n"), "class/net/eth0/operstate": file("up\n"),
			"class/net/eth1/mtu": file("1500\n"), "class/net/eth1/operstate": file("up\n"),
			"class/net/eth2/mtu": file("1500\n"), "class/net/eth2/operstate": file("up\n"),
			"class/net/eth3/mtu": file("65520\n"), "class/net/eth3/operstate": file("down\n"),
			"class/net/veth1/mtu": file("1450\n"), "class/net/veth1/operstate": file("up\n")}})
	defer s.Close()
	var notes []string
	for range 2 { // within a minute it says so once
		into := collector.Reading{Now: time.Now()}
		_ = s.Read(t.Context(), &into)
		notes = append(notes, into.Note)
	}
	const want = "kernel=6.1.0-18;Lustre=2.15.3;TCP receive buffer=4096 131072 6291456;MTU=1500 9000"
	if notes[0] != want || notes[1] != "" {
		t.Errorf("%q, want %q once", notes, want)
	}
}
