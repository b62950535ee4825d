package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// proof is the test of a capability, and on what it is tried: a real system, a model that writes the system's files,
// files of a real system, files made for the test. A capability without a test is left out.
type proof struct{ on, dir, test string }

// layerProofs are what fairway does on each kind of forwarding layer: reads its load, knows who uses which forwarder,
// names a slow one, moves nodes, sees by traffic that they are moved, and decides on jobs: from a first run's profile
// to the grant of forwarders that is verified and taken back at the job's end, or to a refusal that says why.
var layerProofs = []struct {
	layer string
	cells [6]proof
}{
	{"diod with fairway-mount", [6]proof{
		{"real", "collector/source/diod", "TestRealDiod"},
		{"real", "collector/source/diod", "TestRealDiod"},
		{"real", "cmd/fairway-demo", "TestRealFaultsAreFound"},
		{"real", "cmd/fairwayd/daemontest", "TestRemapOnTheRealForwardingLayer"},
		{"real", "cmd/fairwayd/daemontest", "TestRemapOnTheRealForwardingLayer"},
		{"real", "cmd/fairwayd/daemontest", "TestSlurmJobIsRemappedBeforeItsFirstIO"}}},
	{"nfs-ganesha gateways with fairway-mount", [6]proof{
		{"real", "collector/source/ganesha", "TestRealGaneshaIsCounted"},
		{"real", "collector/source/ganesha", "TestRealGaneshaIsCounted"},
		{"real", "cmd/fairway-demo", "TestRealGatewayFaultsAreFound"},
		{"real", "cmd/fairwayd/daemontest", "TestRemapBetweenGateways"},
		{"real", "cmd/fairwayd/daemontest", "TestRemapBetweenGateways"},
		{"real", "cmd/fairwayd/daemontest", "TestSlurmJobsAreGrantedGateways"}}},
	{"LNet routers", [6]proof{
		{"model", "cmd/lab/sitefiles", "TestSourcesReadEveryRelease"},
		{"model", "cmd/endtoend", "TestMappingNeedsNoRightToMove"},
		{"model", "cmd/endtoend", "TestSlowRouterIsFoundByItself"},
		{"model", "cmd/endtoend", "TestJobIsSteered"},
		{"model", "cmd/endtoend", "TestLyingLnetctlIsNotBelieved"},
		{"model", "cmd/endtoend", "TestJobsOnLustreAreDispatched"}}},
	{"Lustre clients as gateways", [6]proof{
		{"files of real systems", "collector/source/lustre", "TestFiles"},
		{"model", "cmd/endtoend", "TestSlowNFSGatewayIsLeft"},
		{"model", "cmd/endtoend", "TestSlowNFSGatewayIsLeft"},
		{"model", "cmd/endtoend", "TestSlowNFSGatewayIsLeft"},
		{"model", "cmd/endtoend", "TestSlowNFSGatewayIsLeft"},
		{"model", "cmd/endtoend", "TestJobsOnNFSAreDispatched"}}},
	{"LWFS servers", [6]proof{
		{"files of real systems", "collector/source/lwfs", "TestWholeTrace"},
		{"model", "cmd/endtoend", "TestSlowLWFSServerIsLeft"},
		{"model", "cmd/endtoend", "TestSlowLWFSServerIsLeft"},
		{"model", "cmd/endtoend", "TestSlowLWFSServerIsLeft"},
		{"model", "cmd/endtoend", "TestSlowLWFSServerIsLeft"},
		{"refused, model", "cmd/endtoend", "TestJobsOnLWFSKeepTheirServers"}}},
	{"kernel NFS", [6]proof{
		{"real", "cmd/lab/knfs", "TestAFrozenGatewayIsLeft"},
		{"real", "cmd/lab/knfs", "TestAFrozenGatewayIsLeft"},
		{"real", "cmd/lab/knfs", "TestFaults"},
		{"real", "cmd/lab/knfs", "TestMovesKeepTheMount"},
		{"model", "cmd/endtoend", "TestSlowNFSGatewayIsLeft"},
		{"model", "cmd/endtoend", "TestJobsOnNFSAreDispatched"}}},
	{"Cray DVS", [6]proof{
		{"files of real systems", "collector/source/dvs", "TestFiles"},
		{"model", "cmd/endtoend", "TestSlowDVSServerIsLeft"},
		{"model", "cmd/endtoend", "TestSlowDVSServerIsLeft"},
		{"model", "cmd/endtoend", "TestSlowDVSServerIsLeft"},
		{"model", "cmd/endtoend", "TestSlowDVSServerIsLeft"},
		{"model", "cmd/endtoend", "TestJobsOnDVSAreDispatched"}}},
	{"GPFS protocol nodes", [6]proof{
		{"files of real systems", "collector/source/gpfs", "TestFiles"},
		{"model", "cmd/endtoend", "TestSlowProtocolNodeIsLeft"},
		{"model", "cmd/endtoend", "TestSlowProtocolNodeIsLeft"},
		{"model", "cmd/endtoend", "TestSlowProtocolNodeIsLeft"},
		{"model", "cmd/endtoend", "TestSlowProtocolNodeIsLeft"},
		{"model", "cmd/endtoend", "TestJobsOnGPFSAreDispatched"}}},
}

// layersTable writes the table of docs/layers.md from the tests that are in the tree.
func layersTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| forwarders | load read | clients known | slow one named | nodes moved | seen by traffic | " +
		"jobs given forwarders |\n|---|---|---|---|---|---|---|\n")
	for _, row := range layerProofs {
		b.WriteString("| " + row.layer)
		for _, p := range row.cells {
			if p.test == "" {
				b.WriteString(" | -")
				continue
			}
			if !hasTest(t, p.dir, p.test) {
				t.Errorf("%s: %s has no %s", row.layer, p.dir, p.test)
			}
			fmt.Fprintf(&b, " | %s", p.on)
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	is := regexp.MustCompile(`(?m)^func ` + name + `\(t \*testing\.T\)`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if is.Match(text) {
			return true
		}
	}
	return false
}

// TestLayersTable: docs/layers.md promises of each layer what a test shows, and on what.
func TestLayersTable(t *testing.T) {
	const begin, end = "<!-- written by go test ./cmd -run LayersTable -update -->\n", "<!-- end -->\n"
	name := filepath.Join("..", "docs", "layers.md")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s: no table between %q and %q", name, begin, end)
	}
	want := head + begin + layersTable(t) + end + tail
	if *updateDocs {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s is not what the tests show; run with -update", name)
	}
}
