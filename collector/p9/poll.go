package p9

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller looks at one small file again and again at the least cost. A file of a control tree shows a
// new snapshot each time it is opened, which takes four requests that must wait for each other; a
// Poller works on four fids, each one step further, so that a look is one write of four independent
// requests and one read of the answers to those of the look before. It waits for nothing, and the
// answers wake nobody: the connection is outside the runtime's poller.
type Poller struct {
	addr, file string
	msize      uint32
	out        []byte
	in         []byte // answers not yet complete
	text       []byte

	mu      sync.Mutex // guards everything that follows
	fd      int        // -1 when closed
	look    uint32
	waiting [slots]bool // for an answer of the slot's fid; its number is the request's tag
	step    [slots]step
}

// step is what a slot's fid last asked for.
type step uint8

const (
	idle step = iota
	walked
	opened
	wasRead
)

const (
	slots     = 4
	rootFid   = 0
	pollMsize = 64 << 10
)

// DialPoller connects to HOST:PORT for looks at one file of the tree aname. What is beyond one
// message, 64 KiB, of the file is not seen.
func DialPoller(ctx context.Context, addr, aname, file string, uid uint32) (*Poller, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, &TransportError{addr, err}
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	p := &Poller{addr: addr, file: file, fd: -1}
	if err := p.greet(conn, aname, uid); err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, &TransportError{addr, err}
	}
	// A copy of the descriptor, which stays when conn leaves the runtime's poller.
	cerr := raw.Control(func(fd uintptr) { p.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, cerr); err != nil {
		return nil, &TransportError{addr, err}
	}
	return p, nil
}

// greet agrees on the protocol and attaches to the tree.
func (p *Poller) greet(conn net.Conn, aname string, uid uint32) error {
	p.out = p.out[:0]
	p.request(TVersion, noTag, uint32(pollMsize), version)
	d, err := p.ask(conn, "version", TVersion)
	if err != nil {
		return err
	}
	if p.msize = d.U32(); d.Text() != version || d.Err != nil || p.msize < 4096 || p.msize > pollMsize {
		return fmt.Errorf("%s: the server does not speak %s", p.addr, version)
	}
	p.request(TAttach, 0, uint32(rootFid), uint32(noFid), "", aname, uid)
	_, err = p.ask(conn, "attach "+aname, TAttach)
	return err
}

// request appends one message to what will be written.
func (p *Poller) request(kind uint8, tag uint16, fields ...any) {
	at := len(p.out)
	p.out = appendFields(appendFields(p.out, uint32(0), kind, tag), fields...)
	binary.LittleEndian.PutUint32(p.out[at:], uint32(len(p.out)-at))
}

// ask writes what was requested and reads one answer.
func (p *Poller) ask(conn net.Conn, op string, kind uint8) (*Decoder, error) {
	_, err := conn.Write(p.out)
	p.out = p.out[:0]
	var head [HeaderBytes]byte
	if err == nil {
		_, err = io.ReadFull(conn, head[:])
	}
	size := binary.LittleEndian.Uint32(head[:])
	if err == nil && (size < HeaderBytes || size > pollMsize) {
		err = fmt.Errorf("an answer of %d bytes", size)
	}
	if err != nil {
		return nil, &TransportError{p.addr, err}
	}
	body := make([]byte, size-HeaderBytes)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, &TransportError{p.addr, err}
	}
	return answer(op, head[4], kind, body)
}

// answer is the body of a reply to a request of kind. An Error is the server's refusal; any other error means that
// the server does not keep to the protocol.
func answer(op string, got, kind uint8, body []byte) (*Decoder, error) {
	d := &Decoder{Rest: body}
	switch got {
	case kind + 1:
		return d, nil
	case RLerror, rError:
		errno := syscall.Errno(d.U32())
		if d.Err != nil {
			return nil, d.Err
		}
		return nil, &Error{Op: op, Errno: errno}
	}
	return nil, fmt.Errorf("%s is answered with a message of type %d", op, got)
}

// Look returns the file as it was two looks ago; ok is false when that answer is not there yet. The
// text is valid until the next Look. An Error is the server's refusal and the next Look starts
// anew; after any other error the Poller is of no more use.
func (p *Poller) Look() (text []byte, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 {
		return nil, false, &TransportError{p.addr, net.ErrClosed}
	}
	p.text = p.text[:0]
	got, err := p.receive()
	if refusal := (*Error)(nil); err != nil && !errors.As(err, &refusal) {
		return nil, false, err
	}
	for _, w := range p.waiting {
		if w {
			return nil, false, err // the server is slow; more requests would not help
		}
	}
	if serr := p.send(); serr != nil {
		return nil, false, serr
	}
	return p.text, got, err
}

// send moves every slot one step on.
func (p *Poller) send() error {
	p.out = p.out[:0]
	for slot := range uint32(slots) {
		if p.step[slot] == idle && slot != p.look%slots {
			continue // its turn to begin comes
		}
		p.next(slot)
	}
	p.look++
	n, err := rawIO(unix.SYS_WRITE, p.fd, p.out)
	if err == nil && n < len(p.out) {
		err = fmt.Errorf("%d of %d bytes written", n, len(p.out))
	}
	if err != nil {
		return &TransportError{p.addr, err}
	}
	return nil
}

func (p *Poller) next(slot uint32) {
	fid, tag := 1+slot, uint16(slot)
	p.waiting[slot] = true
	switch p.step[slot] {
	case idle:
		p.request(TWalk, tag, uint32(rootFid), fid, uint16(1), p.file)
		p.step[slot] = walked
	case walked:
		p.request(TLopen, tag, fid, uint32(syscall.O_RDONLY))
		p.step[slot] = opened
	case opened:
		p.request(TRead, tag, fid, uint64(0), p.msize-IOHeader)
		p.step[slot] = wasRead
	case wasRead:
		p.request(TClunk, tag, fid)
		p.step[slot] = idle
	}
}

// receive takes the answers that are there; got says that one of them was a read's.
func (p *Poller) receive() (got bool, err error) {
	if cap(p.in) < pollMsize {
		p.in = make([]byte, 0, pollMsize+4<<10)
	}
	n, rerr := rawIO(unix.SYS_READ, p.fd, p.in[len(p.in):cap(p.in)])
	switch {
	case rerr == syscall.EAGAIN || rerr == syscall.EINTR:
		return false, nil
	case rerr == nil && n == 0:
		return false, &TransportError{p.addr, io.ErrUnexpectedEOF}
	case rerr != nil:
		return false, &TransportError{p.addr, rerr}
	}
	p.in = p.in[:len(p.in)+n]
	rest := p.in
	for len(rest) >= HeaderBytes {
		size := binary.LittleEndian.Uint32(rest)
		if size < HeaderBytes || size > pollMsize {
			return got, &TransportError{p.addr, fmt.Errorf("an answer of %d bytes", size)}
		}
		if int(size) > len(rest) {
			break
		}
		isText, aerr := p.take(rest[4], binary.LittleEndian.Uint16(rest[5:]), rest[HeaderBytes:size])
		got = got || isText
		err = errors.Join(err, aerr)
		rest = rest[size:]
	}
	p.in = p.in[:copy(p.in[:cap(p.in)], rest)]
	return got, err
}

// rawIO reads or writes without telling the runtime: the descriptor does not block, and each call that
// the runtime knows of wakes its monitor, a thread of its own.
func rawIO(call uintptr, fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// take handles one answer. A slot that was refused begins anew; what its fid had, if anything, is
// given back first.
func (p *Poller) take(kind uint8, tag uint16, body []byte) (isText bool, err error) {
	if tag >= slots || !p.waiting[tag] {
		return false, &TransportError{p.addr, fmt.Errorf("an answer to no question, tag %d", tag)}
	}
	p.waiting[tag] = false
	asked := [...]uint8{idle: TClunk, walked: TWalk, opened: TLopen, wasRead: TRead}[p.step[tag]]
	d, err := answer(p.file, kind, asked, body)
	if err != nil {
		switch p.step[tag] {
		case walked:
			p.step[tag] = idle
		case opened, wasRead:
			p.step[tag] = wasRead // a clunk is next
		}
		return false, err
	}
	if asked != TRead {
		return false, nil
	}
	n := d.U32()
	if d.Err != nil || int(n) > len(d.Rest) {
		return false, &TransportError{p.addr, errShort}
	}
	p.text = append(p.text[:0], d.Rest[:n]...)
	return true, nil
}

// Close ends the connection.
func (p *Poller) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 {
		return nil
	}
	err := syscall.Close(p.fd)
	p.fd = -1
	return err
}
