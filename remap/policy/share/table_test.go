package share

import (
	"encoding/json"
	"strings"
	"testing"
)

func readTable(in string, p Policy) (table Table, err error) {
	if err = json.Unmarshal([]byte(in), &table); err == nil {
		err = table.Check(p)
	}
	return table, err
}

func answer(t *testing.T, policy string, idle Idle, in string) Answer {
	t.Helper()
	p := mustPolicy(t, policy)
	table, err := readTable(in, p)
	if err != nil {
		t.Fatal(err)
	}
	return table.Answer(p, idle)
}

func TestTableAnswers(t *testing.T) {
	jobs := `{"job":"J1","user":"a","size":4},{"job":"J2","user":"a","size":1},` +
		`{"job":"J3","user":"b","size":1,"active":false}`
	a := answer(t, "size-fair", Inside, `{"jobs":[`+jobs+`]}`)
	if a.Shares["J1"] != .8 || a.Shares["J3"] != 0 || a.Segments["J2"] != [2]float64{.8, 1} ||
		a.Segments["J3"] != [2]float64{1, 1} {
		t.Errorf("J3 is idle: %+v", a)
	}
	if a.Allocation != nil || a.Across != nil {
		t.Errorf("neither demand nor servers were asked: %+v", a)
	}
	a = answer(t, "user-fair", Inside,
		`{"jobs":[{"job":"J1","user":"a","demand":10},{"job":"J2","user":"a"},`+
			`{"job":"J3","user":"b","active":false,"demand":50}],"capacity":100}`)
	if a.Shares["J1"] != .5 || a.Allocation["J1"] != 10 || a.Allocation["J2"] != 90 || a.Allocation["J3"] != 0 {
		t.Errorf("J1 wants 10 of 100 and J3 is idle: %+v", a)
	}
	// User a has two of four quarters, one of them idle: flat, the other jobs share it.
	in := `{"jobs":[{"job":"1","user":"a","active":false},{"job":"2","user":"a"},{"job":"3","user":"b"}]}`
	if a = answer(t, "user-fair", Flat, in); a.Shares["2"] != 1./3 || a.Shares["3"] != 2./3 {
		t.Errorf("flat: %+v", a)
	}
	a = answer(t, "size-fair", Inside,
		`{"jobs":[{"job":"1","size":16},{"job":"2","size":8},{"job":"3","size":8}],`+
			`"servers":{"S1":["1","2"],"S2":["1","3"]}}`)
	if a.Local["S1"]["1"] != 2./3 || a.Together["1"] != 2./3 || a.Global["1"] != .5 || !a.Reachable {
		t.Errorf("figure 5: %+v", a)
	}
	a = answer(t, "size-fair", Inside,
		`{"jobs":[{"job":"1","size":16},{"job":"2","size":8},{"job":"3","size":8}],`+
			`"servers":{"S1":["1","2"],"S2":["3"]}}`)
	if want := "1, 2 should have 0.75 of the whole together, but they use only S1, which is 1 of 2 servers, 0.5 of " +
		"the whole"; a.Reachable || a.Why != want {
		t.Errorf("reachable %v, because %s\nwant %s", a.Reachable, a.Why, want)
	}
}

func TestTableErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{"jobs":[]}`:                                                                "jobs: 0 of them",
		`{"jobs":[{}]}`:                                                              "jobs[0].job: missing",
		`{"jobs":[{"job":"1","size":"4"}]}`:                                          "jobs.size",
		`{"jobs":[{"job":"1","user":"u"}]}`:                                          "jobs[0].size: missing",
		`{"jobs":[{"job":"1","user":"u","size":0}]}`:                                 "jobs[0].size: 0",
		`{"jobs":[{"job":"1","size":1}]}`:                                            "jobs[0].user: missing",
		`{"jobs":[{"job":"1","user":"u","size":1,"demand":-1}]}`:                     "jobs[0].demand",
		`{"jobs":[{"job":"1","user":"u","size":1,"priority":-1}]}`:                   "jobs[0].priority",
		`{"jobs":[{"job":"1","user":"u","size":1,"demand":1}]}`:                      "capacity: missing",
		`{"jobs":[{"job":"1","user":"u","size":1}],"capacity":-5}`:                   "capacity: -5",
		`{"jobs":[{"job":"1","user":"u","size":1},{"job":"1","user":"u","size":1}]}`: `jobs[1].job: "1" comes twice`,
		`{"jobs":[{"job":"1","user":"u","size":1}],"servers":{"S":["2"]}}`: `servers.S[0]: job "2" is not ` +
			"in jobs",
		`{"jobs":[{"job":"1","user":"u","size":1}],"servers":{"S":["1","1"]}}`: "comes twice",
		`{"jobs":[{"job":"1","user":"u","size":1}],"servers":{"S":[]}}`:        `active job "1" is on none`,
	} {
		_, err := readTable(in, mustPolicy(t, "user-size-fair"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n gave %v, want %q", in, err, want)
		}
	}
}

// Whatever is read and taken gives shares that add up to 1, or none at all.
func FuzzTable(f *testing.F) {
	f.Add("user-size-fair",
		`{"jobs":[{"job":"1","user":"u","size":3},{"job":"2","user":"v","size":1,"active":false,"demand":3}],`+
			`"capacity":7,"servers":{"A":["1","2"],"B":["1"]}}`)
	f.Add("job-fair", `{"jobs":[{"job":"1","active":false}]}`)
	f.Fuzz(func(t *testing.T, policy, in string) {
		p, err := ParsePolicy(policy)
		if err != nil {
			return
		}
		table, err := readTable(in, p)
		if err != nil {
			return
		}
		for _, idle := range []Idle{Inside, Flat} {
			a := table.Answer(p, idle)
			if _, err := json.Marshal(a); err != nil {
				t.Fatalf("%s: %v", in, err)
			}
			sum := 0.0
			for _, s := range a.Shares {
				sum += s
			}
			if sum != 0 && (sum < 1-1e-9 || sum > 1+1e-9) {
				t.Fatalf("%s: shares add up to %v", in, sum)
			}
		}
	})
}
