package queue

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/p9"
)

// readAt reads n bytes at an offset, or what there is of them.
func readAt(t *testing.T, ctx context.Context, f *p9.Fid, n int, offset int64) []byte {
	t.Helper()
	b := make([]byte, n)
	n, err := f.ReadAt(ctx, b, offset)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return b[:n]
}

// put changes a file at the server, by another way than through the queue.
func (s *fileServer) put(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[name] == nil {
		s.files[name] = &memory{number: uint64(len(s.files) + 1)}
	}
	s.files[name].data = bytes.Clone(data)
	s.files[name].mtime++
}

func (s *fileServer) reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[p9.TRead]
}

// Who reads on in small pieces has a message of many, and clients that read the same one for all; byte by byte.
func TestReadersOfOneFile(t *testing.T) {
	const size = 4096
	data := block(1, 600_001)
	for name, c := range map[string]struct {
		ranks, most int
		own         bool // each reads every 16th piece
		answer      int
	}{
		"one":           {1, 14, false, 0}, // 147 pieces: one, 9 or 10 messages, the last piece and the end
		"sixteen":       {16, 2*16 + 14, false, 0},
		"in strides":    {16, 90, true, 0},
		"short answers": {16, 16 * 148, false, 5500}, // no end of the file
	} {
		s := newFileServer(time.Millisecond)
		s.answer = c.answer
		s.put("shared", data)
		gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
			ranks := openRanks(t, ctx, p, c.ranks)
			each(ranks, func(i int, r *rank) {
				for k := 0; ; k++ {
					at := (k + i%3) * size // not all the same at once
					if c.own {
						at = (k*len(ranks) + i) * size
					}
					got := readAt(t, ctx, r.file, size, int64(at))
					if want := data[min(at, len(data)):min(at+size, len(data))]; !bytes.Equal(got, want) {
						t.Errorf("%s: rank %d reads %d bytes at %d, which are not the file's", name, i, len(got), at)
					}
					if len(got) < size {
						break
					}
				}
			})
			if n := s.reads(); n > c.most {
				t.Errorf("%s: %d reads arrive, want %d at most", name, n, c.most)
			}
			m := r.Report().Merged
			if pieces := int64(len(data)/size + 1); m.Hits+m.Misses < pieces || m.AheadBytes == 0 ||
				m.UnusedBytes > 1<<19 {
				t.Errorf("%s: it reports %+v", name, *m)
			}
			closeRanks(ranks)
		})
	}
}

// Two clients and a third that keeps the cache full: each read is what the writes, cuts and opens before it made of the
// file.
func TestReadsAreOfTheFile(t *testing.T) {
	const most = 1 << 18
	hits := int64(0)
	for seed := range uint64(20) {
		s := newFileServer(0)
		var guard sync.Mutex
		delays := rand.New(rand.NewPCG(seed, 3))
		s.service = func(byte) time.Duration {
			guard.Lock()
			defer guard.Unlock()
			return time.Duration(delays.IntN(3000)) * time.Microsecond
		}
		model := block(int(seed), most/2)
		s.put("shared", model)
		gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
			ranks := openRanks(t, ctx, p, 3)
			noise, stop := context.WithCancel(ctx)
			go func() {
				for at := int64(0); noise.Err() == nil; at += 2048 {
					b := make([]byte, 2048)
					if n, _ := ranks[2].file.ReadAt(noise, b, at); n == 0 {
						at = -2048
					}
				}
			}()
			random := rand.New(rand.NewPCG(seed, 4))
			at := 0
			for step := range 600 {
				f := ranks[step%2].file
				if random.IntN(3) == 0 {
					at = random.IntN(most)
				}
				n := 1 + random.IntN(8192)
				switch random.IntN(12) {
				case 0:
					data := block(step, n)
					if _, err := f.WriteAt(ctx, data, int64(at)); err != nil {
						t.Fatal(err)
					}
					model = append(model, make([]byte, max(0, at+n-len(model)))...)
					copy(model[at:], data)
				case 1:
					size := random.IntN(most)
					if err := f.SetAttr(ctx, p9.SetAttr{Valid: p9.SetSize, Size: uint64(size)}); err != nil {
						t.Fatal(err)
					}
					model = append(model, make([]byte, max(0, size-len(model)))...)[:size:size]
				case 2:
					if random.IntN(10) > 0 {
						continue
					}
					g := openRank(t, ctx, p, "10.0.0.9", "shared", 1000, syscall.O_RDWR|syscall.O_TRUNC)
					g.client.Close()
					model = nil
				case 11:
					if random.IntN(10) > 0 {
						continue
					}
					g, err := ranks[0].root.Walk(ctx, "shared")
					if err == nil {
						err = g.Open(ctx, syscall.O_RDWR|syscall.O_TRUNC)
					}
					if err != nil {
						t.Fatal(err)
					}
					model = nil
				case 3:
					if a, err := f.GetAttr(ctx); err != nil || a.Size != uint64(len(model)) {
						t.Errorf("seed %d, step %d: %d bytes, %v, want %d", seed, step, a.Size, err, len(model))
					}
				default:
					n = min(n, 2048)
					want := model[min(at, len(model)):min(at+n, len(model))]
					if got := readAt(t, ctx, f, n, int64(at)); !bytes.Equal(got, want) {
						t.Fatalf("seed %d, step %d: %d bytes at %d are not the %d of the file", seed, step,
							len(got), at, len(want))
					}
				}
				at += n
			}
			stop()
			hits += r.Report().Merged.Hits
			closeRanks(ranks)
		})
	}
	if hits < 1000 {
		t.Errorf("%d reads of all were answered from the cache: nothing is tried", hits)
	}
}

// What another way to the file brings is there at the next open, the next look at its attributes, and after a second.
func TestChangesThatComeAnotherWay(t *testing.T) {
	s := newFileServer(time.Millisecond)
	s.put("shared", block(0, 65000))
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 2)
		whole := func(what string, f *p9.Fid, version int) {
			t.Helper()
			var got []byte
			for at := int64(0); at < 65000; at += 2048 {
				got = append(got, readAt(t, ctx, f, 2048, at)...)
			}
			if !bytes.Equal(got, block(version, 65000)) {
				t.Errorf("%s: the bytes are not those of version %d", what, version)
			}
		}
		whole("first", ranks[0].file, 0)
		for version := 1; version < 20; version++ {
			s.put("shared", block(version, 65000))
			late := openRank(t, ctx, p, "10.0.0.3", "shared", 1000, syscall.O_RDONLY)
			whole("opened after the change", late.file, version)
			whole("and beside it", ranks[1].file, version)
			late.client.Close()
		}
		before := s.reads()
		whole("nothing has changed", ranks[0].file, 19)
		if n := s.reads() - before; n > 3 { // the first piece was read by one, the last is a short answer
			t.Errorf("%d reads arrive of what is kept", n)
		}
		ranks[0].file.GetAttr(ctx)
		whole("known", ranks[0].file, 19)
		s.put("shared", block(20, 65000))
		if _, err := ranks[1].file.GetAttr(ctx); err != nil {
			t.Fatal(err)
		}
		whole("another time was seen", ranks[0].file, 20)
		s.put("shared", block(21, 65000))
		time.Sleep(time.Second + time.Millisecond)
		whole("a second later", ranks[0].file, 21)
		closeRanks(ranks)
	})
}

// Who has not opened the file for reading, or wants no cache, has the server's own answer.
func TestWhoIsNotServedFromTheCache(t *testing.T) {
	for name, flags := range map[string]uint32{"writes only": syscall.O_WRONLY, "direct": syscall.O_DIRECT} {
		s := newFileServer(time.Millisecond)
		s.put("shared", block(0, 65000))
		gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
			other := openRank(t, ctx, p, "10.0.0.2", "shared", 1001, flags)
			ranks := append(openRanks(t, ctx, p, 2), other)
			for _, k := range []int{0, 1, 0} {
				for at := range int64(8) {
					readAt(t, ctx, ranks[k].file, 4096, at*4096)
				}
			}
			before := s.reads()
			for at := range int64(8) {
				readAt(t, ctx, other.file, 4096, at*4096)
			}
			if n := s.reads() - before; n != 8 {
				t.Errorf("%s: %d of 8 reads arrive", name, n)
			}
			before = s.reads()
			user := openRank(t, ctx, p, "10.0.0.4", "shared", 1002, syscall.O_RDONLY)
			for at := range int64(8) {
				readAt(t, ctx, user.file, 4096, at*4096)
				readAt(t, ctx, ranks[0].file, 4096, at*4096)
			}
			if n := s.reads() - before; n > 4 {
				t.Errorf("another user who may read it: %d reads arrive", n)
			}
			closeRanks(append(ranks, user))
		})
	}
}

// What cannot be read ahead is nobody's error who did not ask for it.
func TestAnErrorAhead(t *testing.T) {
	s := newFileServer(time.Millisecond)
	data := block(0, 200_000)
	s.put("shared", data)
	s.bad = 100_000
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 4)
		each(ranks, func(i int, r *rank) {
			for at := 0; at < len(data); at += 4000 {
				b := make([]byte, 4000)
				n, err := r.file.ReadAt(ctx, b, int64(at))
				if bad := at <= s.bad && s.bad < at+4000; bad != errors.Is(err, syscall.EIO) ||
					!bad && !bytes.Equal(b[:n], data[at:at+4000]) {
					t.Errorf("rank %d at %d: %d bytes, %v", i, at, n, err)
				}
			}
		})
		closeRanks(ranks)
	})
}

// Who asked for a read that others wait for may give it up, or go: the others have their bytes.
func TestTheFirstReaderLeaves(t *testing.T) {
	for _, how := range []string{"gives it up", "ends", "is cut off at the forwarder"} {
		s := newFileServer(time.Second)
		data := block(0, 65000)
		s.put("shared", data)
		gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
			ranks := openRanks(t, ctx, p, 8)
			each(ranks, func(i int, rank *rank) {
				how1 := ctx
				if i > 0 {
					time.Sleep(10 * time.Millisecond)
				} else if how == "gives it up" {
					short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
					defer cancel()
					how1 = short
				} else {
					time.AfterFunc(100*time.Millisecond, func() {
						r.mu.Lock()
						defer r.mu.Unlock()
						for c := range r.conns {
							if c.from.String() != "10.0.0.1" {
								continue
							}
							if how == "ends" {
								c.client.Close()
							} else {
								c.up.Close()
							}
						}
					})
				}
				b := make([]byte, 8000)
				n, err := rank.file.ReadAt(how1, b, 0)
				if i > 0 && (err != nil || !bytes.Equal(b[:n], data[:8000])) || i == 0 && err == nil {
					t.Errorf("the first %s: rank %d has %d bytes, %v", how, i, n, err)
				}
				if i == 0 && how == "gives it up" {
					if got := readAt(t, ctx, rank.file, 4000, 4000); !bytes.Equal(got, data[4000:8000]) {
						t.Error("the next read of who gave one up has other bytes")
					}
				}
			})
			closeRanks(ranks)
		})
	}
}

// deaf is a client with the shared file open as handle 1, which reads no answer by itself.
func deaf(t *testing.T, p *pipes) net.Conn {
	t.Helper()
	c := p.dial("10.0.0.9")
	say(t, c, p9.TVersion, text(binary.LittleEndian.AppendUint32(nil, 65536), "9P2000.L"))
	openHandle(t, c, "shared")
	return c
}

// openHandle makes a file handle 1.
func openHandle(t *testing.T, c net.Conn, file string) {
	t.Helper()
	say(t, c, p9.TAttach, append(text(text([]byte{1, 0, 0, 0, 255, 255, 255, 255}, ""), "/"), 232, 3, 0, 0))
	say(t, c, p9.TLcreate, append(text([]byte{1, 0, 0, 0}, file), make([]byte, 12)...))
}

func text(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
}

// say sends a request, and wants its answer next.
func say(t *testing.T, c net.Conn, kind byte, body []byte) {
	t.Helper()
	if _, err := c.Write(frame(kind, 1, body)); err != nil {
		t.Fatal(err)
	}
	if m, err := readMessage(c); err != nil || m[4] != kind+1 {
		t.Fatalf("message %d: %v, %v", kind, m, err)
	}
}

// readOf is a read through handle 1.
func readOf(offset uint64, n uint32) []byte {
	b := binary.LittleEndian.AppendUint64([]byte{1, 0, 0, 0}, offset)
	return binary.LittleEndian.AppendUint32(b, n)
}

// Nobody waits for what comes behind answers that another does not take.
func TestASlowReaderHoldsUpNobody(t *testing.T) {
	s := newFileServer(time.Millisecond)
	data := block(0, 65000)
	s.put("shared", data)
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 2)
		c := deaf(t, p)
		defer c.Close()
		// It takes not even the first answer, and so none behind it.
		for tag, m := range [][]byte{frame(p9.TGetattr, 1, append([]byte{1, 0, 0, 0}, make([]byte, 8)...)),
			frame(p9.TRead, 2, readOf(0, 60000))} {
			if _, err := c.Write(m); err != nil {
				t.Fatal(tag, err)
			}
		}
		time.Sleep(10 * time.Millisecond)
		begun := time.Now()
		each(ranks, func(i int, r *rank) {
			for at := int64(0); at < 60000; at += 20000 {
				if got := readAt(t, ctx, r.file, 20000, at); !bytes.Equal(got, data[at:at+20000]) {
					t.Errorf("rank %d at %d: %d bytes, which are not the file's", i, at, len(got))
				}
			}
		})
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("they wait for %v", took)
		}
		closeRanks(ranks)
	})
}

// Answers that a client does not take are bounded, and so is what is kept.
func TestTheCacheIsBounded(t *testing.T) {
	s := newFileServer(time.Millisecond)
	s.put("shared", make([]byte, 8<<20))
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 2)
		for at := int64(0); at < 8<<20; at += 32768 {
			for _, k := range ranks {
				readAt(t, ctx, k.file, 32768, at)
			}
		}
		if n := r.merge.cache.Bytes(); n == 0 || n > 1<<20 {
			t.Errorf("%d bytes are kept, want 1 MiB at most", n)
		}
		for _, k := range []int{0, 1, 0, 1} {
			readAt(t, ctx, ranks[k].file, 32768, 0)
		}
		// One opens the file, asks, and takes no answer.
		c := deaf(t, p)
		defer c.Close()
		read := readOf(0, 32768)
		say(t, c, p9.TRead, read)
		for _, k := range []int{0, 1} {
			readAt(t, ctx, ranks[k].file, 32768, 0)
		}
		sent := 0
		for ; sent < 10_000; sent++ {
			c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			if _, err := c.Write(frame(p9.TRead, uint16(sent), read)); err != nil {
				break
			}
		}
		synctest.Wait()
		r.mu.Lock()
		for one := range r.conns {
			if n := len(one.posts); n > maxBytes+2<<20 || sent == 10_000 {
				t.Errorf("%d MB of answers are kept for who does not take them, of %d reads", n>>20, sent)
			}
		}
		r.mu.Unlock()
		closeRanks(ranks)
	})
}
