package scraped

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAPrometheusIsAskedForEachStretchOnce: stretches follow each other, shrink where an answer would be too large, and
// only servers and named nodes are asked for their disks.
func TestAPrometheusIsAskedForEachStretchOnce(t *testing.T) {
	const end = int64(1_764_372_000)
	stretch := regexp.MustCompile(`\[([0-9]+)ms\]$`)
	var until []int64 // end of each stretch of threads, ms
	covered, refused := int64(0), 0
	var ofNodes []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		at, err := strconv.ParseFloat(r.FormValue("time"), 64)
		if r.URL.Path != "/prom/api/v1/query" || err != nil {
			t.Errorf("%s asked at %q", r.URL, r.FormValue("time"))
		}
		m := stretch.FindStringSubmatch(query)
		result := ""
		if m != nil {
			ms, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				t.Error(err)
			}
			if ms > 60_000 {
				refused++
				w.WriteHeader(http.StatusUnprocessableEntity)
				fmt.Fprint(w, `{"status":"error","errorType":"execution","error":"too many samples"}`)
				return
			}
			if strings.Contains(query, "node_nfsd_server_threads") {
				until, covered = append(until, int64(at*1e3)), covered+ms
				result = fmt.Sprintf(`{"metric":{"__name__":"node_nfsd_server_threads","instance":"gw1:9100"},`+
					`"values":[[%.3f,"8"]]}`, at)
			}
			if strings.Contains(query, "node_disk_") || strings.Contains(query, "node_network_") {
				ofNodes = append(ofNodes, query)
			}
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, result)
	}))
	defer s.Close()
	p, err := NewPrometheus("prometheus://" + strings.TrimPrefix(s.URL, "http://") + "/prom")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	r := NewReader([]string{"gw7"}, func(Interval) error { seen++; return nil })
	if err := p.Read(context.Background(), r, time.Unix(end-600, 0), time.Unix(end, 0),
		func(err error) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	if covered != 600_000 || until[len(until)-1] != end*1000 || refused == 0 || seen == 0 {
		t.Errorf("%d ms up to %v, %d refused, %d intervals", covered, until, refused, seen)
	}
	for _, query := range ofNodes {
		want := `instance=~"(gw1|gw7)([.:].*)?"}[`
		if strings.Contains(query, "node_network_") {
			want = `instance=~"(gw7)([.:].*)?"}[`
		}
		if !strings.Contains(query, want) {
			t.Errorf("%s has not %s", query, want)
		}
	}
	if len(ofNodes) == 0 {
		t.Error("no disk was asked for")
	}
}

// TestWhatIsNoPrometheus says what was answered and where.
func TestWhatIsNoPrometheus(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/html/api/v1/query":
			fmt.Fprint(w, "<html>Grafana</html>")
		case "/refused/api/v1/query":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"unknown tenant"}`)
		case "/heavy/api/v1/query":
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"status":"error","errorType":"execution","error":"too many samples"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	for path, want := range map[string]string{
		"/html":    `answers 200 OK: "<html>Grafana</html>"; want the query API of Prometheus there`,
		"/missing": `answers 404 Not Found: "404 page not found"; want the query API of Prometheus there`,
		"/refused": `answers 400 Bad Request: status "error": unknown tenant; want`,
		"/heavy":   `the answer would be too large: status "error": too many samples`,
	} {
		p, err := NewPrometheus(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		err = p.Read(context.Background(), NewReader(nil, nil), time.Unix(1000, 0), time.Unix(2000, 0), nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path+"/api/v1/query") {
			t.Errorf("%s: %v", path, err)
		}
		if (path == "/heavy") != errors.Is(err, errTooMuch) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, address := range []string{"ftp://host", "prometheus://", "http://user:secret@", "http://a b"} {
		if _, err := NewPrometheus(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestPartOfAnAnswerIsNamed: what a store could not look at is named, once, and what it has shown is read.
func TestPartOfAnAnswerIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ says, want string }{
		"whole":           {`"infos":["a metric may be no counter"],`, ""},
		"Thanos":          {`"warnings":["store a is down"],`, "the answer may lack values: store a is down"},
		"VictoriaMetrics": {`"isPartial":true,`, "the answer may lack values: some of its storage did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"status":"success",%s"data":{"resultType":"matrix","result":[{"metric":{"__name__":`+
					`"node_nfsd_server_threads","instance":"gw1:9100"},"values":[[1500,"8"]]}]}}`, c.says)
			}))
			defer s.Close()
			p, err := NewPrometheus(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			var named []string
			r := NewReader(nil, func(Interval) error { return nil })
			err = p.Read(context.Background(), r, time.Unix(1000, 0), time.Unix(2000, 0),
				func(bad error) { named = append(named, bad.Error()) })
			if err != nil || r.Summary().Values == 0 {
				t.Errorf("%v, %d values", err, r.Summary().Values)
			}
			switch {
			case c.want == "" && len(named) == 0:
			case c.want == "" || len(named) != 1 || !strings.HasSuffix(named[0], c.want):
				t.Errorf("named %q, want %q once", named, c.want)
			}
		})
	}
}
