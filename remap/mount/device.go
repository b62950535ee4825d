package mount

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// device is where the kernel's requests come from and their answers go. Reads are answered from here,
// because their data need not come through this process; all other requests go to go-fuse.
type device struct {
	fd    int // takes answers
	from  int // gives requests; stop makes it another file
	files fuse.RawFileSystem
	rest  *fuse.ProtocolServer
	lost  func() // called when the kernel has ended the mount
	log   *slog.Logger

	waiting atomic.Int32 // threads that wait for a request
	loops   sync.WaitGroup
	ended   chan struct{} // closed when nobody uses fd and from any more

	in, out buffers // of requests and of answers
	pipes   *pipes

	mu     sync.Mutex               // guards what follows
	reads  map[uint64]chan struct{} // closed when the kernel reports a signal
	closed bool                     // fd and from may be others' now
}

const (
	// The kernel's numbers of requests.
	opcodeForget      = 2
	opcodeRead        = 15
	opcodeInterrupt   = 36
	opcodeBatchForget = 42

	inHeaderBytes  = int(unsafe.Sizeof(fuse.InHeader{}))
	outHeaderBytes = int(unsafe.Sizeof(fuse.OutHeader{}))
	// maxWaiting is how many threads wait for requests at most; where more are busy there are more of
	// them. Each keeps a buffer for a request, and a new one costs more than one that waits.
	maxWaiting = 4
	// smallRequest is the most that is copied so that the request does not keep a large buffer, bytes.
	smallRequest = 8 << 10
)

// serve begins to answer the requests that come from fd, which it owns.
func serve(fd int, files fuse.RawFileSystem, opt *fuse.MountOptions, pipes *pipes, log *slog.Logger,
	lost func()) (*device, error) {
	from, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("a copy of /dev/fuse: %w", err)
	}
	d := &device{fd: fd, from: from, files: files, rest: fuse.NewProtocolServer(files, opt), lost: lost, log: log,
		pipes: pipes,
		ended: make(chan struct{}), reads: map[uint64]chan struct{}{},
		in: buffers{head: int(unsafe.Sizeof(fuse.WriteIn{})), huge: true}, out: buffers{head: outHeaderBytes}}
	d.loops.Go(d.loop)
	go d.closeAfter()
	return d, nil
}

// closeAfter closes the device when nobody uses it any more, which ends the mount wherever it is still seen.
func (d *device) closeAfter() {
	d.loops.Wait()
	d.pipes.close()
	d.in.close()
	d.out.close()
	d.mu.Lock()
	d.closed = true
	unix.Close(d.from)
	unix.Close(d.fd)
	d.mu.Unlock()
	close(d.ended)
}

// noPoll makes the kernel learn that files here cannot be polled. A program that waits for its files
// with epoll, as Go's do, would else wait for this process, which may be the same.
func noPoll(mountPoint string) error {
	fd, err := unix.Open(filepath.Join(mountPoint, ".go-fuse-epoll-hack"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return nil
}

// loop answers one request after another until there are enough others who do.
func (d *device) loop() {
	for d.waiting.Add(1) <= maxWaiting {
		request, done, err := d.next()
		left := d.waiting.Add(-1)
		if err == errStopped {
			return // others may still have requests to answer
		}
		if err != nil {
			if err != unix.ENODEV {
				d.log.Error("reading from /dev/fuse", "err", err)
			}
			d.lost()
			return
		}
		// A notice is answered at once, and not by ever more threads.
		if kind := header(request).Opcode; left == 0 && kind != opcodeForget && kind != opcodeBatchForget {
			d.loops.Go(d.loop)
		}
		d.handle(request)
		done()
	}
	d.waiting.Add(-1)
}

// next waits for a request. ENODEV says that the mount has ended, errStopped that no more are wanted.
func (d *device) next() (request []byte, done func(), err error) {
	b, err := d.in.take()
	if err != nil {
		return nil, nil, err
	}
	for {
		n, err := unix.Read(d.from, b.bytes)
		if err == nil && n >= inHeaderBytes {
			if request = b.bytes[:n]; n > smallRequest {
				return request, func() { d.in.give(b) }, nil
			}
			request = slices.Clone(request)
			d.in.give(b)
			return request, func() {}, nil
		}
		if err == nil && n == 0 { // the kernel's device has no end
			d.in.give(b)
			return nil, nil, errStopped
		}
		switch err { // a request may be gone again when it is to be read
		case nil, unix.ENOENT, unix.EINTR, unix.EAGAIN:
		default:
			d.in.give(b)
			return nil, nil, err
		}
	}
}

func header(request []byte) *fuse.InHeader { return (*fuse.InHeader)(unsafe.Pointer(&request[0])) }

func (d *device) handle(request []byte) {
	out, err := d.out.take()
	if err != nil {
		d.log.Error("answering the kernel", "err", err)
		d.answer(header(request).Unique, syscall.ENOMEM, nil)
		return
	}
	defer d.out.give(out)
	switch in := header(request); {
	case in.Opcode == opcodeRead && len(request) >= int(unsafe.Sizeof(fuse.ReadIn{})):
		d.read((*fuse.ReadIn)(unsafe.Pointer(in)), out.bytes[outHeaderBytes:])
		return
	case in.Opcode == opcodeInterrupt && d.interrupt((*fuse.InterruptIn)(unsafe.Pointer(in)).Unique):
		return
	}
	if n, _ := d.rest.HandleRequest([][]byte{request}, [][]byte{out.bytes}); n > 0 {
		d.write(out.bytes[:n])
	}
}

// interrupt reports whether a read is under way that it has passed a signal to.
func (d *device) interrupt(unique uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	signal, ok := d.reads[unique]
	if ok {
		close(signal)
		delete(d.reads, unique)
	}
	return ok
}

// read answers a read.
func (d *device) read(in *fuse.ReadIn, dest []byte) {
	signal := make(chan struct{})
	d.mu.Lock()
	d.reads[in.Unique] = signal
	d.mu.Unlock()
	dest = dest[:min(int(in.Size), maxIO)]
	result, status := d.files.Read(signal, in, dest)
	if late, ok := result.(*lateRead); ok {
		d.readLate(late, in.Unique)
	} else {
		d.answer(in.Unique, syscall.Errno(status), nil)
	}
	d.mu.Lock()
	delete(d.reads, in.Unique)
	d.mu.Unlock()
}

// answer sends an answer of a header and data.
func (d *device) answer(unique uint64, errno syscall.Errno, data []byte) {
	if errno != 0 {
		data = nil
	}
	head := outHeader(unique, errno, len(data))
	d.write(head[:], data)
}

func outHeader(unique uint64, errno syscall.Errno, size int) (b [outHeaderBytes]byte) {
	*(*fuse.OutHeader)(unsafe.Pointer(&b)) = fuse.OutHeader{Length: uint32(outHeaderBytes + size),
		Status: -int32(errno), Unique: unique}
	return b
}

// nobodyWaits says that an answer had come too late: the request, or the mount, has been given up.
func nobodyWaits(err error) bool { return err == unix.ENOENT || err == unix.ENODEV }

// write sends one answer. Of one that the kernel refuses, such as an error number that Linux does not have, it hears
// that the operation failed: a program would wait for it for ever.
func (d *device) write(parts ...[]byte) {
	_, err := unix.Writev(d.fd, parts)
	if err == nil || nobodyWaits(err) {
		return
	}
	d.log.Warn("answering the kernel", "err", err)
	failed := outHeader((*fuse.OutHeader)(unsafe.Pointer(&parts[0][0])).Unique, syscall.EIO, 0)
	if _, err := unix.Write(d.fd, failed[:]); err != nil && !nobodyWaits(err) {
		d.log.Warn("answering the kernel", "err", err)
	}
}

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
