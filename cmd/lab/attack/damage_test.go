package attack

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// truth is what a node's second holds in the state that is damaged.
func truth(node topology.NodeID, millis int64) float64 {
	h := fnv.New32a()
	fmt.Fprint(h, node, millis)
	return float64(h.Sum32() % 1_000_003)
}

// fillState gives a daemon something of everything that it keeps, and returns the seconds of each node.
func fillState(t *testing.T, s *site) (seconds []int64) {
	t.Helper()
	a := s.agent(t, manySecret, "cn1", topology.Compute)
	nodes := []topology.NodeID{"cn1", "cn2", "fwd1", "fwd2"}
	now := time.Now().Truncate(time.Second).Add(-time.Minute)
	for span := range 12 { // older ones are sealed as others open
		at := now.Add(-time.Duration(span) * 7 * time.Minute)
		var all []collector.Frame
		for sec := range 40 {
			ms := at.Add(time.Duration(sec) * time.Second).UnixMilli()
			seconds = append(seconds, ms)
			for _, n := range nodes {
				all = append(all, trueFrame(n, ms))
			}
		}
		if m, err := a.send(all, 10*time.Second); got(m, err) != "taken" {
			t.Fatal(m, err)
		}
	}
	for i := range 5 {
		job := fmt.Sprintf(`{"job":"%d","nodes":["cn%d"],"user":"wei","app":"ROMS"}`, i, i%4+1)
		if r := s.askLocal("POST", "/api/v1/dispatch", job); r.code != 200 {
			t.Fatal(r)
		}
		if r := s.askLocal("POST", fmt.Sprintf("/api/v1/jobs/%d/end", i), "{}"); r.code != 200 {
			t.Fatal(r)
		}
	}
	r := s.askLocal("POST", "/api/v1/standing",

		`{"app":"ROMS","user":"wei","ttl":"720h","reason":"agreed with the group"}`)
	if r.code != 200 {
		t.Fatal(r)
	}
	return seconds
}

func trueFrame(node topology.NodeID, millis int64) collector.Frame {
	f := frames(node, topology.Compute, millis)[0]
	if strings.HasPrefix(string(node), "fwd") {
		f.Role = topology.Forwarder
	}
	f.Samples[0].Value = truth(node, millis)
	return f
}

// copyTree copies a directory and lists its regular files.
func copyTree(t *testing.T, from, to string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, p)
		at := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(at, 0o750)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if len(b) > 0 {
			files = append(files, rel)
		}
		return os.WriteFile(at, b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// damage changes a file at random and says how.
func damage(r *rand.Rand, b []byte) ([]byte, string) {
	at, n := r.IntN(len(b)), r.IntN(64)+1
	if len(b) > 8192 && r.IntN(2) == 0 { // most of a log's segment is zeros
		at = r.IntN(8192)
	}
	end := min(at+n, len(b))
	switch r.IntN(7) {
	case 0:
		b[at] ^= 1 << r.IntN(8)
		return b, fmt.Sprintf("a bit of byte %d", at)
	case 1:
		for i := at; i < end; i++ {
			b[i] = byte(r.Uint32())
		}
		return b, fmt.Sprintf("bytes %d to %d at random", at, end)
	case 2:
		return b[:at], fmt.Sprintf("cut to %d bytes", at)
	case 3:
		clear(b[at:min(at+4096, len(b))])
		return b, fmt.Sprintf("a page of zeros at %d", at)
	case 4:
		return append(b[:at:at], b[end:]...), fmt.Sprintf("%d bytes less at %d", end-at, at)
	case 5:
		return append(append(b[:end:end], b[at:end]...), b[end:]...), fmt.Sprintf("%d bytes twice at %d", end-at, at)
	}
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b, "all of it at random"
}

// runs is how many states are damaged: FAIRWAY_DAMAGED=SEED,COUNT, else few, and a thousand at full size.
func runs(t *testing.T) (seed uint64, count int) {
	seed, count = 1, 12
	if long {
		count = 1000
	}
	if text := os.Getenv("FAIRWAY_DAMAGED"); text != "" {
		if _, err := fmt.Sscanf(text, "%d,%d", &seed, &count); err != nil {
			t.Fatalf("FAIRWAY_DAMAGED=%q: %v", text, err)
		}
	}
	return seed, count
}

// TestDamagedStates damages one file of a state directory at random and starts the daemon on it, many times: it is
// ready or names the file that it cannot use, in bounded time and memory, and what it answers is true.
func TestDamagedStates(t *testing.T) {
	s := newSite(t, "")
	seconds := fillState(t, s)
	s.kill()
	state, good := filepath.Join(s.dir, "state"), filepath.Join(s.dir, "good")
	files := copyTree(t, state, good)
	seed, count := runs(t)
	opened, refused, worst, most := 0, 0, time.Duration(0), int64(0)
	missing := 0
	for i := range count {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		copyTree(t, good, state)
		file := files[r.IntN(len(files))]
		b, err := os.ReadFile(filepath.Join(state, file))
		if err != nil {
			t.Fatal(err)
		}
		b, how := damage(r, b)
		if err := os.WriteFile(filepath.Join(state, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("seed %d run %d: %s: %s", seed, i, file, how)
		begun := time.Now()
		s.launch()
		switch ready, log := s.ready(30 * time.Second); {
		case ready:
			opened++
			missing += s.compare(what, seconds)
			most = max(most, s.status("VmHWM"))
		case s.gone() && strings.Contains(log, state):
			refused++
		default:
			t.Errorf("%s: neither ready nor refused by name after %s; the log ends:\n%s", what, time.Since(begun),
				log[max(0, len(log)-600):])
		}
		worst = max(worst, time.Since(begun))
		s.kill()
	}
	t.Logf(
		"%d files damaged at random, one a start: %d opened, %d refused by name, longest %s, at most %d MB, %.1f of "+
			"%d seconds missing in the mean", count, opened, refused, worst.Round(time.Millisecond), most>>20,
		float64(missing)/max(float64(opened), 1), 2*len(seconds))
	if most > 500<<20 {
		t.Errorf("a damaged state took %d MB", most>>20)
	}
}

// compare asks for everything that the state held: a value is the one that was stored, or it is missing.
func (s *site) compare(what string, seconds []int64) (missing int) {
	s.t.Helper()
	for _, node := range []topology.NodeID{"cn1", "fwd1"} {
		oldest, newest := seconds[len(seconds)-40], seconds[39]
		a := s.askLocal("GET", "/api/v1/series?"+url.Values{"metric": {"read_bytes"}, "node": {string(node)},
			"from": {time.UnixMilli(oldest).UTC().Format(time.RFC3339)},
			"to":   {time.UnixMilli(newest + 1000).UTC().Format(time.RFC3339)}, "step": {"1s"}}.Encode(), "")
		var v struct {
			Series []struct {
				Points []struct {
					T int64
					V *float64
				}
			}
		}
		if err := json.Unmarshal([]byte(a.body), &v); a.code != 200 || err != nil {
			s.t.Errorf("%s: series of %s: %d %v %.300s", what, node, a.code, err, a.body)
			continue
		}
		have := 0
		for _, one := range v.Series {
			for _, p := range one.Points {
				if p.V == nil {
					continue
				}
				have++
				if want := truth(node, p.T); *p.V != want {
					s.t.Errorf("%s: %s at %d: %v, stored was %v", what, node, p.T, *p.V, want)
				}
			}
		}
		missing += len(seconds) - have
	}
	var standing []struct{ App, User, Reason, Until string }
	a := s.askLocal("GET", "/api/v1/standing", "")
	if err := json.Unmarshal([]byte(a.body), &standing); a.code != 200 || err != nil {
		s.t.Errorf("%s: standing approvals: %d %v", what, a.code, err)
	}
	for _, x := range standing {
		if x.App != "ROMS" || x.User != "wei" || x.Reason != "agreed with the group" || x.Until == "" {
			s.t.Errorf("%s: an approval that nobody gave: %+v", what, x)
		}
	}
	for _, path := range []string{"/api/v1/audit", "/api/v1/plans", "/api/v1/jobs/4/runs", "/api/v1/findings"} {
		if a := s.askLocal("GET", path, ""); a.code != 200 && a.code != 404 {
			s.t.Errorf("%s: %s: %d %.300s", what, path, a.code, a.body)
		}
	}
	return missing
}

// TestDamagedSpools damages an agent's spool at random: what is read of it is what was written.
func TestDamagedSpools(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	sp, err := stream.OpenSpool(good, stream.MinSpoolBytes, quiet)
	if err != nil {
		t.Fatal(err)
	}
	const seconds = 3000
	for i := range int64(seconds) {
		f := frames("cn1", topology.Compute, 1_700_000_000_000+i*1000)
		f[0].Samples[0].Value = truth("cn1", f[0].TimeMillis)
		if err := sp.Append(f); err != nil {
			t.Fatal(err)
		}
	}
	sp.Ack(100)
	if err := errors.Join(sp.Sync(), sp.Close()); err != nil {
		t.Fatal(err)
	}
	files := copyTree(t, good, filepath.Join(dir, "other"))
	seed, count := runs(t)
	opened, kept := 0, 0
	for i := range 10 * count {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		at := filepath.Join(dir, "damaged")
		os.RemoveAll(at)
		copyTree(t, good, at)
		file := files[r.IntN(len(files))]
		b, err := os.ReadFile(filepath.Join(at, file))
		if err != nil {
			t.Fatal(err)
		}
		b, how := damage(r, b)
		if err := os.WriteFile(filepath.Join(at, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("seed %d run %d: %s: %s", seed, i, file, how)
		sp, err := stream.OpenSpool(at, stream.MinSpoolBytes, quiet)
		if err != nil {
			if !strings.Contains(err.Error(), at) {
				t.Errorf("%s: refused without a name: %v", what, err)
			}
			continue
		}
		opened++
		var d wire.Decoder
		for seq, msg, ok := sp.Next(0, nil); ok; seq, msg, ok = sp.Next(seq, nil) {
			m, err := d.Decode(msg)
			f, is := m.(*wire.Frames)
			if err != nil || !is || len(f.Frames) != 1 ||
				f.Frames[0].Samples[0].Value != truth("cn1", f.Frames[0].TimeMillis) {
				t.Fatalf("%s: message %d is %+v, %v", what, seq, m, err)
			}
			kept++
		}
		if err := sp.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	t.Logf("%d of %d opened, %d of %d messages were read in the mean", opened, 10*count, kept/max(opened, 1),
		seconds-100)
}
