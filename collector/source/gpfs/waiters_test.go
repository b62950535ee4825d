package gpfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"fairway/collector"
)

const (
	head    = "\n=== mmdiag: waiters ===\n"
	headOfY = "mmdiag:waiters:HEADER:version:reserved:reserved:threadId:threadAddr:threadName:waitStartTime:waitTime:"
	restOfY = "isMonitored:condVarAddr:condVarName:condVarReason:mutexAddr:mutexName:auxReason:delayTime:" +
		"delayReason:\n"
	forReply = "on ThCond 0x7F138008EC10 (MsgRecordCondvar), reason 'RPC wait' for getData on node " +
		"10.0.0.7 <c0n3>"
)

// The shapes are those of published output; the numbers are made up.
func TestParseWaiters(t *testing.T) {
	for name, c := range map[string]struct {
		text      string
		any, disk float64
		reason    string
	}{
		"none": {head, 0, 0, ""},
		"release 4 and later": {head +
			"Waiting 12.5000 sec since 10:24:00, monitored, thread 23170 NSDThread: for I/O completion on disk dm-3\n" +
			"Waiting 73.1250 sec since 10:23:01, monitored, thread 23241 FsyncHandlerThread: " + forReply + "\n",
			73.125, 12.5, "RPC wait for getData on node 10.0.0.7 <c0n3>"},
		"release 3": {head + "0x7F2F4002AE30 waiting 8.151472644 seconds, SharedHashTabFetchHandlerThread: " + forReply,
			8.151472644, 0, "RPC wait for getData on node 10.0.0.7 <c0n3>"},
		"with -Y": {headOfY + restOfY +
			"mmdiag:waiters:0:1:::101:00F5:NSDThread:2026-09-23_15%3A31%3A33-0400:4.3:monitored::::::" +
			"for I/O completion:::\n" +
			"mmdiag:waiters:0:1:::102:00F6:RebuildWorkThread:2026-09-23_15%3A31%3A34-0400:6.5:monitored:00FF:" +
			"VdiskPGDrainCondvar:waiting for PG drain%3A now::::::\n", 6.5, 4.3, "waiting for PG drain: now"},
		"those that wait for work are left out": {head +
			"Waiting 6861.7395 sec since 11:04:20, ignored, thread 19 FsckClientReaperThread: on ThCond 0x7F (C), " +
			"reason 'Waiting to reap fsck pointer'\n" +
			"Waiting 6861.0 sec since 11:04:20, monitored, thread 19 FsckClientReaperThread: waiting to reap\n" +
			"Waiting 99 sec since 11:04:20, ignored, thread 20 OtherThread: for anything\n" +
			"Waiting 40.4231 sec since 13:08:39, monitored, thread 120 EventsExporterSenderThread: for poll on sock " +
			"7\n" +
			"Waiting 0.25 sec since 13:09:39, monitored, thread 121 OpenHandlerThread: on ThMutex 0x1 (InodeMutex)\n",
			0.25, 0, "on ThMutex 0x1 (InodeMutex)"},
		"what is not one": {head + "Waiting for the daemon\nWaiting -3 sec since 1, monitored, thread 1 A: b\n" +
			"Waiting 1e300 sec since 1, monitored, thread 1 A: b\nWaiting NaN sec, thread 1 A: b\n" +
			"mmdiag:waiters:0:1:::\nthread 'a, waiting 7 sec since 1, monitored, thread 2 B: c'\n", 0, 0, ""},
		"no thread": {head + "Waiting 2.5 sec since 10:24:00, monitored, thread 120657 foobar\n", 2.5, 0, "foobar"},
	} {
		t.Run(name, func(t *testing.T) {
			l := ParseWaiters(c.text)
			if l.Any.Age != c.any || l.Disk.Age != c.disk || l.Any.Reason != c.reason {
				t.Errorf("%+v\nwant %g, %g of a disk, %q", l, c.any, c.disk, c.reason)
			}
			if !isAnswer(c.text) {
				t.Error("it is not taken for an answer")
			}
		})
	}
}

func FuzzWaiters(f *testing.F) {
	f.Add("Waiting 0.0409 sec since 10:24:00, monitored, thread 23170 NSDThread: for I/O completion\n")
	f.Add("0x7F waiting 0.1 seconds, A: on ThCond 0x7 (0x7) (B), reason 'RPC wait' for c on node 1 <c0n3>")
	f.Add(headOfY + restOfY + "mmdiag:waiters:0:1:::1:0:N:2026:4.3:monitored::::::for I/O completion:::\n")
	f.Add("mmdiag:waiters:0:1:::1:0:%zz:2026:4.3:monitored::::::%ff\x1b[31m:::\nİİwaiting 1 sec")
	f.Fuzz(func(t *testing.T, text string) {
		l := ParseWaiters(text)
		for _, w := range []Waiter{l.Any, l.Disk} {
			if w.Age < 0 || w.Age > maxAge || w.Age > 0 && w.Reason == "" || l.Disk.Age > l.Any.Age {
				t.Errorf("%+v", l)
			}
			if s := w.Reason + w.Thread; !utf8.ValidString(s) || len([]rune(w.Reason)) > maxReason ||
				strings.ContainsAny(s, "\x1b\n") {
				t.Errorf("%q", s)
			}
		}
	})
}

// What mmdiag printed stands for 15 s; then the longest waiter is not known. One that hangs, fails, or prints something
// else is named, and costs no more than its own values; none at all costs nothing.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type answer struct {
			text string
			err  error
		}
		var next atomic.Pointer[answer]
		next.Store(&answer{text: head + "Waiting 6 sec since 1, monitored, thread 1 NSDThread: for I/O completion\n"})
		var looked atomic.Int32
		l := &looks{look: func(ctx context.Context) (string, error) {
			looked.Add(1)
			a := next.Load()
			if a.text == "hangs" {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return a.text, a.err
		}}
		ctx, end := context.WithCancel(t.Context())
		go l.again(ctx)
		read := func() (collector.Reading, string) {
			synctest.Wait()
			r := collector.Reading{Now: time.Now()}
			if err := l.report(&r); err != nil {
				return r, err.Error()
			}
			return r, ""
		}
		if r, why := read(); why != "" || len(r.Samples) != 2 || r.Samples[0].Value != 6 || r.Samples[1].Value != 6 ||
			r.Note != "for I/O completion" {
			t.Errorf("%+v %s", r, why)
		}
		next.Store(&answer{text: "hangs"})
		time.Sleep(14 * time.Second)
		if r, why := read(); why != "" || len(r.Samples) != 2 {
			t.Errorf("while it runs: %+v %s", r, why)
		}
		time.Sleep(2 * time.Second)
		if r, why := read(); !strings.Contains(why, "mmdiag --waiters: ") || len(r.Samples) != 0 || r.Note != "" {
			t.Errorf("it hangs: %+v %s", r, why)
		}
		for _, c := range []struct {
			text, why string
			err       error
		}{{"", "", os.ErrNotExist}, {"Usage: something", "is not what it prints", nil},
			{"", "exit status 1", errors.New("exit status 1")}} {
			next.Store(&answer{c.text, c.err})
			time.Sleep(lookEvery)
			if r, why := read(); len(r.Samples) != 0 || why == "" != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("%+v: %+v %s", c, r, why)
			}
		}
		next.Store(&answer{text: head})
		time.Sleep(lookEvery)
		if r, why := read(); why != "" || len(r.Samples) != 2 || r.Samples[0].Value != 0 || r.Note != "" {
			t.Errorf("nobody waits: %+v %s", r, why)
		}
		if n := looked.Load(); n > 8 {
			t.Errorf("%d looks in %s", n, 56*time.Second)
		}
		end()
	})
}

// A command that does not end is killed with what it has started, one that prints without end is cut, and mmpmon's
// counts go on beside one that hangs.
func TestLookWith(t *testing.T) {
	dir := t.TempDir()
	write := func(name, body string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	ctx, end := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer end()
	begun := time.Now()
	if _, err := lookWith(write("hangs", "sleep 60 & wait"))(ctx); err == nil || time.Since(begun) > 30*time.Second {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
	if text, err := lookWith(write("endless", "exec yes 'Waiting 1 sec since 1, monitored, thread 1 A: b'"))(
		t.Context()); err != nil || len(text) != mostPrinted {
		t.Errorf("%d bytes: %v", len(text), err)
	}
	if _, err := lookWith(write("fails", "echo GPFS is down >&2; exit 3"))(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "exit status 3: GPFS is down") {
		t.Error(err)
	}
	if _, err := lookWith(filepath.Join(dir, "absent"))(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	write("mmdiag", "exec sleep 60")
	s := New(write("mmpmon", `i=0; while :; do i=$((i+1))
echo "_fs_io_s_ _n_ 1 _nn_ a _rc_ 0 _t_ $i _tu_ 0 _cl_ c _fs_ f _d_ 1 _br_ $i _bw_ $i `+
		`_oc_ 0 _cc_ 0 _rdc_ $i _wc_ $i _dir_ 0 _iu_ 0"; sleep 0.1; done`))
	defer s.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		r := collector.Reading{Now: time.Now()}
		_ = s.Read(t.Context(), &r)
		if len(r.Samples) == 5 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("mmpmon's counts beside a mmdiag that hangs: %+v", r.Samples)
		}
	}
}

func BenchmarkParseWaiters(b *testing.B) {
	text := head + strings.Repeat("Waiting 0.0409 sec since 10:24:00, monitored, thread 23170 NSDThread: for I/O "+
		"completion\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		ParseWaiters(text)
	}
}
