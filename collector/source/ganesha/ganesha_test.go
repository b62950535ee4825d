package ganesha

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/sourcetest"
	"fairway/collector"
	"fairway/collector/hostname"
)

// tree is a bus whose answers are files: a call's text, with the answer's values in JSON. A list of structures is
// {"rows": [...]}, a small number {"u16": n}.
type tree struct{ fs.FS }

func (b tree) Owner(context.Context) (string, int, error) {
	text, err := fs.ReadFile(b, "owner")
	if err != nil {
		return ":1.7", 1, nil
	}
	return string(text), 1, nil
}

// left is a bus that nfs-ganesha has left.
type left struct{ tree }

func (left) Owner(context.Context) (string, int, error) { return "", 0, errors.New("not on the bus") }

// TestAGaneshaThatHasEndedIsSaid: one that has only left the bus may serve yet, one whose process is gone does not.
func TestAGaneshaThatHasEndedIsSaid(t *testing.T) {
	var has bus = tree{gateway(1)}
	s := newSource(Options{}, func(context.Context) (bus, error) { return has, nil }, hostname.New(nil))
	s.connections = func(int) ([]connection, error) { return nil, nil }
	var gone error
	s.cpuTime = func(int) (float64, error) { return 1, gone }
	_ = s.Read(t.Context(), &collector.Reading{Now: time.Now()})
	for _, c := range []struct {
		gone error
		want bool
	}{{nil, false}, {errors.New("may not be read"), false}, {fmt.Errorf("process 1: %w", fs.ErrNotExist), true}} {
		s.bus, has, gone = collector.Held[bus]{}, left{}, c.gone
		err := s.Read(t.Context(), &collector.Reading{Now: time.Now()})
		if err == nil || strings.Contains(err.Error(), collector.ServiceEnded) != c.want {
			t.Errorf("%v: %v", c.gone, err)
		}
	}
}

func (b tree) Ask(ctx context.Context, calls []call) []reply {
	out := make([]reply, len(calls))
	for i, c := range calls {
		text, err := fs.ReadFile(b, c.String())
		if errors.Is(err, fs.ErrNotExist) {
			err = errUnknown
		}
		if err == nil {
			err = ctx.Err()
		}
		out[i].err = err
		if err != nil {
			continue
		}
		if v, err := decode(text); err == nil {
			out[i].body = v
		} else {
			out[i].body = []any{string(text)} // what no ganesha answers
		}
	}
	return out
}

func (b tree) Close() error { return nil }

func decode(text []byte) ([]any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var raw []any
	if err := d.Decode(&raw); err != nil {
		return nil, err
	}
	out, ok := typed(raw).([]any)
	if !ok {
		return nil, errors.New("not a list of values")
	}
	return out, nil
}

// typed gives values the types that godbus gives them.
func typed(v any) any {
	switch v := v.(type) {
	case json.Number:
		if strings.Contains(v.String(), ".") {
			f, _ := v.Float64()
			return f
		}
		n, _ := v.Int64()
		return uint64(n)
	case []any:
		for i := range v {
			v[i] = typed(v[i])
		}
		return v
	case map[string]any:
		if small, ok := v["u16"].(json.Number); ok {
			n, _ := small.Int64()
			return uint16(n)
		}
		rows := [][]any{}
		all, _ := v["rows"].([]any)
		for _, r := range all {
			row, _ := typed(r).([]any)
			rows = append(rows, row)
		}
		return rows
	}
	return v
}

// over is a source over a tree, without a process of its own.
func over(fsys fs.FS) collector.Source { return forwarderOver(tree{fsys}) }

func forwarderOver(b bus) *Source {
	s := newSource(Options{Node: "gw1", Forwarder: true, Skip: nil}, func(context.Context) (bus, error) {
		return b,
			nil
	},
		hostname.New(func(_ context.Context, a netip.Addr) (string, error) {
			return map[string]string{"10.0.0.7": "cn1", "10.0.0.8": "cn2", "10.0.0.2": "be1"}[a.String()], nil
		}))
	s.connections = func(int) ([]connection, error) {
		c := func(local, remote string) connection {
			return connection{netip.MustParseAddrPort(local), netip.MustParseAddrPort(remote)}
		}
		return []connection{c("[::ffff:10.0.0.4]:564", "[::ffff:10.0.0.7]:50000"),
			c("[::ffff:10.0.0.4]:564", "[::ffff:10.0.0.8]:50001"), c("[::ffff:10.0.0.4]:512", "[::ffff:10.0.0.2]:2049"),
			c("[::ffff:10.0.0.4]:564", "[::ffff:10.0.0.4]:50002"), c("10.0.0.4:22", "10.0.0.7:40000")}, nil
	}
	began := time.Now()
	s.cpuTime = func(int) (float64, error) { return time.Since(began).Seconds() / 4, nil }
	return s
}

func file(format string, args ...any) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(fmt.Sprintf(format, args...))}
}

const (
	usedBy = `[["NFSv3", false], ["NFSv40", false], ["NFSv41", %v], ["9P", %v]]`
	stamp  = `[1795414152, 257744162]`
)

// gateway is a ganesha that serves 9P, at a moment.
func gateway(at int) fstest.MapFS {
	m := fstest.MapFS{
		"ShowExports": file(`[%s, {"rows": [[{"u16": 1}, "/gw1", `+usedBy+`, [0, 0]]]}]`, stamp, false, true),
		"ShowClients": file(`[%s, {"rows": [["::ffff:10.0.0.7", `+usedBy+`, [0, 0]], ["::ffff:127.0.0.1", `+usedBy+
			`, [0, 0]]]}]`, stamp, false, true, false, false),
		"Get9pTrans ::ffff:10.0.0.7": file(`[true, "OK", %s, [%d, 9, 0, %d, 9, %d]]`, stamp, 1000*at+23*10*at,
			8000*at+11*10*at, at),
		"Get9pOpStats 1 _9P_TREAD":    file(`[true, "OK", %s, [%d, 0]]`, stamp, 8*at),
		"Get9pOpStats 1 _9P_TWRITE":   file(`[true, "OK", %s, [%d, 0]]`, stamp, 2*at),
		"Get9pOpStats 1 _9P_TGETATTR": file(`[true, "OK", %s, [%d, 0]]`, stamp, 5*at),
		"Get9pOpStats 1 _9P_TWALK":    file(`[true, "OK", %s, [%d, 0]]`, stamp, 6*at),
	}
	return m
}

// server is a ganesha that serves NFS, at a moment.
func server(at int) fstest.MapFS {
	return fstest.MapFS{
		"ShowExports": file(`[%s, {"rows": [[{"u16": 3}, "/data", `+usedBy+`, [0, 0]]]}]`, stamp, true, false),
		"GetNFSv41IO 3": file(`[true, "OK", %s, [%d, %d, %d, %d, %d, 0], [%d, %d, %d, 0, %d, 0]]`, stamp, 4000*at,
			4000*at, 4*at, at, 2_000_000*at, 500*at, 500*at, 2*at, 3_000_000*at),
		"GetFULLV4Stats": file(`[true, "OK", %s, {"rows": [["GETATTR", %d, 0, 0.5, 0.1, 2.5],
			["SEQUENCE", %d, 0, 0.01, 0.1, 2.5]]}, "OK"]`, stamp, 10*at, 99*at),
	}
}

func TestConformanceOfAGateway(t *testing.T) {
	sourcetest.Run(t, sourcetest.Suite{New: over, First: gateway(1), Second: gateway(3),
		Want: []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.ReadOps, collector.WriteOps,
			collector.MetaOps, collector.Errors, collector.Connections, collector.CPUSeconds,
			collector.AnswerTime}})
}

func TestConformanceOfAServer(t *testing.T) {
	sourcetest.Run(t, sourcetest.Suite{New: over, First: server(1), Second: server(3),
		Want: []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.ReadOps, collector.WriteOps,
			collector.MetaOps, collector.ReadExec, collector.WriteExec, collector.MetaExec, collector.AnswerTime}})
}

// second reads two trees a second apart and returns what the second gave.
func second(t *testing.T, s *Source, first, then fstest.MapFS, now *fs.FS) (collector.Reading, error) {
	t.Helper()
	*now = first
	_ = s.Read(t.Context(), &collector.Reading{Now: time.Now()})
	time.Sleep(time.Second)
	*now = then
	r := collector.Reading{Now: time.Now()}
	err := s.Read(t.Context(), &r)
	return r, err
}

// swapped is a tree that changes.
type swapped struct{ now *fs.FS }

func (s swapped) Open(name string) (fs.File, error) { return (*s.now).Open(name) }

func TestWhatIsCounted(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, then fstest.MapFS
		want        map[collector.Metric]float64
	}{
		{"gateway", gateway(1), gateway(3), map[collector.Metric]float64{
			// The messages without the heads of 10 reads and writes a step.
			collector.ReadBytes: 16000, collector.WriteBytes: 2000, collector.ReadOps: 16, collector.WriteOps: 4,
			collector.MetaOps: 22, collector.Errors: 2, collector.Connections: 2, collector.CPUSeconds: 0.25}},
		{"server", server(1), server(3), map[collector.Metric]float64{
			collector.ReadBytes: 8000, collector.WriteBytes: 1000, collector.ReadOps: 8, collector.WriteOps: 4,
			collector.MetaOps: 20, collector.ReadExec: 0.5e-3, collector.WriteExec: 1.5e-3, collector.MetaExec: 0.5e-3,
			collector.Errors: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now fs.FS
				s := forwarderOver(tree{swapped{&now}})
				defer s.Close()
				r, err := second(t, s, c.first, c.then, &now)
				if err != nil {
					t.Fatal(err)
				}
				for m, want := range c.want {
					if got, ok := collector.SampleOf(r.Samples, m); !ok || got < want*(1-1e-9) || got > want*(1+1e-9) {
						t.Errorf("%v is %v (%v), want %v", m, got, ok, want)
					}
				}
				if c.name != "gateway" {
					return
				}
				if v, ok := collector.SampleOf(r.Samples, collector.ReadExec); ok {
					t.Errorf("9P has no clock, and read_exec is %v", v)
				}
				if len(r.Routes) != 2 || !r.RoutesComplete || r.Routes[0].Client != "cn1" ||
					r.Routes[0].Forwarder != "gw1" {
					t.Errorf("routes %v, complete %v; want cn1 and cn2 on gw1", r.Routes, r.RoutesComplete)
				}
				if len(r.Targets) != 1 || r.Targets[0].Target != "be1" || len(r.Targets[0].Samples) != 4 {
					t.Errorf("targets %v, want be1 with all that is served", r.Targets)
				}
			})
		})
	}
}

// TestReleasesOfGanesha: rows of exports and clients are read as each release writes them, and what a release counts
// and has no call for is not left out of a sum.
func TestReleasesOfGanesha(t *testing.T) {
	const words = `false, false, false, false, false, true, %v, false`
	for name, c := range map[string]struct {
		change  func(m fstest.MapFS)
		of      func(int) fstest.MapFS
		reads   float64 // -1: not known
		problem string
	}{
		"2.8 and 3": {func(m fstest.MapFS) {
			m["ShowExports"] = file(`[%s, {"rows": [[{"u16": 3}, "/data", `+words+`, [0, 0]]]}]`, stamp, false)
		}, server, 8, ""},
		"3, and clients of 4.2": {func(m fstest.MapFS) {
			m["ShowExports"] = file(`[%s, {"rows": [[{"u16": 3}, "/data", `+words+`, [0, 0]]]}]`, stamp, true)
		}, server, -1, "GetNFSv42IO 3: reads and writes are not counted"},
		"3, and clients of 4.2 at five exports": {func(m fstest.MapFS) {
			const one = `[{"u16": 3}, "/data", ` + words + `, [0, 0]]`
			m["ShowExports"] = file(`[%s, {"rows": [`+strings.Repeat(one+", ", 4)+one+`]}]`, stamp, true, true, true,
				true, true)
		}, server, -1, "GetNFSv42IO 3: reads and writes are not counted"},
		"6, whose clients have states": {func(m fstest.MapFS) {
			m["ShowClients"] = file(`[%s, {"rows": [["::ffff:10.0.0.7", `+usedBy+`, ["Open", 3, "Lock", 0, "Delegation",
				1], [0, 0]]]}]`, stamp, false, true)
		}, gateway, 16, ""},
		"without 9P and NFSv3": {func(m fstest.MapFS) {
			m["ShowExports"] = file(`[%s, {"rows": [[{"u16": 3}, "/data", [["NFSv40", false], ["NFSv41", true]],
				[0, 0]]]}]`, stamp)
		}, server, 8, ""},
		"another row": {func(m fstest.MapFS) {
			m["ShowExports"] = file(`[%s, {"rows": [[{"u16": 3}, "/data", true, false, [0, 0]]]}]`, stamp)
		}, server, -1, "an export is not as expected"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var now fs.FS
			s := forwarderOver(tree{swapped{&now}})
			defer s.Close()
			first, then := c.of(1), c.of(3)
			c.change(first)
			c.change(then)
			r, err := second(t, s, first, then, &now)
			if c.problem == "" && err != nil || c.problem != "" &&
				(err == nil || !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("%s: %v, want %q", name, err, c.problem)
			}
			if v, ok := collector.SampleOf(r.Samples, collector.ReadOps); ok != (c.reads >= 0) || ok && v != c.reads {
				t.Errorf("%s: read_ops %v, known %v; want %v", name, v, ok, c.reads)
			}
			if v, ok := collector.SampleOf(r.Samples, collector.MetaOps); ok != (name != "another row") {
				t.Errorf("%s: meta_ops %v, known %v", name, v, ok)
			}
		})
	}
}

func TestAnotherProcessIsAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now fs.FS
		s := forwarderOver(tree{swapped{&now}})
		defer s.Close()
		then := gateway(3) // its counters have passed the old ones already
		then["owner"] = file(":1.9")
		r, err := second(t, s, gateway(1), then, &now)
		if err != nil || r.Resets != 1 {
			t.Errorf("%d resets, %v; want 1", r.Resets, err)
		}
		if v, ok := collector.SampleOf(r.Samples, collector.ReadOps); ok {
			t.Errorf("read_ops %v from the counters of two processes", v)
		}
	})
}

func TestWhatIsSwitchedOffIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now fs.FS
		s := forwarderOver(tree{swapped{&now}})
		defer s.Close()
		first, then := server(1), server(3)
		off := file(`[false, "v4_full stats disabled", %s]`, stamp)
		first["GetFULLV4Stats"], then["GetFULLV4Stats"] = off, off
		r, err := second(t, s, first, then, &now)
		if err == nil || !strings.Contains(err.Error(), "set Enable_FULLV4_Stats") {
			t.Errorf("error %v does not say what to set", err)
		}
		if _, ok := collector.SampleOf(r.Samples, collector.MetaOps); ok {
			t.Error("metadata operations that are not counted have a number")
		}
		if v, ok := collector.SampleOf(r.Samples, collector.ReadOps); !ok || v != 8 {
			t.Errorf("read_ops %v, %v; want 8: the rest is counted", v, ok)
		}
	})
}

func TestAPartThatFailsLeavesNoTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now fs.FS
		s := forwarderOver(tree{swapped{&now}})
		defer s.Close()
		then := gateway(3)
		then["Get9pOpStats 1 _9P_TWALK"] = file(`[true, "OK", %s, ["many"]]`, stamp)
		r, err := second(t, s, gateway(1), then, &now)
		if err == nil || !strings.Contains(err.Error(), "Get9pOpStats 1 _9P_TWALK") {
			t.Errorf("error %v does not name the call", err)
		}
		if v, ok := collector.SampleOf(r.Samples, collector.MetaOps); ok {
			t.Errorf("meta_ops %v without the walks", v)
		}
	})
}

// FuzzAnswers feeds arbitrary answers to every reader of them.
func FuzzAnswers(f *testing.F) {
	for _, m := range []fstest.MapFS{gateway(1), server(2)} {
		for _, b := range m {
			f.Add(b.Data)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := decode(text); err != nil {
			return
		}
		for _, c := range []string{"ShowExports", "ShowClients", "GetNFSv41IO 3", "GetFULLV4Stats"} {
			m := gateway(1)
			for name, b := range server(1) {
				m[name] = b
			}
			m[c] = &fstest.MapFile{Data: text}
			s := forwarderOver(tree{m})
			r := collector.Reading{Now: time.Now()}
			_ = s.Read(t.Context(), &r)
			s.Close()
		}
	})
}
