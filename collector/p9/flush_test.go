package p9

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
)

// asked is one request that the scripted server has got.
type asked struct {
	kind uint8
	tag  uint16
	old  uint16 // of a flush
}

// scripted connects a client to a server that answers only what the test asks for.
func scripted(t *testing.T) (c *Client, got <-chan asked, reply func(kind uint8, tag uint16)) {
	near, far := net.Pipe()
	c, got = scriptedOver(t, near, far)
	return c, got, func(kind uint8, tag uint16) { far.Write(answered(kind, tag)) }
}

// answered is a reply with what is behind its header.
func answered(kind uint8, tag uint16, body ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(HeaderBytes+len(body)))
	return append(append(b, kind, byte(tag), byte(tag>>8)), body...)
}

// scriptedOver has the server at the far end of a connection say its version; all else goes to got.
func scriptedOver(t *testing.T, near, far net.Conn) (c *Client, got <-chan asked) {
	requests := make(chan asked, 4*maxInFlight)
	go func() {
		defer close(requests)
		for {
			var h [HeaderBytes]byte
			if _, err := io.ReadFull(far, h[:]); err != nil {
				return
			}
			body := make([]byte, binary.LittleEndian.Uint32(h[:])-HeaderBytes)
			io.ReadFull(far, body)
			if h[4] == TVersion {
				far.Write(answered(TVersion+1, noTag, []byte("\x00\x20\x00\x00\x08\x009P2000.L")...))
				continue
			}
			a := asked{kind: h[4], tag: binary.LittleEndian.Uint16(h[5:])}
			if a.kind == TFlush {
				a.old = binary.LittleEndian.Uint16(body)
			}
			requests <- a
		}
	}()
	c, err := NewClient(t.Context(), near, "pipe", 8192)
	if err != nil {
		t.Fatal(err)
	}
	return c, requests
}

// fill begins as many calls as there are tags but spare, and returns the last one.
func fill(t *testing.T, c *Client, got <-chan asked, spare int) (last *call) {
	for range maxInFlight - spare {
		last = &call{op: "clunk", want: TClunk + 1}
		if err := c.begin(t.Context(), last, newRequest(), nil); err != nil {
			t.Fatal(err)
		}
		<-got
	}
	return last
}

// A call that is given up may be answered before the server is asked to forget it, and its tag be another call's by
// then.
func TestAFlushNeverHitsAnotherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, got, reply := scripted(t)
		defer c.Close()
		first := &call{op: "clunk", want: TClunk + 1}
		if err := c.begin(t.Context(), first, newRequest(), nil); err != nil {
			t.Fatal(err)
		}
		<-got
		last := fill(t, c, got, 1)
		next := make(chan error, 1)
		go func() {
			_, err := c.do(t.Context(), &call{op: "clunk", want: TClunk + 1}, newRequest(), nil)
			next <- err
		}()
		synctest.Wait() // it waits for a tag, and before the flush does
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c.wait(ctx, last)
		synctest.Wait()
		reply(TClunk+1, last.tag)
		synctest.Wait()
		reused := <-got
		if reused.tag != last.tag {
			t.Fatalf("the next call has tag %d, want the one that was answered, %d", reused.tag, last.tag)
		}
		reply(TClunk+1, first.tag) // a tag for the flush
		synctest.Wait()
		select {
		case a := <-got:
			t.Errorf("the server was asked to forget tag %d, which is another call's now", a.old)
		default:
		}
		reply(TClunk+1, reused.tag)
		if err := <-next; err != nil {
			t.Error(err)
		}
	})
}

// A reply that comes while the server is being asked to forget its call frees the tag only with the answer to that.
func TestATagIsTakenUntilItsFlushIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, got, reply := scripted(t)
		defer c.Close()
		last := fill(t, c, got, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c.wait(ctx, last)
		flush := <-got
		if flush.kind != TFlush || flush.old != last.tag {
			t.Fatalf("got %+v, want a flush of %d", flush, last.tag)
		}
		reply(TClunk+1, last.tag)
		go c.do(t.Context(), &call{op: "clunk", want: TClunk + 1}, newRequest(), nil)
		synctest.Wait()
		select {
		case a := <-got:
			t.Fatalf("tag %d is used again before the flush of %d is answered", a.tag, last.tag)
		default:
		}
		reply(TFlush+1, flush.tag)
		synctest.Wait()
		if a := <-got; a.tag != flush.tag && a.tag != last.tag {
			t.Errorf("the next call has tag %d", a.tag)
		}
		if n := len(c.tags.free); n != 1 {
			t.Errorf("%d tags are free, want 1", n)
		}
	})
}

// nfs-ganesha answers an error with Rerror's number and Rlerror's body; the connection is fine then, as Linux's own
// client takes it.
func TestAnErrorUnderRerrorsNumberIsARefusal(t *testing.T) {
	near, far := net.Pipe()
	c, got := scriptedOver(t, near, far)
	defer c.Close()
	for _, kind := range []uint8{RLerror, rError} {
		w := &call{op: "walk", want: TWalk + 1}
		if err := c.begin(t.Context(), w, newRequest(), nil); err != nil {
			t.Fatal(err)
		}
		far.Write(answered(kind, (<-got).tag, 2, 0, 0, 0))
		<-w.ready
		var refused *Error
		if !errors.As(w.err, &refused) || refused.Errno != syscall.ENOENT {
			t.Errorf("message type %d: %v, want ENOENT", kind, w.err)
		}
	}
}

// nfs-ganesha may answer a request that it was asked to forget and says it did. That spoils nothing, and
// is never taken for another request's answer.
func TestALateAnswerIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, got, reply := scripted(t)
		defer c.Close()
		last := fill(t, c, got, 1) // one tag is left, for the flush
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c.wait(ctx, last)
		synctest.Wait()
		flush := <-got
		if flush.kind != TFlush || flush.old != last.tag {
			t.Fatalf("the server was asked %+v, want to forget %d", flush, last.tag)
		}
		reply(TFlush+1, flush.tag)
		synctest.Wait()
		for range 2 {
			next := &call{op: "clunk", want: TClunk + 1}
			if err := c.begin(t.Context(), next, newRequest(), nil); err != nil {
				t.Fatal(err)
			}
			if <-got; next.tag == last.tag {
				t.Errorf("tag %d is used again, and its late answer would be the new request's", last.tag)
			}
		}
		reply(TClunk+1, last.tag)
		synctest.Wait()
		if err := c.err; err != nil {
			t.Errorf("a late answer ended the connection: %v", err)
		}
		reply(TClunk+1, last.tag) // once
		synctest.Wait()
		if c.err == nil {
			t.Error("a second answer was taken")
		}
	})
}

// A server whose file system is full, or whose user has used up a quota, writes a part first and says why at the next
// request: what is left is asked for, so that the program hears the reason.
func TestAWriteInPartSaysWhy(t *testing.T) {
	near, far := net.Pipe()
	c, got := scriptedOver(t, near, far)
	defer c.Close()
	f := &Fid{c: c, id: c.newFid(), chunk: c.IOUnit()}
	answers := [][]byte{{10, 0, 0, 0}, {byte(syscall.EDQUOT), 0, 0, 0}, {10, 0, 0, 0}, {0, 0, 0, 0}}
	go func() {
		for i, body := range answers {
			kind := uint8(TWrite + 1)
			if i == 1 {
				kind = RLerror
			}
			far.Write(answered(kind, (<-got).tag, body...))
		}
	}()
	n, err := f.WriteAt(t.Context(), make([]byte, 100), 0)
	var refused *Error
	if n != 10 || !errors.As(err, &refused) || refused.Errno != syscall.EDQUOT {
		t.Errorf("%d bytes, %v, want 10 and EDQUOT", n, err)
	}
	if n, err := f.WriteAt(t.Context(), make([]byte, 100), 0); n != 10 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a server that writes no more and does not say why: %d bytes, %v", n, err)
	}
}

// TestATagIsFreedOnce: replies come while callers give up, and no tag is in use twice afterwards, nor lost.
func TestATagIsFreedOnce(t *testing.T) {
	near, far := net.Pipe()
	c, got := scriptedOver(t, near, far)
	go func() {
		for a := range got {
			far.Write(answered(a.kind+1, a.tag))
		}
	}()
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 4000 {
				ctx, cancel := context.WithCancel(t.Context())
				w := &call{op: "clunk", want: TClunk + 1}
				if err := c.begin(ctx, w, newRequest(), nil); err != nil {
					t.Error(err)
				} else {
					go cancel()
					c.wait(ctx, w)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	c.behind.Wait()
	free := map[uint16]bool{}
	for range len(c.tags.free) {
		tag := <-c.tags.free
		if free[tag] {
			t.Errorf("tag %d is free twice", tag)
		}
		free[tag] = true
	}
	if len(free) != maxInFlight {
		t.Errorf("%d tags are free, want %d", len(free), maxInFlight)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
