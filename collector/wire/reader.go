package wire

import (
	"encoding/binary"
	"fmt"

	"fairway/collector/topology"
)

// reader walks one message. After the first error every read answers a zero value, so callers
// look at err once.
type reader struct {
	b   []byte
	at  int
	err error
	d   *Decoder
	// retired says that the frame has a number that is written no more.
	retired bool
}

func (r *reader) fail(what, why string, is error) {
	if r.err == nil {
		r.err = fmt.Errorf("%s at byte %d: %s: %w", what, r.at, why, is)
	}
}

func (r *reader) byte(what string) byte {
	if r.err != nil {
		return 0
	}
	if r.at >= len(r.b) {
		r.fail(what, "cut off", ErrMalformed)
		return 0
	}
	v := r.b[r.at]
	r.at++
	return v
}

func (r *reader) flag(what string) bool {
	v := r.byte(what)
	if v > 1 {
		r.fail(what, fmt.Sprintf("%d is neither 0 nor 1", v), ErrMalformed)
	}
	return v == 1
}

func (r *reader) role() topology.Role {
	if v := topology.Role(r.byte("role")); v <= topology.Metadata {
		return v
	}
	return topology.RoleUnknown
}

func (r *reader) uvarint(what string) uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 {
		r.fail(what, "its number is cut off or longer than 64 bits", ErrMalformed)
		return 0
	}
	r.at += n
	return v
}

func (r *reader) varint(what string) int64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Varint(r.b[r.at:])
	if n <= 0 {
		r.fail(what, "its number is cut off or longer than 64 bits", ErrMalformed)
		return 0
	}
	r.at += n
	return v
}

// count reads how many items follow and answers 0 with an error when they are more than limit or
// more than the rest of the message can hold at minBytes each.
func (r *reader) count(what string, limit, minBytes int) int {
	n := r.uvarint(what)
	if n > uint64(limit) {
		r.fail(what, fmt.Sprintf("%d is more than %d", n, limit), ErrLimit)
		return 0
	}
	if rest := len(r.b) - r.at; r.err == nil && int(n)*minBytes > rest {
		r.fail(what, fmt.Sprintf("%d cannot be in the %d bytes left: cut off", n, rest), ErrMalformed)
		return 0
	}
	return int(n)
}

// list is count for a list whose items take so many bytes in memory.
func (r *reader) list(what string, limit, minBytes, size int) int {
	n := r.count(what, limit, minBytes)
	if r.d.held += n * size; r.d.held > MaxHeldBytes {
		r.fail(what, fmt.Sprintf("the message takes more than %d bytes in memory; send several", MaxHeldBytes),
			ErrLimit)
		return 0
	}
	return n
}

// bytes reads a string without copying it.
func (r *reader) bytes(what string, limit int) []byte {
	n := r.uvarint(what)
	return r.take(what, n, limit)
}

func (r *reader) take(what string, n uint64, limit int) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(limit) {
		r.fail(what, fmt.Sprintf("%d bytes is more than %d", n, limit), ErrLimit)
		return nil
	}
	if rest := len(r.b) - r.at; int(n) > rest {
		r.fail(what, fmt.Sprintf("%d bytes cannot be in the %d left: cut off", n, rest), ErrMalformed)
		return nil
	}
	v := r.b[r.at : r.at+int(n)]
	r.at += int(n)
	return v
}

func (r *reader) text(what string) string { return string(r.bytes(what, MaxTextBytes)) }

func (r *reader) name(what string) string { return r.d.intern(r.bytes(what, MaxNameBytes)) }

// expectedName saves the look into the table where the name is the one expected.
func (r *reader) expectedName(what, expected string) string {
	return r.d.expected(r.bytes(what, MaxNameBytes), expected)
}

func (r *reader) ownName(what, own, expected string) string {
	n := r.uvarint(what)
	if n == 0 {
		return own
	}
	return r.d.expected(r.take(what, n-1, MaxNameBytes), expected)
}

func (d *Decoder) expected(b []byte, expected string) string {
	if string(b) == expected {
		return expected
	}
	return d.intern(b)
}

// intern returns b as a string that is allocated once per name, not once per second.
func (d *Decoder) intern(b []byte) string {
	if d.Names == nil {
		d.Names = &Names{}
	}
	return d.Names.of(b)
}
