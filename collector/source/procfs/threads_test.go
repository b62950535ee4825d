package procfs

import (
	"context"
	"math"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/collector"
)

// TestThreadsThatWaitForAProcessor: what LNet's and file services' threads waited counts, those of a program by each of
// its threads, and nobody else's.
func TestThreadsThatWaitForAProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := fstest.MapFS{}
		put := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
		put("12/comm", "kiblnd_sd_00_01\n")
		put("13/comm", "socknal_sd00_00\n")
		put("14/comm", "ganesha.nfsd\n")
		put("14/schedstat", "1 900000000000 1\n") // of its first thread alone
		put("15/comm", "nfsdcld\n")
		put("15/schedstat", "1 1 1\n")
		put("self/comm", "socknal_sd00_00\n")
		s := New(Options{Root: "proc", Files: files})
		read := func(waited ...string) (float64, bool) {
			for i, name := range []string{"12", "13", "14/task/14", "14/task/16"} {
				put(name+"/schedstat", "5 "+waited[i]+" 7\n")
			}
			r := collector.Reading{Now: time.Now()}
			if err := s.Read(context.Background(), &r); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			f := collector.Frame{Samples: r.Samples}
			return f.Value(collector.CPUWait)
		}
		read("100", "200", "300", "400")
		if v, ok := read("200000100", "200", "100000300", "300000400"); !ok || math.Abs(v-0.6) > 1e-9 {
			t.Errorf("waited %v s a second, known %v; want 0.6", v, ok)
		}
		files["15/schedstat"].Data = []byte("1 900000000000 1\n")
		if v, ok := read("200000100", "200", "100000300", "300000400"); !ok || v != 0 {
			t.Errorf("waited %v s a second, known %v; want 0", v, ok)
		}
		if v, ok := read("100", "200", "100000300", "300000400"); ok {
			t.Errorf("a thread's number went backwards: %v", v)
		}
		delete(files, "13/schedstat") // it has ended
		if v, ok := read("100", "200", "100000300", "300000400"); !ok || v != 0 {
			t.Errorf("waited %v s a second, known %v; want 0", v, ok)
		}
		r := collector.Reading{Now: time.Now()}
		put("12/schedstat", "broken\n")
		if err := s.Read(context.Background(), &r); err == nil {
			t.Error("a schedstat without numbers gives no error")
		}
	})
}
