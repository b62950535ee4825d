package storetest

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
)

// Thanos is three receivers that keep each sample three times, and a querier over them.
type Thanos struct {
	// WriteURL is the first receiver's and ReadURL the querier's, as a prometheus.Config wants them.
	WriteURL, ReadURL string
	dir               string
	receivers         [3]receiver
}

type receiver struct {
	args   []string
	health string
	cmd    *exec.Cmd
}

// StartThanos starts a Thanos for one test, which takes samples that are at most a window late.
func StartThanos(t *testing.T, window time.Duration) *Thanos {
	t.Helper()
	path := os.Getenv("FAIRWAY_THANOS")
	if path == "" {
		t.Skip("skipped: make engines builds Thanos and names it")
	}
	addrs := frees(t, 14)
	next := func() (addr string) { addr, addrs = addrs[0], addrs[1:]; return addr }
	c := &Thanos{dir: t.TempDir()}
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
			c.WriteURL = "http://" + write + "/api/v1/receive"
		}
		query = append(query, "--endpoint="+e.Address)
	}
	for i := range c.receivers {
		r := &c.receivers[i]
		r.cmd = exec.Command(r.args[0], r.args[1:]...)
		launch(t, c.dir, fmt.Sprint("receive", i), r.cmd)
	}
	for i := range c.receivers {
		answers(t, c.receivers[i].health, filepath.Join(c.dir, fmt.Sprint("receive", i, ".log")))
	}
	c.ReadURL = "http://" + at
	start(t, c.dir, "query", c.ReadURL+"/-/ready", exec.Command(path, query...))
	return c
}

// Settle returns when the querier has asked so many receivers anew which times they have, as it does every few seconds.
func (c *Thanos) Settle(t *testing.T, receivers int) {
	t.Helper()
	var text []byte
	begun := time.Now()
	for range 1500 {
		res, err := http.Get(c.ReadURL + "/api/v1/stores")
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

// Kill ends a receiver as kill -9 does.
func (c *Thanos) Kill(i int) {
	c.receivers[i].cmd.Process.Kill()
	c.receivers[i].cmd.Wait()
}

// Restart starts a receiver again over its data.
func (c *Thanos) Restart(t *testing.T, i int) {
	t.Helper()
	r := &c.receivers[i]
	r.cmd = exec.Command(r.args[0], r.args[1:]...)
	start(t, c.dir, fmt.Sprint("receive", i), r.health, r.cmd)
}
