package desk

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"fairway/remap"
)

// bulk is the part of a plan that grows with its nodes.
type bulk struct {
	Moves         []remap.Move
	Results, Undo []remap.Result
	Frozen        remap.Frozen
}

// packer's methods that are used here keep no state and may be called concurrently.
type packer struct {
	in  *zstd.Encoder
	out *zstd.Decoder
}

func newPacker() packer {
	in, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("BUG: zstd: " + err.Error())
	}
	out, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		panic("BUG: zstd: " + err.Error())
	}
	return packer{in, out}
}

// pack compresses the bulk of a plan that has ended.
func (p packer) pack(e *entry) {
	text, err := json.Marshal(bulk{e.Moves, e.Results, e.Undo, e.Frozen})
	if err != nil {
		panic("BUG: what was in the journal cannot be encoded: " + err.Error())
	}
	e.Short = remap.Title(&e.Plan)
	e.packed = bytes.Clone(p.in.EncodeAll(text, nil)) // the encoder's own is as long as the text
	e.Moves, e.Results, e.Undo, e.Frozen, e.results, e.undo = nil, nil, nil, remap.Frozen{}, nil, nil
}

// whole returns a plan of its own with everything in it.
func (p packer) whole(e *entry) remap.Plan {
	c := remap.ClonePlan(&e.Plan)
	if e.packed == nil {
		return c
	}
	var b bulk
	text, err := p.out.DecodeAll(e.packed, nil)
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		panic("BUG: a packed plan cannot be read: " + err.Error())
	}
	c.Moves, c.Results, c.Undo, c.Frozen = b.Moves, b.Results, b.Undo, b.Frozen
	return c
}

// get returns the plan or ErrNotFound.
func (t *planTable) get(id string) (*entry, error) {
	e, ok := t.of[id]
	if !ok {
		return nil, fmt.Errorf("plan %q: %w", id, remap.ErrNotFound)
	}
	return e, nil
}
