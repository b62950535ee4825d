package recorded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Frame is one file or one command's output at one time.
type Frame struct {
	At   time.Time
	Name string // without a leading slash
	Text []byte
	Err  string // why it was not read; Text is empty then
}

// Command are the words of a command's frame; nil: the frame is a file's.
func (f *Frame) Command() []string {
	if strings.Contains(f.Name, "/") {
		return nil
	}
	return strings.Split(f.Name, "_")
}

// mostBytes bounds one frame.
const mostBytes = 64 << 20

// Frames reads a node's log, and logs with "@T" and "@F" lines, where a file ends at the next such line. It ends with
// the first error.
func Frames(log io.Reader) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		in := bufio.NewReaderSize(log, 1<<20)
		start, err := in.Peek(2)
		switch {
		case errors.Is(err, io.EOF):
		case err != nil:
			yield(Frame{}, err)
		case string(start) == "@ ":
			counted(in, yield)
		default:
			lines(in, yield)
		}
	}
}

// counted reads frames that say how long they are.
func counted(in *bufio.Reader, yield func(Frame, error) bool) {
	for {
		head, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) && head == "" {
			return
		}
		f := strings.Fields(head)
		if err != nil || len(f) != 4 || f[0] != "@" {
			yield(Frame{}, fmt.Errorf("frame %.80q: not @ SECONDS NAME BYTES", head))
			return
		}
		at, err := parseTime(f[1])
		n, bad := strconv.ParseUint(f[3], 10, 32)
		if err = errors.Join(err, bad); err != nil || n > mostBytes {
			yield(Frame{}, fmt.Errorf("frame %.80q: %w", head, err))
			return
		}
		frame := Frame{At: at, Name: strings.TrimPrefix(f[2], "/"), Text: make([]byte, n)}
		if _, err := io.ReadFull(in, frame.Text); err != nil {
			yield(Frame{}, fmt.Errorf("frame %.80q: %w", head, err))
			return
		}
		_, _ = in.Discard(1)
		if text, failed := bytes.CutPrefix(frame.Text, []byte("!")); failed {
			frame.Err, frame.Text = string(text), nil
		}
		if !yield(frame, nil) {
			return
		}
	}
}

// lines reads frames that end with the next one's first line.
func lines(in *bufio.Reader, yield func(Frame, error) bool) {
	var frame Frame
	var at time.Time
	flush := func() bool {
		f := frame
		frame = Frame{}
		return f.Name == "" || yield(f, nil)
	}
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				flush()
			} else {
				yield(Frame{}, err)
			}
			return
		}
		switch f := strings.Fields(string(line)); {
		case len(f) == 3 && f[0] == "@T":
			if !flush() {
				return
			}
			second, bad := parseTime(f[1])
			if at, err = parseTime(f[2]); err != nil || bad != nil {
				yield(Frame{}, fmt.Errorf("line %.80q: %w", line, errors.Join(bad, err)))
				return
			}
			if at.Sub(second).Abs() > time.Hour { // it is the time since the node began
				at = second
			}
		case len(f) == 2 && f[0] == "@F":
			if !flush() {
				return
			}
			frame = Frame{At: at, Name: strings.TrimPrefix(f[1], "/")}
		case len(f) == 3 && f[0] == "@SLOW": // how long a read took
		default:
			frame.Text = append(frame.Text, line...)
		}
	}
}

// parseTime reads seconds since 1970 with a fraction.
func parseTime(text string) (time.Time, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	var ns int64
	if fraction != "" {
		ns, err = strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	}
	return time.Unix(s, ns), err
}
