package sharedfiles

import (
	"strings"
	"testing"

	"fairway/collector/topology"
	"fairway/remap/policy/filedomain"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
)

func ptr(v int64) *int64 { return &v }

func TestFromLogsKeepsWhatSeveralProcessesWrote(t *testing.T) {
	logs := []iolog.Log{{
		Jobs: []iolog.Job{{App: "roms"}}, Files: []iolog.File{{ID: 1, Path: "/s/out"}},
		JobFiles: []iolog.JobFile{
			{File: 9, Procs: 1, BytesWritten: 1e12},
			{File: 8, Procs: 64, BytesRead: 1e12},
			{File: 7, Procs: 2, BytesWritten: 5, OSTs: []int32{3, 4}},
			{File: 1, Procs: 64, BytesWritten: 14e9, UsesMPIIO: true, UsesCollective: true, StripeSize: ptr(4 << 20),
				StripeCount: ptr(8)},
			{File: 2, Procs: 64, BytesWritten: 1e9, UsesMPIIO: true},
		},
	}}
	got := FromLogs(logs)
	if len(got) != 3 || got[0].Name != "/s/out" || got[0].Through != Collective || *got[0].Servers != 8 ||
		got[1].Through != Independent || got[1].Servers != nil || got[2].Name != "file 0000000000000007" ||
		*got[2].Servers != 2 {
		t.Fatalf("%+v", got)
	}
	if Caveat(&got[0]) != "" || !strings.Contains(Caveat(&got[1]), "independent") ||
		!strings.Contains(Caveat(&got[2]), "POSIX") {
		t.Error("caveats")
	}
}

func TestFromProfileNeedsASharedMode(t *testing.T) {
	r := history.Run{App: "wrf", Profile: &history.Profile{Mode: topology.ModeN1, WriteBytes: 1e9, IONodes: 12}}
	if got := FromProfile(&r); len(got) != 1 || got[0].Procs != 12 || got[0].Bytes != 1e9 ||
		got[0].Through != NotKnown {
		t.Errorf("%+v", got)
	}
	// Of one that still runs nobody has counted the writers.
	r.Nodes, r.Profile.IONodes, r.Profile.From = 16, 0, history.FromWatching
	if got := FromProfile(&r); len(got) != 1 || got[0].Procs != 16 {
		t.Errorf("while it runs: %+v", got)
	}
	r.Profile.Mode = topology.ModeNN
	if got := FromProfile(&r); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := FromProfile(&history.Run{}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestCaseSaysWhatIsAssumed(t *testing.T) {
	eight := 8
	known := File{Name: "/s/out", Procs: 64, Bytes: 100 << 20, StripeSize: ptr(4 << 20), Servers: &eight}
	bare := File{Name: "/s/out", Procs: 64, Bytes: 100 << 20}
	for name, tc := range map[string]struct {
		f    File
		g    Given
		want filedomain.Case
		says string
	}{
		"all known but the aggregators": {known, Given{Nodes: 16}, filedomain.Case{End: 100 << 20, StripeSize: 4 << 20,
			Servers: 8, Aggregators: 16}, "one a compute node"},
		"nodes are not known": {known, Given{}, filedomain.Case{End: 100 << 20, StripeSize: 4 << 20, Servers: 8,
			Aggregators: 64}, "every process"},
		"more nodes than processes": {known, Given{Nodes: 99}, filedomain.Case{End: 100 << 20, StripeSize: 4 << 20,
			Servers: 8, Aggregators: 64}, "64 aggregators"},
		"the machine's targets": {bare, Given{MachineServers: 6}, filedomain.Case{End: 100 << 20, StripeSize: 1 << 20,
			Servers: 6, Aggregators: 64}, "all storage targets"},
		"given": {known, Given{Servers: 2, StripeSize: 10 << 20, Aggregators: 3},
			filedomain.Case{End: 100 << 20, StripeSize: 10 << 20, Servers: 2, Aggregators: 3}, "given in the question"},
		"too large": {File{Procs: 2, Bytes: 1 << 50, Servers: &eight}, Given{},
			filedomain.Case{End: 1 << 40, StripeSize: 1 << 20, Servers: 8, Aggregators: 2}, "first 1048576 stripes"},
	} {
		tc.want.Method = filedomain.Even
		c, assumed, err := Case(&tc.f, tc.g)
		if err != nil || c != tc.want || !strings.Contains(strings.Join(assumed, "\n"), tc.says) {
			t.Errorf("%s: %+v, %v, %v; want %+v and %q", name, c, assumed, err, tc.want, tc.says)
		}
	}
	if _, _, err := Case(&bare, Given{}); err == nil || !strings.Contains(err.Error(), "servers=N") {
		t.Errorf("without servers: %v", err)
	}
	if _, _, err := Case(&known, Given{Aggregators: -1}); err == nil || !strings.Contains(err.Error(), "aggregators") {
		t.Errorf("a negative number: %v", err)
	}
}
