package queue

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/maphash"
	"syscall"
	"testing"
	"time"

	"fairway/collector/p9"
)

// A read whose handle is given up before the answer serves nobody else: it may be of another file.
func TestAHandleThatIsGivenUpMeanwhile(t *testing.T) {
	s := newFileServer(time.Millisecond)
	data := block(0, 65000)
	s.put("shared", data)
	s.put("other", block(1, 65000))
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 1)
		c := deaf(t, p)
		defer c.Close()
		s.service = func(kind byte) time.Duration {
			return map[byte]time.Duration{p9.TRead: time.Second}[kind]
		}
		if _, err := c.Write(frame(p9.TRead, 2, readOf(0, 8000))); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(20 * time.Millisecond)
			say(t, c, p9.TClunk, []byte{1, 0, 0, 0})
			openHandle(t, c, "other")
			readMessage(c)
		}()
		time.Sleep(10 * time.Millisecond)
		for range 2 {
			if got := readAt(t, ctx, ranks[0].file, 8000, 0); !bytes.Equal(got, data[:8000]) {
				t.Errorf("it reads %d bytes, which are not the file's", len(got))
			}
		}
		closeRanks(ranks)
	})
}

// What was given up does not go again behind its flush, where the server refused it together with what is ahead.
func TestWhatWasGivenUpIsNotAskedAgain(t *testing.T) {
	s := newFileServer(time.Millisecond)
	s.put("shared", block(0, 65000))
	s.bad = 20000
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 1)
		readAt(t, ctx, ranks[0].file, 4000, 0)
		s.service = func(kind byte) time.Duration {
			return map[byte]time.Duration{p9.TRead: time.Second, p9.TFlush: 2 * time.Second}[kind]
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if _, err := ranks[0].file.ReadAt(short, make([]byte, 4000), 4000); err == nil {
			t.Error("it was not given up")
		}
		time.Sleep(10 * time.Second)
		if n := s.reads(); n != 2 || s.count[p9.TFlush] != 1 {
			t.Errorf("%d reads and %d flushes arrive, want 2 and 1", n, s.count[p9.TFlush])
		}
		closeRanks(ranks)
	})
}

// A handle is what the server has answered of its last use: nothing that was answered late, nor what cannot be read.
func TestWhatIsKnownOfAHandle(t *testing.T) {
	le := binary.LittleEndian
	two := []byte{2, 0, 0, 0}
	walk := append(append([]byte{1, 0, 0, 0}, two...), 0, 0)
	for name, c := range map[string]struct {
		flags         uint32
		unknown       bool
		meanwhile     []byte // before the open is answered
		reads, writes bool
	}{
		"opened":                        {reads: true},
		"to read and write":             {flags: syscall.O_RDWR, reads: true, writes: true},
		"to write":                      {flags: syscall.O_WRONLY, writes: true},
		"for neither":                   {flags: syscall.O_ACCMODE},
		"as a place only":               {flags: 0o10000000},
		"a place only, it says":         {flags: 0o10000000 | syscall.O_RDWR},
		"it was walked to unseen":       {unknown: true},
		"given up meanwhile":            {meanwhile: frame(p9.TClunk, 2, two)},
		"removed meanwhile":             {meanwhile: frame(p9.TRemove, 2, two)},
		"another meanwhile":             {meanwhile: frame(p9.TWalk, 2, walk)},
		"an attribute meanwhile":        {meanwhile: frame(p9.TXattrwalk, 2, walk)},
		"another is given up meanwhile": {meanwhile: frame(p9.TClunk, 2, []byte{3, 0, 0, 0}), reads: true},
	} {
		f := fids{map[uint32]fid{1: {}, 2: {}, 3: {}}, map[uint16]*inquiry{}}
		if c.unknown {
			delete(f.known, 2)
		}
		s := placeSeed{maphash.MakeSeed()}
		a := f.request(frame(p9.TLopen, 1, le.AppendUint32(bytes.Clone(two), c.flags)), s, 65536)
		f.asked[1] = a
		if c.meanwhile != nil {
			f.asked[2] = f.request(c.meanwhile, s, 65536)
		}
		f.reply(a, frame(p9.TLopen+1, 1, make([]byte, qidBytes+4)))
		if is := f.known[2]; is.reads() != c.reads || is.writes() != c.writes {
			t.Errorf("%s: it reads %v, writes %v", name, is.reads(), is.writes())
		}
	}
}
