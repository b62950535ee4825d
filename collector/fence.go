package collector

import (
	"fmt"
	"runtime/debug"
)

// Panicked is the error that Fenced makes of a panic.
type Panicked struct {
	Value any
	Stack []byte
}

func (p *Panicked) Error() string { return fmt.Sprintf("BUG: panic: %v", p.Value) }

// Fenced calls do, whose panic becomes a *Panicked: what one source's files make it do ends neither the agent nor the
// other sources. Every goroutine that reads for a source has it.
func Fenced(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panicked{Value: p, Stack: debug.Stack()}
		}
	}()
	return do()
}
