package sitefiles

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/storetest"
	"fairway/cmd/lab/sitefiles/model"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/history"
)

// How many metadata operations of a job wait, by its clients' and its metadata server's files, is the model's number
// to 15 %, whether they wait for a router or for the server's disks.
func TestMetadataQueueBehindRoutersIsTheModels(t *testing.T) {
	const warm, seconds, within = 5, 60, 0.15
	for _, f := range []model.Fault{{}, {Kind: model.FaultLink, Node: "rtr2", Value: 0.1},
		{Kind: model.FaultDisk, Node: "mds1", Value: 0.02}, {Kind: model.FaultCPU, Node: "rtr3", Value: 0.05}} {
		synctest.Test(t, func(t *testing.T) {
			w := watchSite(t, model.Small(21))
			defer w.close()
			if f.Kind != "" {
				if err := w.model.Break(f); err != nil {
					t.Fatal(err)
				}
			}
			w.run(t, warm)
			begun := time.Now()
			before, served := map[string]time.Duration{}, map[topology.JobID]float64{}
			for _, j := range w.model.Jobs {
				before[j.ID] = j.MetaWaited
			}
			var store storetest.Frames
			for range seconds {
				w.run(t, 1)
				store = append(store, w.frames...)
				for i := range w.frames {
					for _, j := range w.frames[i].Jobs {
						ops, _ := collector.SampleOf(j.Samples, collector.MetaOps)
						took, known := collector.SampleOf(j.Samples, collector.MetaExec)
						if known && w.frames[i].Role == topology.Metadata {
							served[j.Job] += ops * took
						}
					}
				}
			}
			for _, j := range w.model.Jobs {
				r := history.Run{Job: topology.JobID(j.ID), Nodes: len(j.Clients), Start: begun,
					End: begun.Add((seconds - 1) * time.Second), Forwarders: w.machine.Forwarders}
				for _, i := range j.Clients {
					r.NodeList = append(r.NodeList, topology.NodeID(fmt.Sprintf("cn%d", i+1)))
				}
				p, err := history.Build(t.Context(), store, r, served[r.Job])
				if err != nil || p == nil || p.MetaQueue == nil {
					t.Fatalf("%+v, job %s: %+v, %v", f, j.ID, p, err)
				}
				want := (j.MetaWaited - before[j.ID]).Seconds() / seconds / float64(len(r.Forwarders))
				t.Logf("%+v, job %s: %.4f metadata operations wait, the model has %.4f", f, j.ID, *p.MetaQueue, want)
				if *p.MetaQueue < (1-within)*want || *p.MetaQueue > (1+within)*want {
					t.Errorf("%+v, job %s: %.4f metadata operations wait, the model has %.4f", f, j.ID, *p.MetaQueue,
						want)
				}
			}
		})
	}
}
