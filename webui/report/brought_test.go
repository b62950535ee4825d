package report

import (
	"reflect"
	"testing"

	"fairway/remap"
	"fairway/tsdb/history"
)

// TestBrought: a policy's plans count against the last run before them, runs with hints or shares against those that
// got all but these; a plan
// that was not measured and a run whose I/O is not known count nowhere.
func TestBrought(t *testing.T) {
	b := brought{rows: map[[2]string]*tries{}, cost: map[likeRuns][]float64{}}
	run := func(app string, bytes, seconds float64, given ...string) {
		b.run(&history.Run{App: app, User: "wei", Nodes: 4, Given: given,
			Profile: &history.Profile{WriteBytes: bytes, IOSeconds: seconds}})
	}
	run("mesh", 100, 10)
	run("mesh", 100, 12)
	run("mesh", 100, 30)
	run("mesh", 200, 12, history.GivenHints) // half of the median's time a byte
	const shares = history.GivenShares + "size-fair"
	run("mesh", 100, 24, shares)                    // twice that of those that got nothing
	run("mesh", 100, 6, history.GivenHints, shares) // a quarter of the one with shares; as much as the one with hints
	run("new", 200, 12, history.GivenWindow)        // nothing to compare with
	b.run(&history.Run{App: "dark", Given: []string{history.GivenHints}})
	for _, seconds := range []float64{50, 20, 26} {
		b.plan(&remap.Plan{App: "ocean", Ledger: &remap.Ledger{Policy: "dfra", Action: "upgrade",
			DefaultIOSeconds: new(40.0), PlannedIOSeconds: new(10.0),
			Predicted: &remap.IOFigures{VolumeBytes: 1e9, IOSeconds: 100},
			Measured:  &remap.IOFigures{VolumeBytes: 1e9, IOSeconds: seconds}}})
	}
	b.plan(&remap.Plan{App: "ocean", Ledger: &remap.Ledger{Policy: "mckp", Action: "upgrade"}})
	b.plan(&remap.Plan{App: "ocean"})
	want := []Brought{
		{App: "mesh", By: "hints", Runs: 2, Measured: new(0.375)},
		{App: "mesh", By: shares, Runs: 2, Measured: new(1.5)},
		{App: "new", By: "window", Runs: 1},
		{App: "ocean", By: "dfra: upgrade", Runs: 3, Expected: new(0.25), Measured: new(0.26)},
	}
	if got := b.list(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, expected %+v", got, want)
	}
}
