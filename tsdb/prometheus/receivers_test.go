package prometheus_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fairway/cmd/lab/conform/storetest"
	"fairway/cmd/lab/leash"
)

// thanos is three receivers that keep each sample three times, and a querier over them.
type thanos struct {
	// writeURL is the first receiver's and readURL the querier's, as a prometheus.Config wants them.
	writeURL, readURL string
	dir               string
	receivers         [3]member
}

type member struct {
	args   []string
	health string
	*leash.Process
}

// startThanos starts a Thanos for one test, which takes samples that are at most a window late.
func startThanos(t *testing.T, window time.Duration) *thanos {
	t.Helper()
	path := os.Getenv("FAIRWAY_THANOS")
	if path == "" {
		t.Skip("skipped: make engines builds Thanos and names it")
	}
	addrs := storetest.Free(t, 14)
	next := func() (addr string) { addr, addrs = addrs[0], addrs[1:]; return addr }
	c := &thanos{dir: t.TempDir()}
	type endpoint struct {
		Address   string `json:"address"`
		CapNProto string `json:"capnproto_address"`
	}
	var ring []endpoint
	for range c.receivers {
		ring = append(ring, endpoint{next(), next()})
	}
	text, err := json.Marshal([]map[string]any{{"endpoints": ring}})
	if err != nil {
		t.Fatal(err)
	}
	at := next()
	query := []string{"query", "--http-address=" + at, "--grpc-address=" + next(), "--query.replica-label=replica",
		"--deduplication.func=chain"}
	for i, e := range ring {
		r, web, write := &c.receivers[i], next(), next()
		r.health = "http://" + web + "/-/ready"
		r.args = []string{path, "receive", "--http-address=" + web, "--grpc-address=" + e.Address,
			"--remote-write.address=" + write, "--receive.capnproto-address=" + e.CapNProto,
			"--receive.local-endpoint=" + e.Address, "--receive.hashrings=" + string(text),
			"--receive.hashrings-algorithm=ketama", "--receive.replication-factor=3", "--tsdb.retention=0d",
			"--tsdb.path=" + filepath.Join(c.dir, fmt.Sprint("data", i)),
			fmt.Sprintf("--label=replica=%q", fmt.Sprint(i)),
			fmt.Sprintf("--tsdb.out-of-order.time-window=%ds", int(window.Seconds()))}
		if i == 0 {
			c.writeURL = "http://" + write + "/api/v1/receive"
		}
		query = append(query, "--endpoint="+e.Address)
	}
	for i := range c.receivers {
		c.launch(t, i)
	}
	for i := range c.receivers {
		storetest.Answers(t, c.receivers[i].health, c.receivers[i].Process)
	}
	c.readURL = "http://" + at
	storetest.Start(t, c.dir, "query", c.readURL+"/-/ready", exec.Command(path, query...))
	return c
}

// settle returns when the querier has asked so many receivers anew which times they have, as it does every few seconds.
func (c *thanos) settle(t *testing.T, receivers int) {
	t.Helper()
	var text []byte
	begun := time.Now()
	for range 1500 {
		res, err := http.Get(c.readURL + "/api/v1/stores")
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Data map[string][]struct {
				LastError any       `json:"lastError"`
				LastCheck time.Time `json:"lastCheck"`
			} `json:"data"`
		}
		text, err = io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || json.Unmarshal(text, &out) != nil {
			t.Fatalf("%s, %v", text, err)
		}
		n := 0
		for _, s := range out.Data["receive"] {
			if s.LastError == nil && s.LastCheck.After(begun) {
				n++
			}
		}
		if n == receivers {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the querier does not read from %d receivers: %s", receivers, text)
}

// kill ends a receiver as kill -9 does.
func (c *thanos) kill(i int) { c.receivers[i].Kill() }

// restart starts a receiver again over its data.
func (c *thanos) restart(t *testing.T, i int) {
	t.Helper()
	c.launch(t, i)
	storetest.Answers(t, c.receivers[i].health, c.receivers[i].Process)
}

func (c *thanos) launch(t *testing.T, i int) {
	t.Helper()
	r := &c.receivers[i]
	r.Process = storetest.Launch(t, c.dir, fmt.Sprint("receive", i), exec.Command(r.args[0], r.args[1:]...))
}
