package queue

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"fairway/collector"
)

// A queue's clients become routes and connections; who is not a compute node is left out.
func TestSource(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	src := New("fwd1", socket, "monitor")
	if err := src.Read(t.Context(), &collector.Reading{}); !errors.Is(err, collector.ErrNoData) {
		t.Errorf("no queue runs: %v", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	answer,
		status := "[{\"node\":\"cn1\",\"connections\":2},{\"node\":\"monitor\",\"connections\":1},"+
		"{\"node\":\"localhost\",\"connections\":1},{\"node\":\"fwd1\",\"connections\":1},"+
		"{\"node\":\"cn2\",\"connections\":1}]", 200
	merged := `null`
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/merged" {
			fmt.Fprint(w, merged)
			return
		}
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	})}
	defer server.Close()
	go server.Serve(l) // ends with Close
	var got collector.Reading
	if err := src.Read(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	want := []collector.Route{{Client: "cn1", Forwarder: "fwd1"}, {Client: "cn2", Forwarder: "fwd1"}}
	if fmt.Sprint(got.Routes) != fmt.Sprint(want) || !got.RoutesComplete {
		t.Errorf("routes %v", got.Routes)
	}
	if n, ok := collector.SampleOf(got.Samples, collector.Connections); !ok || n != 3 {
		t.Errorf("%v connections", n)
	}
	// What it sent together becomes rates.
	now := time.Unix(1000, 0)
	src.now = func() time.Time { return now }
	for _, merged = range []string{`{"writes_in":100,"writes_out":10,"bytes":1000}`,
		`{"writes_in":250,"writes_out":20,"reads_in":16,"reads_out":2,"bytes":9000}`} {
		got = collector.Reading{}
		if err := src.Read(t.Context(), &got); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	for metric, want := range map[collector.Metric]float64{collector.MergedOps: 166, collector.MergedMessages: 12,
		collector.MergedBytes: 8000} {
		if v, ok := collector.SampleOf(got.Samples, metric); !ok || v != want {
			t.Errorf("%v is %v, want %v", metric, v, want)
		}
	}
	answer = "[{"
	if err := src.Read(t.Context(), &got); err == nil || errors.Is(err, collector.ErrNoData) {
		t.Errorf("a cut answer: %v", err)
	}
	status = 400
	if _, err := Ask(t.Context(), socket, "PUT", "/table", nil); !errors.Is(err, ErrRefused) {
		t.Errorf("a refusal: %v", err)
	}
}
