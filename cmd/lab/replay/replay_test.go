package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

var routersOfRecords = map[topology.ForwarderID]string{"rtr1": "10.1.0.11@tcp1,10.2.0.11@tcp2",
	"rtr2": "10.1.0.12@tcp1,10.2.0.12@tcp2", "rtr3": "10.1.0.13@tcp1,10.2.0.13@tcp2",
	"rtr4": "10.1.0.14@tcp1,10.2.0.14@tcp2"}

var sites = map[string]*Site{
	"lnet-2.18":   {Layer: LNet, FrontNet: "tcp1", BackNet: "tcp2", Forwarders: routersOfRecords},
	"lustre-2.18": {Layer: Lustre, FrontNet: "tcp1", BackNet: "tcp2", Forwarders: routersOfRecords},
	"nfs-6.1": {Layer: NFS, Forwarders: map[topology.ForwarderID]string{"gw1": "10.31.0.11", "gw2": "10.31.0.12",
		"gw3": "10.31.0.13"}},
}

// held are the records whose rows must hold, but for those that are known to come late; of the others the table says.
var held = map[string]bool{"lnet-2.18": true, "lustre-2.18": true, "nfs-6.1": true}

// late are the kinds of faults that are named, or over, after their time.
var late = map[string]bool{"slow (starved of CPU)": true, "dead (killed)": true}

// unasked are faults of records that the table does not ask for, and nodes that were not recorded for a time.
var unasked = []*Fault{
	{Record: "nfs-6.1", Node: "gw1", Kind: "slow (starved of CPU)", Begin: time.Unix(1795767757, 0),
		End: time.Unix(1795768064, 0), FoundBy: time.Unix(1795767847, 0)},
	{Record: "nfs-6.1", Node: "be1", Kind: "silent (not recorded)", Begin: time.Unix(1795767343, 0),
		End: time.Unix(1795767766, 0), FoundBy: time.Unix(1795767766, 0)},
}

// TestRecordsOfRealSystems plays what was recorded of real systems and holds the findings against the labels.
func TestRecordsOfRealSystems(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "shared", "real")
	faults, err := Faults(filepath.Join(dir, "faults.csv"))
	if err != nil {
		t.Skip("skipped: the records are not beside the repository:", err)
	}
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: the records take minutes: FAIRWAY_LONG=1")
	}
	for name, site := range sites {
		t.Run(name, func(t *testing.T) {
			record, err := Load(filepath.Join(dir, name+".tar.zst"))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { play(t, site, name, record, faults) })
		})
	}
}

func play(t *testing.T, site *Site, name string, record []Moment, faults []*Fault) {
	var mine []*Fault
	for _, f := range faults {
		if f.Record == name {
			mine = append(mine, f)
		}
	}
	known := slices.Concat(mine, unasked)
	wrong := map[string]bool{}
	watched := os.Getenv("FAIRWAY_REPLAY_NODE")
	look := func(now time.Time, open []anomaly.Finding, board *window.Board) {
		for _, f := range mine {
			f.See(now, open)
		}
		for i := range open {
			g := &open[i]
			if g.State == anomaly.Confirmed && blamed(g) && !excused(now, g, known) && !wrong[string(g.Node)] {
				wrong[string(g.Node)] = true
				t.Logf("%d: accused wrongly: %s %s: %s", now.Unix(), g.Node, g.Condition, g.Sentence)
			}
		}
		if f, ok := board.Frame(topology.NodeID(watched)); ok {
			t.Logf("%d: %+v %+v", now.Unix(), f.Samples, f.Targets)
		}
	}
	changes, err := Play(t.Context(), site, record, look)
	if err != nil {
		t.Fatal(err)
	}
	for i := range changes {
		c := &changes[i]
		if g := &c.Finding; testing.Verbose() {
			t.Logf("%d: %s %s %s %s %s %gx now %gx since %d: %s [%s] cause: %s", c.At.Unix(), g.ID, g.Node, g.Kind,
				g.State, g.Condition, g.Factor, g.FactorNow, g.Since.Unix(), g.Sentence, c.Why, g.Cause)
		}
	}
	for _, f := range mine {
		found, over := f.Right()
		t.Logf("%-11s %-5s %-60s found %-5v (%s, asked %s; %s) over %-5v (%s)", f.Record, f.Node, f.Kind, found,
			after(f.Named, f.Begin), after(f.FoundBy, f.Begin), f.Word, over, after(f.Ended, f.End))
		if (!found || !over) && held[name] && !late[f.Kind] {
			t.Errorf("%s at %s: %s", f.Record, f.Node, f.Kind)
		}
	}
	if len(wrong) > 0 && held[name] {
		t.Errorf("accused though nothing was wrong with them: %v", wrong)
	}
}

func after(at, begin time.Time) string {
	if at.IsZero() || begin.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%.0f s", at.Sub(begin).Seconds())
}

func blamed(g *anomaly.Finding) bool {
	return g.Kind.Accuses() || g.Kind == anomaly.TargetSlow || g.Kind == anomaly.ClientSlow
}

// excused reports whether a fault of that node is or was there within ten minutes.
func excused(now time.Time, g *anomaly.Finding, faults []*Fault) bool {
	for _, f := range faults {
		over := !f.End.IsZero() && !now.Before(f.End.Add(10*time.Minute))
		if f.names(string(g.Node)) && !now.Before(f.Begin) && !over && !f.FoundBy.IsZero() {
			return true
		}
	}
	return false
}
