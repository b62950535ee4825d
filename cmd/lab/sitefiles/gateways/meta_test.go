package gateways

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/storetest"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/history"
)

// How many metadata operations of a run wait at NFS servers on Lustre, by what its clients and the servers count, is
// the model's number to a factor of two; at DVS servers it is their own where DVS times its messages, and else what
// their clients' lists have. Of each layer it takes the slowest disk; with FAIRWAY_LONG, as make prove has it, another
// one, too.
func TestMetadataQueueOfNFSIsTheModels(t *testing.T) {
	const seconds = 120
	cases := []struct {
		layer Layer
		disk  float64
	}{{NFS, 0.2}, {DVS, 0.2}, {OldDVS, 0.1}, {NFS, 0.5}, {DVS, 0.5}, {OldDVS, 0.2}}
	if os.Getenv("FAIRWAY_LONG") == "" {
		cases = cases[:3]
	}
	for _, c := range cases {
		// Slow ones: at full speed no call waits for a thread.
		synctest.Test(t, func(t *testing.T) {
			w := watchGateways(t, c.layer, 5)
			for i := range w.disks {
				w.disks[i] = c.disk
			}
			w.run(t, 2)
			r := history.Run{Job: "1", Nodes: len(w.Clients), Start: time.Now(), Forwarders: w.machine.Forwarders}
			r.End = r.Start.Add((seconds - 1) * time.Second)
			for _, c := range w.Clients {
				r.NodeList = append(r.NodeList, topology.NodeID(c.Name))
			}
			var before, after time.Duration
			for _, g := range w.Gateways {
				before += g.waited[Meta]
			}
			var store storetest.Frames
			for range seconds {
				w.run(t, 1)
				for _, f := range w.frames {
					if c.layer == OldDVS && f.Role == topology.Compute { // its clients report no bytes by themselves
						f.Samples = append(f.Samples, collector.Sample{Metric: collector.ReadBytes, Value: 1e6})
					}
					store = append(store, f)
				}
			}
			for _, g := range w.Gateways {
				after += g.waited[Meta]
			}
			want := (after - before).Seconds() / seconds / float64(len(w.Gateways))
			p, err := history.Build(t.Context(), store, r, 0)
			if err != nil || p == nil {
				t.Fatalf("%+v: %+v, %v", c, p, err)
			}
			if p.MetaQueue == nil {
				t.Fatalf("%+v: %+v", c, p)
			}
			t.Logf("%+v: %.4f metadata operations wait, the model has %.4f", c, *p.MetaQueue, want)
			if *p.MetaQueue < want/2 || *p.MetaQueue > 2*want {
				t.Errorf("%+v: %.4f metadata operations wait, the model has %.4f", c, *p.MetaQueue, want)
			}
		})
	}
}
