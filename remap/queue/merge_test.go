package queue

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/collector/p9"
)

func TestStridedWritesAreMerged(t *testing.T) {
	const size, rounds = 4096, 50
	s := newFileServer(time.Millisecond)
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 16)
		each(ranks, func(i int, r *rank) {
			for k := range rounds {
				at := k*len(ranks) + i
				if n, err := r.file.WriteAt(ctx, block(at, size), int64(at*size)); n != size || err != nil {
					t.Errorf("block %d: %d bytes, %v", at, n, err)
				}
			}
			if err := r.file.Fsync(ctx, 0); err != nil {
				t.Error(err)
			}
		})
		data := s.files["shared"].data
		for at := range rounds * len(ranks) {
			if !bytes.Equal(data[at*size:][:size], block(at, size)) {
				t.Fatalf("block %d is not what was written", at)
			}
		}
		if got, all := s.count[p9.TWrite], rounds*len(ranks); got*10 > all {
			t.Errorf("%d writes arrived as %d requests, want a tenth at most", all, got)
		}
		report, stats := r.Report(), r.Stats()[""]
		if m := report.Merged; m.WritesIn-m.WritesOut != int64(rounds*len(ranks)-s.count[p9.TWrite]) || m.Bytes == 0 {
			t.Errorf("it reports %+v, the forwarder had %d", *m, s.count[p9.TWrite])
		}
		if stats.Bytes != rounds*16*size || stats.Waiting != 0 {
			t.Errorf("the job has %+v, it wrote %d bytes", stats, rounds*16*size)
		}
		closeRanks(ranks)
	})
}

// What must not go together: other users, files, flags; other files of one number on two file systems of the server.
func TestStrangersAreNotMerged(t *testing.T) {
	for name, c := range map[string]struct {
		file       string
		uid, flags uint32
	}{
		"user":   {"shared", 1001, syscall.O_RDWR},
		"file":   {"other", 1000, syscall.O_RDWR},
		"number": {"mounted", 1000, syscall.O_RDWR},
		"append": {"shared", 1000, syscall.O_RDWR | syscall.O_APPEND},
		"sync":   {"shared", 1000, syscall.O_RDWR | syscall.O_SYNC},
		"direct": {"shared", 1000, syscall.O_RDWR | syscall.O_DIRECT},
	} {
		s := newFileServer(time.Millisecond)
		s.numbers = map[string]uint64{"shared": 5, "mounted": 5, "other": 6}
		gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
			ranks := []*rank{openRank(t, ctx, p, "10.0.0.1", "shared", 1000, syscall.O_RDWR),
				openRank(t, ctx, p, "10.0.0.2", c.file, c.uid, c.flags)}
			each(ranks, func(i int, r *rank) {
				for k := range 50 {
					if _, err := r.file.WriteAt(ctx, block(i, 4096), int64(2*k+i)*4096); err != nil {
						t.Error(err)
					}
				}
			})
			if m := r.Report().Merged; m.WritesOut != 0 {
				t.Errorf("another %s: %+v", name, *m)
			}
			for i, file := range []string{"shared", c.file} {
				if data := s.files[file].data; !bytes.Equal(data[i*4096:][:4096], block(i, 4096)) {
					t.Errorf("another %s: what rank %d wrote is not in its file", name, i)
				}
			}
			closeRanks(ranks)
		})
	}
}

// writeOnce makes ranks that are known to write write one block each, at once.
func writeOnce(ctx context.Context, ranks []*rank, from int, answer func(i, n int, err error)) {
	each(ranks, func(i int, r *rank) {
		n, err := r.file.WriteAt(ctx, block(from+i, 4096), int64(from+i)*4096)
		answer(i, n, err)
	})
}

// A merged write that fails or stops short is an error of those whose bytes are missing, and of no other.
func TestEachHasItsOwnError(t *testing.T) {
	s := newFileServer(time.Millisecond)
	s.most = 8*4096 + 1000
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 12)
		got := make([]string, len(ranks))
		for range 3 {
			writeOnce(ctx, ranks, 0, func(i, n int, err error) {
				got[i] = "whole"
				if n < 4096 {
					got[i] = fmt.Sprint(n, errors.Is(err, syscall.ENOSPC))
				}
			})
			for i, g := range got {
				want := "whole"
				if i >= 8 {
					want = "0 true"
				}
				if i != 8 && g != want || i == 8 && g == "whole" {
					t.Errorf("rank %d: %s, want %s", i, g, want)
				}
			}
		}
		if r.Report().Merged.WritesOut == 0 {
			t.Error("nothing was merged")
		}
		closeRanks(ranks)
	})
}

// slowWrites answers writes of more than one block after a while.
func slowWrites(s *fileServer, d time.Duration) {
	s.service = func(kind byte) time.Duration {
		if kind == p9.TWrite {
			return d
		}
		return time.Millisecond
	}
}

// A client that ends while a write of others goes through its connection takes none of them with it.
func TestTheCarrierLeaves(t *testing.T) {
	s := newFileServer(time.Millisecond)
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 10)
		writeOnce(ctx, ranks, 0, func(int, int, error) {})
		writeOnce(ctx, ranks, 10, func(int, int, error) {})
		slowWrites(s, 5*time.Second)
		before := s.count[p9.TWrite]
		go func() {
			time.Sleep(time.Second)
			r.mu.Lock()
			defer r.mu.Unlock()
			for c := range r.conns {
				if c.carries > 0 {
					c.client.Close()
				}
			}
		}()
		start, failed := time.Now(), 0
		writeOnce(ctx, ranks, 20, func(i, n int, err error) {
			if err != nil {
				failed++
			}
		})
		if took := time.Since(start); failed != 1 || took > 6*time.Second || s.count[p9.TWrite] > before+1 {
			t.Errorf("%d of 10 failed in %v, %d writes arrived", failed, took, s.count[p9.TWrite]-before)
		}
		if data := s.files["shared"].data; !bytes.Equal(data[21*4096:22*4096], block(21, 4096)) {
			t.Error("what was answered is not there")
		}
		closeRanks(ranks)
	})
}

// Where the forwarder's end of a connection breaks while it carries a write for others, nobody knows what became of it:
// no one is answered, all are cut off.
func TestTheForwarderLeaves(t *testing.T) {
	s := newFileServer(time.Millisecond)
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 10)
		writeOnce(ctx, ranks, 0, func(int, int, error) {})
		writeOnce(ctx, ranks, 10, func(int, int, error) {})
		slowWrites(s, 5*time.Second)
		go func() {
			time.Sleep(time.Second)
			r.mu.Lock()
			defer r.mu.Unlock()
			for c := range r.conns {
				if c.carries > 0 {
					c.up.Close()
				}
			}
		}()
		writeOnce(ctx, ranks, 20, func(i, n int, err error) {
			if !errors.As(err, new(*p9.TransportError)) {
				t.Errorf("rank %d: %d bytes, %v; want the connection's end", i, n, err)
			}
		})
		closeRanks(ranks)
	})
}

// A write that nobody wants any more is not done once its flush was answered, or was done before.
func TestFlushOfAGatheredWrite(t *testing.T) {
	for name, after := range map[string]time.Duration{"while it waits": time.Millisecond, "under way": time.Second} {
		s := newFileServer(time.Millisecond)
		gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
			ranks := openRanks(t, ctx, p, 3)
			for k := range 4 {
				writeOnce(ctx, ranks, 3*k, func(int, int, error) {})
			}
			slowWrites(s, 5*time.Second)
			only := ranks // the third does not write: the others wait for it
			if after < time.Second {
				only = ranks[:2]
			}
			short, cancel := context.WithTimeout(ctx, after)
			defer cancel()
			each(only, func(i int, r *rank) {
				how := ctx
				if i == 0 {
					how = short
				}
				n, err := r.file.WriteAt(how, block(12+i, 4096), int64(12+i)*4096)
				if want := i == 0; want != errors.Is(err, context.DeadlineExceeded) || !want && n != 4096 {
					t.Errorf("%s: rank %d: %d bytes, %v", name, i, n, err)
				}
				if i > 0 {
					return
				}
				time.Sleep(10 * time.Millisecond) // the flush has come here
				if _, err := r.file.WriteAt(ctx, block(99, 4096), 12*4096); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Minute)
			if data := s.files["shared"].data; !bytes.Equal(data[12*4096:][:4096], block(99, 4096)) {
				t.Errorf("%s: the write that was given up came after the one behind it", name)
			}
			closeRanks(ranks)
		})
	}
}

// Sixteen ranks that read the same at once need two reads, and see what was written before they asked.
func TestIdenticalReadsShare(t *testing.T) {
	s := newFileServer(time.Millisecond)
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 16)
		for k := range 10 {
			want := block(k, 65536-24)
			if _, err := ranks[k].file.WriteAt(ctx, want, 0); err != nil {
				t.Fatal(err)
			}
			before := s.count[p9.TRead]
			each(ranks, func(i int, r *rank) {
				got := make([]byte, len(want))
				if n, err := r.file.ReadAt(ctx, got, 0); n != len(want) || err != nil || !bytes.Equal(got, want) {
					t.Errorf("rank %d: %d bytes, %v, right: %v", i, n, err, bytes.Equal(got, want))
				}
			})
			if n := s.count[p9.TRead] - before; n > 2 {
				t.Errorf("16 reads of the same arrived as %d", n)
			}
		}
		if m := r.Report().Merged; m.ReadsIn < 100 || m.ReadsOut > 20 {
			t.Errorf("it reports %+v", *m)
		}
		closeRanks(ranks)
	})
}

// A merged write is paid for by the jobs whose bytes it carries.
func TestJobsPayForTheirBytes(t *testing.T) {
	s := newFileServer(time.Millisecond)
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		if err := r.Share(twoJobs("job-fair")); err != nil {
			t.Fatal(err)
		}
		ranks := openRanks(t, ctx, p, 3)
		ranks = append(ranks, openRank(t, ctx, p, "10.0.1.1", "shared", 1000, syscall.O_RDWR))
		opened := r.Stats()
		for k := range 50 {
			writeOnce(ctx, ranks, 4*k, func(int, int, error) {})
		}
		big, small := r.Stats()["big"], r.Stats()["small"]
		cost := float64(big.Cost-opened["big"].Cost) / float64(small.Cost-opened["small"].Cost)
		if big.Bytes != 3*small.Bytes || math.Abs(cost-3) > .3 || r.Report().Merged.WritesOut < 40 {
			t.Errorf("three ranks and one paid %+v and %+v (%.2f to 1), merged %+v", big, small, cost,
				*r.Report().Merged)
		}
		closeRanks(ranks)
	})
}

// span is a write of a block, or a read of it, from when it was asked to when it was answered.
type span struct {
	block      int
	id         uint64
	write      bool
	begin, end time.Time
}

// Whatever clients do side by side, each read sees the last write that was answered before it began, or one that was
// under way with it; so does what is in the file in the end, and its size.
func TestOrderIsThatOfAnswers(t *testing.T) {
	const size, blocks = 2048, 24
	merged := int64(0)
	for seed := range uint64(12) {
		s := newFileServer(0)
		random := rand.New(rand.NewPCG(seed, 3))
		var guard sync.Mutex
		s.service = func(byte) time.Duration {
			guard.Lock()
			defer guard.Unlock()
			return time.Duration(random.IntN(3000)) * time.Microsecond
		}
		gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
			ranks := openRanks(t, ctx, p, 8)
			var spans []span
			var ids uint64
			each(ranks, func(i int, r *rank) {
				own := rand.New(rand.NewPCG(seed, uint64(i)))
				for k := range 120 {
					at := (k*len(ranks) + i) % blocks
					if own.IntN(4) == 0 {
						at = own.IntN(blocks)
					}
					sp := span{block: at, begin: time.Now(), write: own.IntN(3) > 0}
					b := make([]byte, size)
					var err error
					switch {
					case own.IntN(20) == 0:
						err = r.file.Fsync(ctx, 0)
						sp.begin = time.Time{}
					case sp.write:
						guard.Lock()
						ids++
						sp.id = ids
						guard.Unlock()
						for o := 0; o < size; o += 8 {
							binary.LittleEndian.PutUint64(b[o:], sp.id)
						}
						_, err = r.file.WriteAt(ctx, b, int64(at*size))
					default:
						if _, err = r.file.ReadAt(ctx, b, int64(at*size)); err == io.EOF {
							err = nil
						}
						sp.id = binary.LittleEndian.Uint64(b)
						for o := 0; o < size; o += 8 {
							if got := binary.LittleEndian.Uint64(b[o:]); got != sp.id {
								t.Errorf("seed %d: block %d has bytes of writes %d and %d", seed, at, sp.id, got)
							}
						}
					}
					if err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
					if sp.end = time.Now(); !sp.begin.IsZero() {
						guard.Lock()
						spans = append(spans, sp)
						guard.Unlock()
					}
					if own.IntN(3) == 0 {
						time.Sleep(time.Duration(own.IntN(3000)) * time.Microsecond)
					}
				}
			})
			for at := range blocks { // what is there in the end
				if data := s.files["shared"].data; len(data) >= (at+1)*size {
					id := binary.LittleEndian.Uint64(data[at*size:])
					spans = append(spans, span{block: at, id: id, begin: time.Now(), end: time.Now()})
				}
			}
			wantOrder(t, seed, spans)
			merged += r.Report().Merged.WritesOut
			closeRanks(ranks)
		})
	}
	if merged == 0 {
		t.Error("nothing was merged")
	}
}

// wantOrder wants no read to see a write that a later one had replaced before it began, or that had not begun.
func wantOrder(t *testing.T, seed uint64, spans []span) {
	t.Helper()
	for _, read := range spans {
		if read.write {
			continue
		}
		seen := span{} // of nobody: the hole
		for _, w := range spans {
			if w.write && w.id == read.id {
				seen = w
			}
		}
		if seen.write != (read.id != 0) || seen.write && (seen.block != read.block || seen.begin.After(read.end)) {
			t.Errorf("seed %d: %+v sees %+v", seed, read, seen)
		}
		for _, w := range spans {
			if w.write && w.block == read.block && w.id != seen.id && w.end.Before(read.begin) &&
				seen.end.Before(w.begin) {
				t.Errorf("seed %d: %+v sees %+v, replaced by %+v before it began", seed, read, seen, w)
			}
		}
	}
}

// The size and a truncation are those of the writes that were answered.
func TestSizesAndTruncation(t *testing.T) {
	s := newFileServer(time.Millisecond)
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		ranks := openRanks(t, ctx, p, 6)
		for k := range 5 {
			writeOnce(ctx, ranks, 6*k, func(int, int, error) {})
			if a, err := ranks[k].file.GetAttr(ctx); err != nil || a.Size != uint64(6*(k+1)*4096) {
				t.Errorf("round %d: %d bytes, %v", k, a.Size, err)
			}
		}
		if err := ranks[0].file.SetAttr(ctx, p9.SetAttr{Valid: p9.SetSize, Size: 5000}); err != nil {
			t.Fatal(err)
		}
		if a, err := ranks[1].file.GetAttr(ctx); err != nil || a.Size != 5000 {
			t.Errorf("cut to 5000 it has %d bytes, %v", a.Size, err)
		}
		closeRanks(ranks)
	})
}
