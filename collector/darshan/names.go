package darshan

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// nameTable holds the paths of a log, one after the other in a single piece of memory, each after its
// length.
type nameTable struct {
	at   map[uint64]uint32
	text []byte
}

func (t *nameTable) name(id uint64) (string, bool) {
	at, ok := t.at[id]
	if !ok {
		return "", false
	}
	n, k := binary.Uvarint(t.text[at:])
	b := t.text[int(at)+k:]
	return string(b[:n]), true
}

// add keeps the first name of an id that is not empty.
func (t *nameTable) add(id uint64, name []byte) error {
	if old, ok := t.at[id]; ok && (t.text[old] != 0 || len(name) == 0) {
		return nil
	}
	if len(t.at) >= maxNames || len(t.text)+len(name) > maxNameBytes {
		return fmt.Errorf("%w: over %d names or %d bytes of them; the rest has no names", ErrTooLarge, maxNames, maxNameBytes)
	}
	t.at[id] = uint32(len(t.text))
	t.text = binary.AppendUvarint(t.text, uint64(len(name)))
	t.text = append(t.text, name...)
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
