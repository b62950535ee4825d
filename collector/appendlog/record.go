package appendlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A record is a head and a payload, little-endian:
//
//	4 bytes  length of the payload
//	4 bytes  CRC-32C of the next field and the payload
//	8 bytes  number; a log's records are numbered without gaps
//	…        the payload

// HeadBytes is the size of a record's head.
const HeadBytes = 16

// ErrTorn says that no whole record is here: a crash left it unfinished, or it is damaged.
var ErrTorn = errors.New("no whole record")

// Seal fills in the head of a record whose payload begins HeadBytes behind the begin of b.
func Seal(b []byte, number uint64) {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-HeadBytes))
	binary.LittleEndian.PutUint64(b[8:], number)
	binary.LittleEndian.PutUint32(b[4:], Sum(b[8:]))
}

// ReadRecord reads the record that r is at; the payload is in buf, grown as needed. io.EOF says that the log ends
// here: nothing follows, or a head of zeros, room that was made for more. An error that wraps ErrTorn says that
// bytes follow that are not a whole record of at most longest bytes.
func ReadRecord(r io.Reader, longest int, buf []byte) (number uint64, payload []byte, err error) {
	var head [HeadBytes]byte
	if _, err := io.ReadFull(r, head[:]); errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, buf, fmt.Errorf("%w: the log ends inside a head", ErrTorn)
	} else if err != nil {
		return 0, buf, err
	}
	if head == [HeadBytes]byte{} {
		return 0, buf, io.EOF
	}
	size, sum := int64(binary.LittleEndian.Uint32(head[:])), binary.LittleEndian.Uint32(head[4:])
	if size > int64(longest) {
		return 0, buf, fmt.Errorf("%w: a record of %d bytes, the longest is %d", ErrTorn, size, longest)
	}
	if buf, err = readUpTo(r, buf[:0], int(size)); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, buf, fmt.Errorf("%w: the log ends inside a record of %d bytes", ErrTorn, size)
	} else if err != nil {
		return 0, buf, err
	}
	if got := Sum(head[8:], buf); got != sum {
		return 0, buf, fmt.Errorf("%w: CRC is %08x, its bytes give %08x", ErrTorn, sum, got)
	}
	return binary.LittleEndian.Uint64(head[8:]), buf, nil
}

// readUpTo reads exactly n bytes into buf, growing it with what really arrives, so that a wrong
// length cannot make it allocate more than the log holds.
func readUpTo(r io.Reader, buf []byte, n int) ([]byte, error) {
	const step = 1 << 20
	for len(buf) < n {
		at := len(buf)
		k := min(n-at, step)
		buf = slices.Grow(buf, k)[:at+k]
		if _, err := io.ReadFull(r, buf[at:]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}
