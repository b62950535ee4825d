package collector

import "bytes"

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
