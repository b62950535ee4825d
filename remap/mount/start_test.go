package mount

import (
	"log/slog"
	"net"
	"strings"
	"testing"
)

// TestWhatAStartThatFailsSays mounts through forwarders that are not there, are none, or export something else: what
// happened, where, and what to do, in words that are not those of Go.
func TestWhatAStartThatFailsSays(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	dead := listen()
	dead.Close()
	short := listen()
	defer short.Close()
	go func() {
		for {
			c, err := short.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	const start = "; start its 9P service, or name another forwarder"
	for name, c := range map[string]struct {
		addr func() string
		want []string
	}{
		"dead":    {dead.Addr().String, []string{": connection refused" + start}},
		"ends":    {short.Addr().String, []string{"9P connection to", start}},
		"no such": {func() string { return "no-such-forwarder.invalid:564" }, []string{start}},
		"elsewhere": {func() string { return startDiod(t, t.TempDir(), "true").Addr },
			[]string{"attach /nothing/here: ", "; name a tree that it exports to this node"}},
	} {
		t.Run(name, func(t *testing.T) {
			at, addr := t.TempDir(), c.addr()
			_, err := Start(t.Context(), Options{MountPoint: at, Target: Target{"fwd7", addr}, Tree: "/nothing/here",
				Log: slog.New(slog.DiscardHandler)})
			if err == nil {
				t.Fatal("it is mounted")
			}
			for _, want := range append(c.want, "nothing is mounted on "+at+": forwarder fwd7", addr) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
			}
			for _, word := range []string{"dial tcp", "connect:", "EOF", "read tcp", "lookup ", "deadline"} {
				if strings.Contains(err.Error(), word) {
					t.Errorf("%v: %q is Go's word", err, word)
				}
			}
		})
	}
}
