package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGatewaysShareTheFileSystemOfTheirBackEnds(t *testing.T) {
	tb := start(t, Config{Layer: NFS, Forwarders: 3, ComputeNodes: 1})
	servers, of := tb.BackEnds()
	if len(servers) != 2 || of["fwd000"] != "be000" || of["fwd001"] != "be001" || of["fwd002"] != "be000" {
		t.Fatalf("back ends %v of %v", servers, of)
	}
	if err := os.WriteFile(filepath.Join(tb.Dir(), "seen"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for f := range of {
		if err := answers(t.Context(), tb.ForwarderAddr(f), tb.Attach()); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if out, err := tb.Exec(t.Context(), f.Node(), "ls", exportDir); err != nil || len(out) != 0 {
			t.Errorf("%s sees %q, %v behind its back end's back", f, out, err)
		}
	}
	if out, err := tb.Exec(t.Context(), "be001", "ls", exportDir); err != nil ||
		strings.TrimSpace(string(out)) != "seen" {
		t.Errorf("be001 lists %q, %v; want the file this process wrote", out, err)
	}
	// A slow back end is slow through its gateways, and only there.
	before := measure(t, tb.ForwarderAddr("fwd000"), tb.Attach())
	if err := tb.Inject(t.Context(), Fault{Kind: SlowData, Node: "be000", Amount: 0.02}); errors.Is(err,
		errors.ErrUnsupported) {
		t.Skipf("skipped: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	for f, server := range of {
		s := measure(t, tb.ForwarderAddr(f), tb.Attach())
		if slow := s.writeBytes < before.writeBytes/3; slow != (server == "be000") {
			t.Errorf("%s on %s: %v, before %v", f, server, s, before)
		}
	}
	for _, f := range []Fault{{Kind: Kill, Node: "be001"}, {Kind: SlowData, Node: "fwd000"}} {
		if err := tb.Inject(t.Context(), f); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v: %v, want that it cannot be done", f, err)
		}
	}
}
