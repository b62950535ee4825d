package queue

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"

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
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	answer = "[{"
	if err := src.Read(t.Context(), &got); err == nil || errors.Is(err, collector.ErrNoData) {
		t.Errorf("a cut answer: %v", err)
	}
	status = 400
	if _, err := Ask(t.Context(), socket, "PUT", "/table", nil); !errors.Is(err, ErrRefused) {
		t.Errorf("a refusal: %v", err)
	}
}
