package darshan

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// nameTable holds the paths of a log, one after the other, each after its length, in pieces of memory that
// never move: a table that grew as a whole would at times exist twice.
type nameTable struct {
	at     map[uint64]uint32 // piece, and place in it in the low 20 bits
	pieces [][]byte
	bytes  int
}

const (
	pieceBits = 20
	pieceSize = 1 << pieceBits
)

// find returns the bytes from a name's length on.
func (t *nameTable) find(at uint32) []byte { return t.pieces[at>>pieceBits][at&(pieceSize-1):] }

func (t *nameTable) name(id uint64) (string, bool) {
	at, ok := t.at[id]
	if !ok {
		return "", false
	}
	b := t.find(at)
	n, k := binary.Uvarint(b)
	return string(b[k : k+int(n)]), true
}

// add keeps the first name of an id that is not empty.
func (t *nameTable) add(id uint64, name []byte) error {
	if old, ok := t.at[id]; ok && (t.find(old)[0] != 0 || len(name) == 0) {
		return nil
	}
	if t.bytes += len(name); len(t.at) >= maxNames || t.bytes > maxNameBytes {
		return fmt.Errorf("%w: over %d names or %d bytes of them; the rest has no names", ErrTooLarge, maxNames,
			maxNameBytes)
	}
	last := len(t.pieces) - 1
	if last < 0 || len(t.pieces[last])+binary.MaxVarintLen64+len(name) > pieceSize {
		size := pieceSize
		if last < 0 {
			size = 4096 // most logs have few names
		}
		t.pieces = append(t.pieces, make([]byte, 0, size))
		last++
	}
	piece := t.pieces[last]
	t.at[id] = uint32(last)<<pieceBits | uint32(len(piece))
	piece = binary.AppendUvarint(piece, uint64(len(name)))
	t.pieces[last] = append(piece, name...)
	return nil
}

// readNames reads the table of names. What was read before an error stays.
func (r *Reader) readNames() error {
	if r.table != nil {
		return nil
	}
	r.table = &nameTable{at: map[uint64]uint32{}}
	if r.names.length == 0 {
		return nil
	}
	in := bufio.NewReaderSize(r.open(r.names), 4096)
	next := readNulName
	if r.shape.lengthNames {
		next = r.readLengthName
	}
	var id [8]byte
	var name []byte
	for at := int64(0); ; {
		n, err := io.ReadFull(in, id[:])
		if err == io.EOF {
			return nil
		}
		if err == nil {
			name, err = next(in, name[:0])
		}
		if err == nil {
			err = r.table.add(r.order.Uint64(id[:]), name)
		}
		if err != nil {
			return &Error{"record table", r.names.off, at, unexpected(err)}
		}
		at += int64(n + len(name) + 1)
	}
}

// readNulName reads a name up to its NUL.
func readNulName(in *bufio.Reader, name []byte) ([]byte, error) {
	for {
		b, err := in.ReadSlice(0)
		if len(name)+len(b) > maxPath {
			return name, fmt.Errorf("a name of over %d bytes", maxPath)
		}
		name = append(name, b...)
		if err == nil {
			return bytes.TrimSuffix(name, []byte{0}), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return name, err
		}
	}
}

// readLengthName reads a name of format 3.00: its length, then its bytes.
func (r *Reader) readLengthName(in *bufio.Reader, name []byte) ([]byte, error) {
	var b [4]byte
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return name, err
	}
	n := r.order.Uint32(b[:])
	if n > maxPath {
		return name, fmt.Errorf("a name of %d bytes", n)
	}
	name = append(name, make([]byte, n)...)
	_, err := io.ReadFull(in, name)
	name, _, _ = bytes.Cut(name, []byte{0})
	return name, err
}
