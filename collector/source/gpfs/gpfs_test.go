package gpfs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector"
)

func line(at int64, system string, bytes, calls uint64) string {
	return fmt.Sprintf(
		"_fs_io_s_ _n_ 10.0.0.1 _nn_ ces1 _rc_ 0 _t_ %d _tu_ 500000 _cl_ gpfs.site _fs_ %s _d_ 48 _br_ %d "+
			"_bw_ %d _oc_ %d _cc_ %[5]d _rdc_ %[5]d _wc_ %[5]d _dir_ 0 _iu_ 0\n", at, system, bytes, 2*bytes, calls)
}

// What mmpmon prints in a second is that second's rates, also where a tick comes between the lines of two file systems;
// what it does not print is not known. An end of it, and a line without end, is named and followed by a new start.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to *io.PipeWriter
		starts := 0
		s := Over(func() (io.ReadCloser, error) {
			from, w := io.Pipe()
			to, starts = w, starts+1
			return from, nil
		})
		defer s.Close()
		read := func() (collector.Frame, error) {
			time.Sleep(time.Second)
			r := collector.Reading{Now: time.Now()}
			err := s.Read(t.Context(), &r)
			return collector.Frame{Samples: r.Samples}, err
		}
		if _, err := read(); err == nil || !strings.Contains(err.Error(), "nothing yet") {
			t.Errorf("before its first line: %v", err)
		}
		synctest.Wait()
		prints := func(second int64, known bool, text string) {
			t.Helper()
			fmt.Fprint(to, text)
			synctest.Wait()
			f, err := read()
			if err != nil {
				t.Fatal(err)
			}
			for m, want := range map[collector.Metric]float64{collector.ReadBytes: 600, collector.WriteBytes: 1200,
				collector.ReadOps: 6, collector.WriteOps: 6, collector.MetaOps: 12} {
				if v, ok := f.Value(m); known && v != want || ok != known {
					t.Errorf("second %d: %v = %v, want %v", second, m, v, want)
				}
			}
		}
		for i := range int64(6) {
			scratch := line(100+i, "scratch", uint64(1000+500*i), uint64(10+5*i))
			project := line(100+i, "project", uint64(100*i), uint64(i)) + "_other_ line\n"
			if i > 3 {
				prints(i, true, scratch)
				prints(i, true, project)
				continue
			}
			prints(i, i > 1, scratch+project) // the first answer is known to be whole when the second one begins
		}
		prints(6, true, line(106, "scratch", 4100, 41)) // the other one is mounted no more
		fmt.Fprint(to, line(107, "scratch", 4700, 47))
		synctest.Wait()
		if f, err := read(); err != nil || len(f.Samples) == 0 || f.Samples[0].Value != 600 {
			t.Errorf("one file system is left: %+v %v", f.Samples, err)
		}
		fmt.Fprint(to, "_fs_io_s_ _n_ 10.0.0.1 _nn_ ces1 _rc_ 1 _t_ 104 _tu_ 0 _cl_ - _fs_ -\n")
		synctest.Wait()
		if _, err := read(); err == nil || !strings.Contains(err.Error(), "code 1") {
			t.Errorf("GPFS is down: %v", err)
		}
		to.Close()
		time.Sleep(lateAfter)
		if f, err := read(); err == nil || !strings.Contains(err.Error(), "it ended") || len(f.Samples) > 0 {
			t.Errorf("after its end: %+v, %v", f.Samples, err)
		}
		time.Sleep(again)
		synctest.Wait()
		if starts != 2 {
			t.Errorf("%d starts, want 2", starts)
		}
		go fmt.Fprint(to, strings.Repeat("x", 2*maxLine))
		synctest.Wait()
		if _, err := read(); err == nil || !strings.Contains(err.Error(), "a line of more than 8192 bytes") {
			t.Errorf("a line without end: %v", err)
		}
	})
}

// TestFiles reads lines of a real system beside the repository, else such as it prints, and names bad ones.
func TestFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "dvs_gpfs", "mmpmon_fs_io_s.txt"))
	if err != nil {
		text = []byte(line(1579358234, "scratch", 205607400434, 7) + line(1579358234, "project", 0, 513))
	}
	seen := 0
	for l := range strings.Lines(string(text)) {
		c, ok, err := ParseLine(l)
		if seen++; err != nil || !ok || c.System == "" || c.At.Unix() != 1579358234 ||
			strings.HasSuffix(c.System, "/scratch") && c.ReadBytes != 205607400434 {
			t.Errorf("%q: %+v, %v", l, c, err)
		}
	}
	if seen == 0 {
		t.Error("no line")
	}
	for _, bad := range []string{strings.Replace(line(1, "a", 5, 5), "_br_ 5", "_br_ many", 1),
		strings.Replace(line(1, "a", 5, 5), "_fs_ a", "_fs_", 1), "_fs_io_s_ _rc_ 0"} {
		if _, ok, err := ParseLine(bad); ok || err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// A program that prints as mmpmon does is read, and ends with the source.
func TestProgram(t *testing.T) {
	name := filepath.Join(t.TempDir(), "mmpmon")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n[ \"$*\" = '-p -s -r 0 -d 1000 -i /dev/stdin' ] || exit 3\n"+
		"read request\necho \"_fs_io_s_ _n_ 1 _nn_ ces1 _rc_ 0 _t_ 5 _tu_ 0 _cl_ c _fs_ $request _d_ 1 _br_ 1 _bw_ 1 "+
		"_oc_ 1 _cc_ 1 _rdc_ 1 _wc_ 1 _dir_ 1 _iu_ 1\"\nexec sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := startMmpmon(name)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := out.Read(b)
	if c, ok, bad := ParseLine(string(b[:n])); !ok || c.System != "c/fs_io_s" {
		t.Errorf("%q: %v, %v", b[:n], err, bad)
	}
	if err := out.Close(); err == nil {
		t.Error("it ended by itself")
	}
	if err := os.WriteFile(name, []byte("#!/bin/sh\ntrap '' TERM\necho begun\nwhile :; do sleep 1; done\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	if out, err = startMmpmon(name); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(b); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("one that does not end when it is asked to: %v", err)
	}
	if _, err := startMmpmon(name + "-absent"); err == nil {
		t.Error("a program that is not there was started")
	}
}

func FuzzLine(f *testing.F) {
	f.Add(line(1, "scratch", 1, 1))
	f.Fuzz(func(_ *testing.T, text string) { _, _, _ = ParseLine(text) })
}
