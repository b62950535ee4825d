package webui

import (
	"testing"

	"fairway/collector/topology"
	"fairway/webui/api"
)

// TestWhoDoesMostIsTheOwnAlone: a forwarder's page names at its targets no job, user or node of others.
func TestWhoDoesMostIsTheOwnAlone(t *testing.T) {
	o := &own{forwarders: map[topology.ForwarderID]bool{"f1": true}, jobs: map[topology.JobID]bool{"7": true}}
	rows := []api.StorageRow{{Most: &api.Use{Kind: api.UseJob, Who: "7"}}, {Most: &api.Use{Kind: api.UseJob, Who: "8"}},
		{Most: &api.Use{Kind: "user", Who: "1000"}}, {Most: &api.Use{Kind: "node", Who: "7"}}, {}}
	d, err := o.forwarder(api.ForwarderDetail{ForwarderRow: api.ForwarderRow{ID: "f1"},
		Storage: api.StorageView{Rows: rows}})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range d.Storage.Rows {
		if (r.Most != nil) != (i == 0) {
			t.Errorf("row %d: %+v", i, r.Most)
		}
	}
	if rows[1].Most == nil {
		t.Error("the picture that others see has changed")
	}
}
