package format

import (
	"strconv"
	"time"
)

// text builds a file in the columns of printf's %*d and %-*s. A soak writes some thousand lines a second, for which
// printf takes the most of the time.
type text []byte

func (t text) String() string { return string(t) }

func (t *text) add(words ...string) {
	for _, w := range words {
		*t = append(*t, w...)
	}
}

// left is %-*s, right is %*s.
func (t *text) left(width int, s string) {
	*t = append(*t, s...)
	t.pad(width - len(s))
}

func (t *text) right(width int, s string) {
	t.pad(width - len(s))
	*t = append(*t, s...)
}

// num is %*d.
func (t *text) num(width int, n int64) {
	var b [20]byte
	t.digits(width, strconv.AppendInt(b[:0], n, 10))
}

// unsigned is num of what may not fit it.
func (t *text) unsigned(width int, n uint64) {
	var b [20]byte
	t.digits(width, strconv.AppendUint(b[:0], n, 10))
}

func (t *text) digits(width int, d []byte) {
	t.pad(width - len(d))
	*t = append(*t, d...)
}

func (t *text) pad(n int) {
	for ; n > 0; n-- {
		*t = append(*t, ' ')
	}
}

// nanos is a number of seconds with nine digits behind the point.
func (t *text) nanos(s int64, ns time.Duration) {
	t.num(0, s)
	t.add(".")
	var b [20]byte
	d := strconv.AppendInt(b[:0], int64(time.Second+ns), 10) // a one, and nine digits
	*t = append(*t, d[1:]...)
}
