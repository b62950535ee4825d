package wire

import (
	"encoding/binary"
	"fmt"
)

// A gathering agent carries many nodes' streams over one connection. What it sends and gets are bundles: records one
// after the other, each of a channel, which is one node's stream.
//
//	record   uvarint channel, byte op, uvarint length, that many bytes
//
// What a channel's bytes are is its ends' business (collector/wire/seal).

// Op says what a record is.
type Op byte

// The operations of a bundle.
const (
	// OpOpen begins a channel; its bytes are the node's offer. Only gatherers send it.
	OpOpen Op = 1 + iota
	// OpData is one message of a channel.
	OpData
	// OpClose ends a channel; its bytes say why.
	OpClose
	// OpCredit says how many bytes of a channel's data have been taken (uvarint). Only the daemon sends it.
	OpCredit
)

const (
	// MaxRecord bounds the bytes of a record: larger messages come in parts.
	MaxRecord = 33 << 10
	// MaxBundle bounds a bundle: what is larger is sent in several.
	MaxBundle = 60 << 10
	// Window is how many bytes of a channel's data may be on their way before the daemon has taken any of them.
	Window = 64 << 10
)

// AppendRecord adds a record to a bundle.
func AppendRecord(bundle []byte, channel uint64, op Op, body []byte) []byte {
	bundle = binary.AppendUvarint(bundle, channel)
	bundle = append(bundle, byte(op))
	bundle = binary.AppendUvarint(bundle, uint64(len(body)))
	return append(bundle, body...)
}

// Records calls do with each record of a bundle; body is a part of the bundle.
func Records(bundle []byte, do func(channel uint64, op Op, body []byte) error) error {
	for at := 0; at < len(bundle); {
		channel, n := binary.Uvarint(bundle[at:])
		if n <= 0 || at+n >= len(bundle) {
			return fmt.Errorf("bundle: byte %d: a record is cut off", at)
		}
		at += n
		op := Op(bundle[at])
		at++
		size, n := binary.Uvarint(bundle[at:])
		if n <= 0 || size > MaxRecord || size > uint64(len(bundle)-at-n) {
			return fmt.Errorf("%w: bundle: byte %d: a record of %d bytes, at most %d and those that follow", ErrLimit,
				at, size, MaxRecord)
		}
		at += n
		if op < OpOpen || op > OpCredit {
			return fmt.Errorf("bundle: byte %d: unknown operation %d", at, op)
		}
		if err := do(channel, op, bundle[at:at+int(size):at+int(size)]); err != nil {
			return err
		}
		at += int(size)
	}
	return nil
}
