package queue

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/p9"
)

// fileServer is a 9P2000.L server with files in memory, in one folder. It does requests side by side, each after its
// service time.
type fileServer struct {
	service func(kind byte) time.Duration
	most    int // bytes that a file may have; what a write has beyond is cut off, or refused
	bad     int // a byte that cannot be read; 0: none
	answer  int // bytes of a read's answer at most; 0: all that was asked for
	lazy    int // one of so many flushes is answered; 0: each
	numbers map[string]uint64
	mu      sync.Mutex
	files   map[string]*memory
	links   map[string]string // by name: where it leads
	count   map[byte]int      // requests
	conns   []net.Conn
}

type memory struct {
	number uint64
	data   []byte
	mtime  uint64
}

func newFileServer(service time.Duration) *fileServer {
	return &fileServer{service: func(byte) time.Duration { return service }, most: 1 << 30,
		numbers: map[string]uint64{}, files: map[string]*memory{}, links: map[string]string{},
		count: map[byte]int{}}
}

func (s *fileServer) dial(context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	s.mu.Lock()
	s.conns = append(s.conns, there)
	s.mu.Unlock()
	go s.serve(there)
	return here, nil
}

// handle is a fid at the server: a file, or where it is nil the folder; a link to a file until that is opened.
type handle struct {
	file *memory
	link bool
}

func (s *fileServer) serve(c net.Conn) {
	defer c.Close()
	var replies sync.Mutex
	handles := map[uint32]*handle{}
	for {
		m, err := readMessage(c)
		if err != nil {
			return
		}
		go func() {
			time.Sleep(s.service(m[4]))
			kind, body := s.do(handles, m)
			if kind == 0 {
				return
			}
			replies.Lock()
			defer replies.Unlock()
			c.Write(frame(kind, tagOf(m), body))
		}()
	}
}

func (h *handle) qid() []byte {
	q := make([]byte, qidBytes)
	switch {
	case h.file == nil:
		q[0] = 0x80
	case h.link:
		q[0] = qidLink
		binary.LittleEndian.PutUint64(q[5:], 1000+h.file.number)
	default:
		binary.LittleEndian.PutUint64(q[5:], h.file.number)
	}
	return q
}

// content is what is in a file now.
func (s *fileServer) content(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.files[name].data)
}

// do does a request; kind 0: it is not answered.
func (s *fileServer) do(handles map[uint32]*handle, m []byte) (kind byte, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[m[4]]++
	le := binary.LittleEndian
	refuse := func(e syscall.Errno) (byte, []byte) { return 7, le.AppendUint32(nil, uint32(e)) }
	f := p9.Decoder{Rest: m[p9.HeaderBytes:]}
	switch m[4] {
	case p9.TVersion:
		return p9.TVersion + 1, m[p9.HeaderBytes:]
	case p9.TFlush:
		if s.lazy > 0 && s.count[p9.TFlush]%s.lazy != 0 {
			return 0, nil
		}
		return p9.TFlush + 1, nil
	}
	id := f.U32()
	h := handles[id]
	if h == nil && m[4] != p9.TAttach {
		return refuse(syscall.EBADF)
	}
	switch m[4] {
	case p9.TAttach:
		handles[id] = &handle{}
		return p9.TAttach + 1, handles[id].qid()
	case p9.TWalk:
		to, names := f.U32(), int(f.U16())
		body = le.AppendUint16(nil, uint16(names))
		at := *h
		for range names {
			name := f.Text()
			target, link := s.links[name]
			if link {
				name = target
			}
			file, found := s.files[name]
			if !found {
				return refuse(syscall.ENOENT)
			}
			at = handle{file, link}
			body = append(body, at.qid()...)
		}
		handles[to] = &at
	case p9.TLopen:
		h.link = false // it is followed
		if f.U32()&syscall.O_TRUNC != 0 {
			h.file.data, h.file.mtime = nil, h.file.mtime+1
		}
		body = append(h.qid(), 0, 0, 0, 0)
	case p9.TLcreate:
		name := f.Text()
		if s.files[name] == nil {
			number, found := s.numbers[name]
			if !found {
				number = uint64(len(s.files) + 1)
			}
			s.files[name] = &memory{number: number}
		}
		h.file = s.files[name]
		if f.U32()&syscall.O_TRUNC != 0 {
			h.file.data, h.file.mtime = nil, h.file.mtime+1
		}
		body = append(h.qid(), 0, 0, 0, 0)
	case p9.TWrite:
		offset, n := int(f.U64()), int(f.U32())
		data := f.Take(n)
		if n = min(n, s.most-offset); n <= 0 {
			return refuse(syscall.ENOSPC)
		}
		h.file.data = append(h.file.data, make([]byte, max(0, offset+n-len(h.file.data)))...)
		copy(h.file.data[offset:], data[:n])
		h.file.mtime++
		body = le.AppendUint32(nil, uint32(n))
	case p9.TRead:
		offset, n := int(f.U64()), int(f.U32())
		data := h.file.data[min(offset, len(h.file.data)):]
		data = data[:min(n, len(data))]
		if s.answer > 0 {
			data = data[:min(s.answer, len(data))]
		}
		if s.bad > 0 && offset <= s.bad && s.bad < offset+len(data) {
			return refuse(syscall.EIO)
		}
		body = append(le.AppendUint32(nil, uint32(len(data))), data...)
	case p9.TGetattr:
		body = make([]byte, 153)
		copy(body[8:], h.qid())
		le.PutUint32(body[21:], syscall.S_IFREG)
		le.PutUint64(body[49:], uint64(len(h.file.data)))
		le.PutUint64(body[89:], h.file.mtime)
	case p9.TSetattr:
		if f.U32()&8 != 0 {
			f.Take(12)
			size := int(f.U64())
			h.file.data = append(h.file.data, make([]byte, max(0, size-len(h.file.data)))...)[:size:size]
			h.file.mtime++
		}
	case p9.TClunk, p9.TRemove:
		delete(handles, id)
	case p9.TFsync:
	default:
		return refuse(syscall.EOPNOTSUPP)
	}
	return m[4] + 1, body
}

// gathering runs a queue that gathers and keeps what was read in front of a server, in a bubble, and wants nothing left
// behind.
func gathering(t *testing.T, s *fileServer, do func(ctx context.Context, r *Queue, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Dial: s.dial, Gather: 2 * time.Millisecond, Cache: 1 << 20, Seed: 1})
		ctx, cancel := context.WithCancel(t.Context())
		p := newPipes()
		done := make(chan error)
		go func() { done <- r.Serve(ctx, p) }()
		do(ctx, r, p)
		time.Sleep(time.Minute)
		synctest.Wait()
		if r.merge.table.Bytes() != 0 || r.inFlight != 0 || r.queue.length != 0 {
			t.Errorf("%d bytes wait, %d in flight, %d in the queue are left", r.merge.table.Bytes(), r.inFlight,
				r.queue.length)
		}
		if next := r.merge.cache.Next(); !next.IsZero() {
			t.Errorf("something is kept: %v", next)
		}
		for c := range r.conns {
			if c.held != 0 || c.bytes != 0 || c.waiting != 0 || len(c.asked) != 0 || c.carries != 0 {
				t.Errorf("a client is left with %d held, %d bytes, %d waiting, %d asked, %d carried", c.held, c.bytes,
					c.waiting, len(c.asked), c.carries)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
	})
}

// rank is a client with one file open.
type rank struct {
	client *p9.Client
	root   *p9.Fid
	file   *p9.Fid
}

// openRank opens a file from an address, as a user, with flags.
func openRank(t *testing.T, ctx context.Context, p *pipes, from, name string, uid, flags uint32) *rank {
	t.Helper()
	conn := p.dial(from)
	c, err := p9.NewClient(ctx, conn, from, 65536)
	if err != nil {
		t.Fatal(err)
	}
	root, err := c.Attach(ctx, "/", uid)
	if err != nil {
		t.Fatal(err)
	}
	f, err := root.Walk(ctx)
	if err == nil {
		err = f.Create(ctx, name, flags, 0o600, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &rank{c, root, f}
}

// openRanks opens a file from as many nodes.
func openRanks(t *testing.T, ctx context.Context, p *pipes, n int) (ranks []*rank) {
	for i := range n {
		ranks = append(ranks, openRank(t, ctx, p, fmt.Sprint("10.0.0.", i+1), "shared", 1000, syscall.O_RDWR))
	}
	return ranks
}

func closeRanks(ranks []*rank) {
	for _, r := range ranks {
		r.client.Close()
	}
}

// block is what a rank writes at a place.
func block(i, size int) []byte {
	b := make([]byte, size)
	random := rand.New(rand.NewPCG(uint64(i), 7))
	for k := range b {
		b[k] = byte(random.Uint32())
	}
	return b
}

// each runs a function for all ranks side by side.
func each(ranks []*rank, do func(i int, r *rank)) {
	var all sync.WaitGroup
	for i, r := range ranks {
		all.Go(func() { do(i, r) })
	}
	all.Wait()
}
