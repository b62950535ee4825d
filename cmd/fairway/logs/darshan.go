package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/collector/logs/darshan"
)

const (
	// darshanMemory is the memory that reading logs may take; beyond it the collector of garbage works
	// harder rather than the process growing.
	darshanMemory = 200 << 20
	// largeLog is the size from which on a log is read alone: its names and files may fill the memory.
	largeLog = 4 << 20
	// aheadBytes is how much output of one log waits for the logs before it.
	aheadBytes = 1 << 20
	// maxStdin bounds a log on standard input, which has to be held as a whole.
	maxStdin = 64 << 20
)

// newDarshan is `fairway darshan`: what is in Darshan logs.
func newDarshan() *cobra.Command {
	var counters bool
	c := &cobra.Command{
		Use:   "darshan LOG...",
		Short: "Print Darshan I/O logs, as JSON or counter by counter",
		Long: "One JSON document a line and log: the job, its mounts, modules, files with what went through each\n" +
			"interface, and derived figures. With --counters, the tab-separated lines of darshan-parser. A log that\n" +
			"cannot be read is named on standard error with the place of the damage; the others are " +
			"printed, and the\n" +
			"exit code is 2 at the end. Times are seconds since the job's start, sizes bytes. \"-\" reads standard " +
			"input.",
		Example: "  fairway darshan job.darshan\n  fairway darshan --counters job.darshan | grep POSIX_BYTES",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(darshanMemory))
			show := darshanJSON
			if counters {
				show = darshanCounters
			}
			return darshanLogs(cmd, args, show)
		},
	}
	c.Flags().BoolVar(&counters, "counters", false, "print every counter, as darshan-parser does")
	return c
}

// darshanShow prints one log.
type darshanShow func(out io.Writer, name string, in io.ReaderAt, size int64) error

func darshanCounters(out io.Writer, _ string, in io.ReaderAt, size int64) error {
	r, err := darshan.NewReader(in, size)
	if err != nil {
		return err
	}
	return darshan.PrintCounters(out, r)
}

// darshanLogs reads the logs side by side and prints them in order.
func darshanLogs(cmd *cobra.Command, names []string, show darshanShow) error {
	ctx, stop := context.WithCancelCause(cmd.Context())
	defer stop(nil)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	turn := make(chan struct{})
	close(turn)
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		failed int
	)
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		if isLarge(name) {
			all.Wait()
		}
		next := make(chan struct{})
		out := &turnWriter{out: cmd.OutOrStdout(), turn: turn}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			defer close(next)
			err := darshanLog(ctx, cmd, out, name, show)
			// Whatever was understood is printed before the complaint.
			if writeErr := out.finish(); writeErr != nil {
				stop(fmt.Errorf("writing: %w", writeErr))
				return
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed++
				fmt.Fprintf(cmd.ErrOrStderr(), "fairway: %s: %v\n", name, err)
			}
		})
		turn = next
		if isLarge(name) {
			all.Wait()
		}
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if failed > 0 {
		return program.BadUsage(fmt.Errorf(
			"%d of %d logs could not be read, or not wholly (named above); the rest is printed", failed, len(names)))
	}
	return nil
}

func isLarge(name string) bool {
	if name == "-" {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && info.Size() >= largeLog
}

func darshanLog(ctx context.Context, cmd *cobra.Command, out io.Writer, name string, show darshanShow) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if name == "-" {
		b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxStdin+1))
		if err == nil && len(b) > maxStdin {
			err = fmt.Errorf("over %d bytes on standard input; name the file", maxStdin)
		}
		if err != nil {
			return err
		}
		return show(out, name, bytes.NewReader(b), int64(len(b)))
	}
	f, err := os.Open(name)
	if err != nil {
		return bare(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return bare(err)
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return show(out, name, f, info.Size())
}

// bare takes the file's name out of an error that is printed behind it.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// turnWriter holds back what is written until the logs before are printed.
type turnWriter struct {
	out  io.Writer
	turn <-chan struct{}
	buf  []byte
	mine bool
	err  error // of the output, which is not the log's fault
}

func (w *turnWriter) Write(p []byte) (int, error) {
	if !w.mine {
		select {
		case <-w.turn:
			w.mine = true
		default:
			if len(w.buf)+len(p) <= aheadBytes {
				w.buf = append(w.buf, p...)
				return len(p), nil
			}
			<-w.turn
			w.mine = true
		}
	}
	if err := w.flush(); err != nil {
		return 0, err
	}
	var n int
	n, w.err = w.out.Write(p)
	return n, w.err
}

func (w *turnWriter) flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.out.Write(w.buf)
		w.buf = nil
	}
	return w.err
}

// finish waits for the turn and writes what is left.
func (w *turnWriter) finish() error {
	<-w.turn
	w.mine = true
	return w.flush()
}
