package dispatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/history"
)

func TestModeIsHowNodesShareFiles(t *testing.T) {
	w := func(count, least float64) nodeFiles { return nodeFiles{written: fileUse{count, least}} }
	for _, c := range []struct {
		name  string
		files []nodeFiles
		p     history.Profile
		want  topology.Mode
	}{
		{"one file on all nodes", []nodeFiles{w(1, 7), w(1, 7), w(1, 7)}, history.Profile{WriteBytes: 1, IONodes: 3},
			topology.ModeN1},
		{"files of their own", []nodeFiles{w(1, 7), w(3, 8), w(1, 9)}, history.Profile{WriteBytes: 1, IONodes: 3},
			topology.ModeNN},
		{"two groups", []nodeFiles{w(1, 7), w(1, 7), w(1, 8), w(1, 8)}, history.Profile{WriteBytes: 1, IONodes: 4},
			topology.ModeNM},
		{"the same several files", []nodeFiles{w(4, 7), w(4, 7)}, history.Profile{WriteBytes: 1, IONodes: 2},
			topology.ModeNM},
		{"one shared file and some of their own", []nodeFiles{w(2, 3), w(2, 7), w(2, 7)},
			history.Profile{WriteBytes: 1, IONodes: 3}, topology.ModeNM},
		{"mostly read", []nodeFiles{{read: fileUse{1, 5}, written: fileUse{1, 1}},
			{read: fileUse{1, 5}, written: fileUse{1, 2}}}, history.Profile{ReadBytes: 9, WriteBytes: 1, IONodes: 2},
			topology.ModeN1},
		{"one node", []nodeFiles{w(1, 7)}, history.Profile{WriteBytes: 1, IONodes: 1}, ""},
		{"most nodes have no mount", []nodeFiles{w(1, 7), w(1, 7)}, history.Profile{WriteBytes: 1, IONodes: 5}, ""},
		{"no report", nil, history.Profile{WriteBytes: 1, IONodes: 5}, ""},
	} {
		files := map[topology.NodeID]nodeFiles{}
		for i, f := range c.files {
			files[cn(i)] = f
		}
		if got := modeOf(files, &c.p); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestProfileHasTheModeThatTheMountsSaw, also where a node's word comes after the job's end, and not
// what they say of another job.
func TestProfileHasTheModeThatTheMountsSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, newMachine(8, 2, 3), remap.ModeApprove)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.d.Run(ctx) }()
		defer func() { stop(); <-done }()
		s.dispatch(t, "1", "ROMS", cns(0, 2))
		says := func(n topology.NodeID, job topology.JobID, least float64) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.frames = append(s.frames, collector.Frame{Node: n, TimeMillis: time.Now().UnixMilli(),
				Samples: []collector.Sample{{Metric: collector.ReadBytes}, {Metric: collector.WriteBytes, Value: 5e8}},
				Jobs: []collector.JobSamples{{Job: job,
					Samples: []collector.Sample{{Metric: collector.FilesWritten, Value: 1},
						{Metric: collector.LeastFileWritten, Value: least}}}}})
		}
		says("c0", "1", 77)
		says("c1", "0", 5)
		time.Sleep(3 * time.Second)
		if _, err := s.d.End(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		says("c1", "1", 77)
		time.Sleep(10 * time.Second)
		r, ok, err := s.d.Job("1")
		if err != nil || !ok || r.Profile == nil || r.Profile.Mode != topology.ModeN1 {
			t.Fatalf("%+v %+v %v", r, r.Profile, err)
		}
		s.d.mu.RLock()
		defer s.d.mu.RUnlock()
		if len(s.d.ended) != 0 {
			t.Errorf("%d ended jobs are kept", len(s.d.ended))
		}
	})
}
