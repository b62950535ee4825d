package queue

import (
	"bytes"
	"context"
	"syscall"
	"testing"
	"time"

	"fairway/collector/p9"
)

// endOf ends one side of the connections of an address.
func endOf(r *Queue, from string, forwarder bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		if c.from.String() != from {
			continue
		}
		if forwarder {
			c.up.Close()
		} else {
			c.client.Close()
		}
	}
}

// Readers who share see what was changed once it may have been, whether its answer comes, was given up or cannot come,
// and whichever way leads to the file.
func TestChangesAreSeenByAll(t *testing.T) {
	const takes, from = 5 * time.Second, "10.0.0.9"
	through := func(ctx context.Context, w *rank, clone bool) *p9.Fid {
		f, err := w.root.Walk(ctx, "link")
		if err == nil && clone {
			f, err = f.Walk(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	write := func(ctx context.Context, w *rank) { w.file.WriteAt(ctx, block(1, 60000), 0) }
	cut := p9.SetAttr{Valid: p9.SetSize, Size: 30000}
	for name, c := range map[string]struct {
		change func(ctx context.Context, w *rank)
		ends   func(r *Queue) // why the answer does not come
	}{
		"a write":      {change: write},
		"a truncation": {change: func(ctx context.Context, w *rank) { w.file.SetAttr(ctx, cut) }},
		"an open": {change: func(ctx context.Context, w *rank) {
			f, _ := w.root.Walk(ctx, "shared")
			f.Open(ctx, syscall.O_RDWR|syscall.O_TRUNC)
		}},
		"an open through a link": {change: func(ctx context.Context, w *rank) {
			through(ctx, w, false).Open(ctx, syscall.O_RDWR|syscall.O_TRUNC)
		}},
		"an open through another handle of a link": {change: func(ctx context.Context, w *rank) {
			through(ctx, w, true).Open(ctx, syscall.O_RDWR|syscall.O_TRUNC)
		}},
		"a truncation through a link": {change: func(ctx context.Context, w *rank) {
			through(ctx, w, false).SetAttr(ctx, cut)
		}},
		"a write whose client ends":       {change: write, ends: func(r *Queue) { endOf(r, from, false) }},
		"a write whose forwarder is lost": {change: write, ends: func(r *Queue) { endOf(r, from, true) }},
	} {
		for _, givenUp := range []bool{false, true} {
			s := newFileServer(time.Millisecond)
			s.put("shared", block(0, 65536))
			s.links["link"] = "shared"
			s.service = func(kind byte) time.Duration {
				switch kind {
				case p9.TWrite, p9.TSetattr, p9.TLopen:
					return takes
				}
				return time.Millisecond
			}
			gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
				ranks := openRanks(t, ctx, p, 2)
				writer := openRank(t, ctx, p, from, "shared", 1000, syscall.O_RDWR)
				look := func(when string) {
					for i, k := range ranks {
						var got []byte
						for at := int64(0); at == 0 || at < int64(len(s.content("shared"))); at += 2048 {
							got = append(got, readAt(t, ctx, k.file, 2048, at)...)
						}
						if !bytes.Equal(got, s.content("shared")) {
							t.Errorf("%s, given up %v: %s reader %d has other bytes", name, givenUp, when, i)
						}
					}
				}
				look("before")
				begun := time.Now()
				how := ctx
				if givenUp {
					short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
					defer cancel()
					how = short
					if c.ends != nil {
						time.AfterFunc(50*time.Millisecond, func() { c.ends(r) })
					}
				}
				c.change(how, writer)
				time.Sleep(takes - 200*time.Millisecond - time.Since(begun))
				look("just before it is made")
				time.Sleep(takes + 10*time.Millisecond - time.Since(begun))
				look("once it is made")
				time.Sleep(time.Minute)
				look("later")
				look("later again")
				before := s.reads()
				look("at last")
				if n := s.reads() - before; n > 10 {
					t.Errorf("%s, given up %v: %d reads arrive though nothing changes any more", name, givenUp, n)
				}
				closeRanks(append(ranks, writer))
			})
		}
	}
}

// A server may answer the last of several flushes of a request alone: the others take up no place for ever, and their
// tags are free again.
func TestFlushesThatAreNotAnsweredEach(t *testing.T) {
	s := newFileServer(time.Millisecond)
	s.put("shared", block(0, 65536))
	s.lazy = 3
	gathering(t, s, func(ctx context.Context, r *Queue, p *pipes) {
		c := deaf(t, p)
		defer c.Close()
		for round := range 2 * DefaultWindow {
			for _, m := range [][]byte{frame(p9.TFsync, 2, []byte{1, 0, 0, 0}), frame(p9.TFlush, 3, []byte{2, 0}),
				frame(p9.TFlush, 4, []byte{2, 0}), frame(p9.TFlush, 5, []byte{2, 0})} {
				if _, err := c.Write(m); err != nil {
					t.Fatal(round, err)
				}
			}
			for range 2 {
				if m, err := readMessage(c); err != nil || tagOf(m) < 2 || tagOf(m) > 5 {
					t.Fatal(round, m, err)
				}
			}
		}
	})
}
