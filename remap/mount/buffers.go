package mount

import (
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	pageBytes = 4096
	// hugePage is what the processor maps as one, bytes.
	hugePage = 2 << 20
	// spareBuffers is how many buffers of a kind are kept for reuse.
	spareBuffers = 8
)

// buffers are buffers for the largest request or answer, outside of Go's memory: they are not cleared
// before use, and only what has been touched takes memory.
type buffers struct {
	head int  // bytes before the data, which begins with a page
	huge bool // in one huge page, which costs the kernel less to look up than 256 small ones

	mu    sync.Mutex // guards spare
	spare []buffer
}

type buffer struct {
	bytes   []byte
	mapping []byte // what bytes is in
}

// take returns a buffer with whatever is in it; the last one given back goes out first, because it is
// still in the processor's cache.
func (p *buffers) take() (buffer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.spare); n > 0 {
		b := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return b, nil
	}
	m, err := unix.Mmap(-1, 0, 2*hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return buffer{}, fmt.Errorf("a buffer: %w", err)
	}
	begin := hugePage - int(uintptr(unsafe.Pointer(&m[0]))%hugePage)
	if p.huge {
		unix.Madvise(m[begin:][:hugePage], unix.MADV_HUGEPAGE) // without it all works, slower
	}
	return buffer{m[begin+pageBytes-p.head:][:p.head+maxIO+pageBytes], m}, nil
}

func (p *buffers) give(b buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.spare) < spareBuffers {
		p.spare = append(p.spare, b)
		return
	}
	unix.Munmap(b.mapping)
}

func (p *buffers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.spare {
		unix.Munmap(b.mapping)
	}
	p.spare = nil
}
