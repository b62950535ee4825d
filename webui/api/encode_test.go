package api_test

import (
	"math"
	"testing"
	"time"

	"fairway/collector"
	"fairway/webui/api"
)

// TestWhatIsNoNumberIsNull sends each number that JSON cannot hold through each shape that answers have.
func TestWhatIsNoNumberIsNull(t *testing.T) {
	one := 1.0
	type row struct {
		Name   string
		Score  float64
		Empty  float64  `json:",omitempty"`
		Mean   *float64 `json:"mean"`
		At     time.Time
		hidden float64
	}
	at := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		var values api.Values
		values.Set(collector.QueueLen, &bad)
		for want, v := range map[string]any{
			"null":               bad,
			`[1,null]`:           []*float64{&one, &bad},
			`{"a":null}`:         map[string]float64{"a": bad},
			`[null,null]`:        [2]any{bad, nil},
			`{"queue_len":null}`: values,
			`{"Name":"fwd001","Score":null,"mean":null,"At":"2026-11-27T00:00:00Z"}`: &row{Name: "fwd001", Score: bad,
				Mean: &bad, At: at, hidden: bad},
			`{"Name":"","Score":2,"mean":null,"At":"2026-11-27T00:00:00Z"}`: row{Score: 2, At: at},
		} {
			if b, err := api.Encode(v); err != nil || string(b) != want {
				t.Errorf("%v: %s, %v; want %s", v, b, err, want)
			}
		}
	}
	if _, err := api.Encode(func() {}); err == nil {
		t.Error("a function is encoded")
	}
}
