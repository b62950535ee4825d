package logs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/collector/logs/lmt"
	"fairway/collector/logs/slurm"
)

// zoneFlag reads a time zone: a name of the zone database, "Local", or an offset as +08:00.
func zoneFlag(name string) (*time.Location, error) {
	if t, err := time.Parse("-07:00", name); err == nil {
		return t.Location(), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil,
			program.BadUsage(fmt.Errorf(
				"--zone %q: %w (want a name such as Asia/Shanghai, Local, or an offset such as +08:00)", name, err))
	}
	return zone, nil
}

// newSacct is `fairway sacct`: what the Slurm readers understand.
func newSacct() *cobra.Command {
	var zone string
	c := &cobra.Command{
		Use:   "sacct FILE...",
		Short: "Print what is understood of Slurm's job records, as JSON lines",
		Long: "A line for each job and step of `sacct -P` (with a header line, or in XDMoD's order of fields), of\n" +
			"`sacct --json`, `squeue --json` and slurmrestd of every version since 21.08, and of `scontrol " +
			"show job`.\n" +
			"Node lists are expanded. Files may be compressed by gzip; \"-\" reads standard input.",
		Example: "  sacct -P -o JobID,User,Account,State,Start,End,NNodes,NodeList,JobName | fairway sacct --zone " +
			"Europe/Berlin -",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := zoneFlag(zone)
			if err != nil {
				return err
			}
			return jsonLines(cmd, args, func(name string, emit func(any) error) error {
				in, err := cli.OpenInput(cmd, name)
				if err != nil {
					return err
				}
				defer in.Close()
				return slurm.Read(in, slurm.Options{Zone: at}, func(j *slurm.Job) error { return emit(j) })
			})
		},
	}
	c.Flags().StringVar(&zone, "zone", "Local",
		"time zone of times without one: that of the machine on which sacct ran")
	return c
}

// newLMT is `fairway lmt`: what the LMT readers understand.
func newLMT() *cobra.Command {
	var zone string
	var interval time.Duration
	c := &cobra.Command{
		Use:   "lmt FILE...",
		Short: "Print what is understood of Lustre Monitoring Tool records, as JSON lines",
		Long: "A line for each reading of a target: an LMT database as SQLite file, its rows as CSV or tab-separated " +
			"text\n" +
			"with a header line (OST_NAME, TIMESTAMP, READ_BYTES, WRITE_BYTES, ...), or cerebro strings (\"ost: " +
			"2;...\").\n" +
			"LMT counts since a target's mount; \"delta\" is what happened since the reading before, with gaps and " +
			"resets\n" +
			"marked. Sizes are bytes. \"-\" reads standard input.",
		Example: "  fairway lmt --zone America/Los_Angeles lmt.sqlite3",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := zoneFlag(zone)
			if err != nil {
				return err
			}
			if interval <= 0 {
				return program.BadUsage(fmt.Errorf("--interval %s is not a time between readings", interval))
			}
			return jsonLines(cmd, args, func(name string, emit func(any) error) error {
				in, size, done, err := openSeekable(cmd, name, maxHeld)
				if err != nil {
					return err
				}
				defer done()
				return lmt.Read(in, size, lmt.Options{Zone: at, Interval: interval},
					func(r *lmt.Reading) error { return emit(r) })
			})
		},
	}
	c.Flags().StringVar(&zone, "zone", "Local", "time zone of the database server, in which rows are written")
	c.Flags().DurationVar(&interval, "interval", 5*time.Second,
		"time between readings; a longer one is marked as a gap")
	return c
}

// jsonLines reads the named files one after the other and prints a line of JSON for all that read gives it.
func jsonLines(cmd *cobra.Command, names []string, read func(name string, emit func(any) error) error) error {
	return eachInput(cmd, program.Raw(cmd.OutOrStdout()), names, "files", func(name string, w *bufio.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return read(name, func(v any) error { return errors.Join(cmd.Context().Err(), e.Encode(v)) })
	})
}

// eachInput has the named files read and printed one after the other. Bad files and lines are reported on standard
// error and do not stop the rest; the error at the end has the code for bad input.
func eachInput(cmd *cobra.Command, out io.Writer, names []string, what string,
	show func(name string, w *bufio.Writer) error) error {
	w := bufio.NewWriterSize(out, 64<<10)
	failed := 0
	for _, name := range names {
		err := show(name, w)
		if broken := errors.Join(cmd.Context().Err(), w.Flush()); broken != nil { // the writer keeps its first error
			return fmt.Errorf("writing: %w", broken)
		}
		if err != nil {
			text := strings.TrimPrefix(program.Wording(fmt.Errorf("%s: %w", name, err)), name+": ")
			fmt.Fprintf(cmd.ErrOrStderr(), "fairway: %s: %s\n", name,
				strings.ReplaceAll(text, "\n", "\nfairway: "+name+": "))
			failed++
		}
	}
	if failed > 0 {
		return program.BadUsage(fmt.Errorf("%d of %d %s could not be read, or not wholly (named above); the rest is "+
			"printed", failed, len(names), what))
	}
	return nil
}

// openSeekable opens a file for reading at any place. Standard input and compressed files are held in memory, at most
// most bytes of them.
func openSeekable(cmd *cobra.Command, name string, most int64) (in io.ReaderAt, size int64, done func(), err error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, 0, nil, err
		}
		info, err := f.Stat()
		if err == nil && info.Mode().IsRegular() && !cli.IsGzip(f) {
			return f, info.Size(), func() { f.Close() }, nil
		}
		f.Close()
	}
	r, err := cli.OpenInput(cmd, name)
	if err != nil {
		return nil, 0, nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("over %d bytes; give it as a file that is not compressed", most)
	}
	return bytes.NewReader(b), int64(len(b)), func() {}, err
}

// maxHeld bounds an input that has to be held in memory.
const maxHeld = 64 << 20
