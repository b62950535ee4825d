package archive

import (
	"context"
	"fmt"

	"fairway/tsdb/history/iolog"
)

// Limits bound one question. The zero value is that of a command that a person runs for himself.
type Limits struct {
	MemoryBytes int64 // of DuckDB; 0 is 2 GB
	AnswerBytes int64 // of the rows; 0: any
	Threads     int   // 0: one a core
}

// memoryLimit is what DuckDB may take where nobody else says so.
const (
	memoryLimit   = "2GB"
	defaultMemory = 2e9
)

type limitsKey struct{}

// WithLimits bounds the questions that are asked with the context it returns.
func WithLimits(ctx context.Context, l Limits) context.Context {
	return context.WithValue(ctx, limitsKey{}, l)
}

func limitsOf(ctx context.Context) Limits {
	l, _ := ctx.Value(limitsKey{}).(Limits)
	if l.MemoryBytes == 0 {
		l.MemoryBytes = defaultMemory
	}
	return l
}

// answer counts the bytes of an answer's rows.
type answer struct{ left, all int64 }

// take counts a row; an error where the answer grows too long.
func (a *answer) take(row []any) error {
	if a.all == 0 {
		return nil
	}
	for _, v := range row {
		a.left -= sizeOf(v)
	}
	if a.left < 0 {
		return fmt.Errorf("%w: the answer has more than %d bytes; ask for fewer columns or rows", iolog.ErrQuery, a.all)
	}
	return nil
}

func sizeOf(v any) int64 {
	const number = 16
	switch v := v.(type) {
	case string:
		return number + int64(len(v))
	case []byte:
		return number + int64(len(v))
	case []any:
		n := int64(number)
		for _, one := range v {
			n += sizeOf(one)
		}
		return n
	}
	return number
}
