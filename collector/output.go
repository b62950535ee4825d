package collector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Output keeps the first Most bytes of what a program prints, and takes the rest without keeping it, so that the
// program never waits and what it prints costs no more memory.
type Output struct {
	Most int
	Cut  bool // there was more
	kept bytes.Buffer
}

// Write implements io.Writer; it never fails.
func (o *Output) Write(p []byte) (int, error) {
	n := min(len(p), o.Most-o.kept.Len())
	o.Cut = o.Cut || n < len(p)
	_, _ = o.kept.Write(p[:n])
	return len(p), nil
}

// Bytes are what was kept.
func (o *Output) Bytes() []byte { return o.kept.Bytes() }

// String is what was kept, without the space around it.
func (o *Output) String() string { return string(bytes.TrimSpace(o.kept.Bytes())) }

// Bounded reads up to Left bytes of In; that there are more is Err, and no end.
type Bounded struct {
	In   io.Reader
	Left int64
	Err  error
}

// Read implements io.Reader.
func (b *Bounded) Read(p []byte) (int, error) {
	if b.Left <= 0 {
		return 0, b.Err
	}
	n, err := b.In.Read(p[:min(int64(len(p)), b.Left)])
	b.Left -= int64(n)
	return n, err
}

// Faults keeps the first errors of an input and counts the others.
type Faults struct {
	errs    []error
	dropped int
}

// MostFaults are kept of an input.
const MostFaults = 20

// Add notes an error.
func (f *Faults) Add(err error) {
	if len(f.errs) == MostFaults {
		f.dropped++
		return
	}
	f.errs = append(f.errs, err)
}

// Kept is how many were kept.
func (f *Faults) Kept() int { return len(f.errs) }

// All joins them; nil where there are none.
func (f *Faults) All() error {
	all := f.errs
	if f.dropped > 0 {
		all = append(all[:len(all):len(all)], fmt.Errorf("and %d more", f.dropped))
	}
	return errors.Join(all...)
}

// Clip is a text of an input as messages quote it.
func Clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
