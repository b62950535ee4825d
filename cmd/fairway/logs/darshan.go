package logs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"fairway/collector/logs/darshan"
)

// darshanMemory is the memory that reading logs may take; beyond it the collector of garbage works harder rather than
// the process growing.
const darshanMemory = 200 << 20

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
			return eachInput(cmd, cmd.OutOrStdout(), args, "logs", func(name string, w *bufio.Writer) error {
				if name == "-" {
					b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxHeld+1))
					if err == nil && len(b) > maxHeld {
						err = fmt.Errorf("over %d bytes on standard input; name the file", maxHeld)
					}
					if err != nil {
						return err
					}
					return show(w, name, bytes.NewReader(b), int64(len(b))) // a damaged one is shown up to there
				}
				f, err := os.Open(name)
				if err != nil {
					return err
				}
				defer f.Close()
				info, err := f.Stat()
				switch {
				case err != nil:
					return err
				case !info.Mode().IsRegular():
					return errors.New("not a regular file")
				}
				return show(w, name, f, info.Size())
			})
		},
	}
	c.Flags().BoolVar(&counters, "counters", false, "print every counter, as darshan-parser does")
	return c
}

func darshanCounters(out *bufio.Writer, _ string, in io.ReaderAt, size int64) error {
	r, err := darshan.NewReader(in, size)
	if err != nil {
		return err
	}
	return darshan.PrintCounters(out, r)
}
