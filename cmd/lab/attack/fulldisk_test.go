package attack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// ownDisk gives the site's state a file system of its own, in a mount namespace that ends with the test. What it
// returns fills it to the last page, and makes room again.
func (s *site) ownDisk(t *testing.T) (fill, empty func()) {
	t.Helper()
	for _, tool := range []string{"unshare", "nsenter", "mount"} {
		if _, err := exec.LookPath(tool); err != nil || os.Geteuid() != 0 {
			t.Skip("skipped: a file system of a given size needs root, and util-linux")
		}
	}
	state := filepath.Join(s.dir, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	holder := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec",
		`mount -t tmpfs -o size=64m none "$1"; echo mounted; exec cat`, "sh", state)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Skipf("skipped: no mount namespace here: %v", err)
	}
	t.Cleanup(func() { in.Close(); _ = holder.Wait() })
	if _, err := io.ReadFull(out, make([]byte, len("mounted"))); err != nil {
		t.Skipf("skipped: no file system can be mounted here: %v", err)
	}
	s.enter = []string{"nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", holder.Process.Pid)}
	run := func(command string) {
		t.Helper()
		args := slices.Concat(s.enter[1:], []string{"sh", "-ec", command, "sh", filepath.Join(state, "others-file")})
		if out, err := exec.Command(s.enter[0], args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	return func() { run(`! dd if=/dev/zero of="$1" bs=4k status=none`) }, func() { run(`rm "$1"`) }
}

// noise is a second of a node that no coding makes small.
func noise(node topology.NodeID, millis int64) collector.Frame {
	f := trueFrame(node, millis)
	for m := collector.WriteBytes; m < collector.WriteBytes+20; m++ {
		f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: truth(node, millis+int64(m)) / 7})
	}
	return f
}

// kept counts the seconds of a node that the daemon answers as they were acknowledged.
func (s *site) kept(node topology.NodeID, acked []int64) (n int) {
	s.t.Helper()
	a := s.askLocal("GET", "/api/v1/series?"+url.Values{"metric": {"read_bytes"}, "node": {string(node)},
		"from": {time.UnixMilli(acked[0]).UTC().Format(time.RFC3339)},
		"to":   {time.UnixMilli(acked[len(acked)-1] + 1000).UTC().Format(time.RFC3339)}, "step": {"1s"}}.Encode(), "")
	var v struct {
		Series []struct {
			Points []struct {
				T int64
				V *float64
			}
		}
	}
	if err := json.Unmarshal([]byte(a.body), &v); a.code != 200 || err != nil {
		s.t.Fatalf("series of %s: %d %v %.300s", node, a.code, err, a.body)
	}
	have := map[int64]float64{}
	for _, one := range v.Series {
		for _, p := range one.Points {
			if p.V != nil {
				have[p.T] = *p.V
			}
		}
	}
	for _, ms := range acked {
		if v, ok := have[ms]; ok && v == truth(node, ms) {
			n++
		}
	}
	return n
}

// TestFullDisk fills the daemon's disk with an agent's frames: it says so, goes on answering, has every second that it
// acknowledged, also after kill -9 on the full disk, and takes frames again once there is room.
func TestFullDisk(t *testing.T) {
	s := prepare(t, "")
	fillDisk, emptyDisk := s.ownDisk(t)
	s.start()
	const nodes = 40
	var acked []int64
	begun := time.Now().Truncate(time.Second).Add(-50 * time.Minute).UnixMilli()
	send := func(from, to int) (why string) {
		t.Helper()
		a := s.agent(t, manySecret, "cn1", topology.Compute)
		for sec := from; sec < to; sec += 5 {
			var all []collector.Frame
			for i := range 5 {
				for n := range nodes {
					all = append(all, noise(topology.NodeID(fmt.Sprint("cn", n+1)), begun+int64(sec+i)*1000))
				}
			}
			m, err := a.send(all, time.Minute)
			if _, ok := m.(wire.Ack); !ok {
				return got(m, err)
			}
			for i := range 5 {
				acked = append(acked, begun+int64(sec+i)*1000)
			}
		}
		return ""
	}
	if why := send(0, 50); why != "" {
		t.Fatal(why)
	}
	fillDisk()
	if why := send(50, 2400); why == "" {
		t.Fatal("the daemon took everything on a full disk: the test shows nothing")
	}
	full := len(acked)
	t.Logf("%d seconds of %d nodes until the disk was full", full, nodes)
	says := func(when string) {
		t.Helper()
		if a := s.askLocal("GET", "/readyz", ""); a.code != 503 || !strings.Contains(a.body, "no space left") {
			t.Errorf("%s /readyz answers %d %s", when, a.code, a.body)
		}
		for _, path := range []string{"/healthz", "/api/v1/overview", "/api/v1/findings", "/api/v1/audit"} {
			if a := s.askLocal("GET", path, ""); a.code != 200 {
				t.Errorf("%s %s: %d %.300s", when, path, a.code, a.body)
			}
		}
		for _, node := range []topology.NodeID{"cn1", "cn40"} {
			if have := s.kept(node, acked[:full]); have != full {
				t.Errorf("%s %d of %d acknowledged seconds of %s are answered", when, have, full, node)
			}
		}
	}
	says("on the full disk")
	s.kill()
	s.launch() // on the full disk, where it is ready or names what it cannot write
	if ready, log := s.ready(2 * time.Minute); !ready && !strings.Contains(log+s.askLocal("GET", "/readyz", "").body,
		"no space left") {
		t.Errorf("on the full disk it is not ready and does not say why: %s", log)
	}
	s.kill()
	emptyDisk()
	s.start()
	for _, node := range []topology.NodeID{"cn1", "cn40"} {
		if have := s.kept(node, acked[:full]); have != full {
			t.Errorf("after kill -9 %d of %d acknowledged seconds of %s are answered", have, full, node)
		}
	}
	if why := send(full, full+50); why != "" {
		t.Errorf("with room again: %s", why)
	}
}
