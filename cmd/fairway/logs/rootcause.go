package logs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"fairway/anomaly/rootcause"
	"fairway/cmd/program"
	"fairway/tsdb/history/iolog"
	"fairway/tsdb/history/logread"
	"fairway/webui/api"
)

// newRootcause is `fairway rootcause`: why a job's I/O was slow, from its log, with no daemon.
func newRootcause() *cobra.Command {
	var op string
	var paper bool
	var record lmtFlags
	c := &cobra.Command{
		Use:   "rootcause JOB.darshan | INTERVALS.json",
		Short: "Explain a job's I/O time: critical files, contributing factors and a verdict",
		Long: "The critical path and contributing factors of IOMiner (Wang et al., section II-D): the sweep line.\n" +
			"Reads a Darshan log, or " +
			"{\"files\":[{\"name\",\"start\",\"end\",\"bytes\",\"small\",\"nonconsec\",\"collective\",\n" +
			"\"procs\",\"osts\"}]} (seconds, bytes, shares from 0 to 1, counts; osts may also list the targets), and " +
			"prints\n" +
			"the critical path, the five factors weighted by exclusive time and the verdict as JSON. Of a log, --op " +
			"says\n" +
			"which direction is explained; with both, every file has an interval for each. With --lmt the verdict " +
			"says what\n" +
			"the storage targets did meanwhile, for everybody. \"-\" reads standard input.",
		Example: "  fairway rootcause --op write job.darshan\n" +
			"  fairway rootcause --lmt lmt.sqlite3 --zone America/Los_Angeles --mount /global/cscratch1=snx11168 " +
			"job.darshan\n" +
			`  echo '{"files":[{"name":"out.h5","start":0,"end":10,"bytes":7e9,"small":0.1}]}' | fairway rootcause -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := readRootcause(cmd, args[0], rootcause.Op(op), &record)
			if err != nil {
				return program.BadUsage(err)
			}
			if paper {
				job.TakeSpans()
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			answer := rootcause.Explain(job, rootcause.Defaults())
			if err := json.NewEncoder(out).Encode(&answer); err != nil {
				return err
			}
			return out.Flush()
		},
	}
	c.Flags().StringVar(&op, "op", string(rootcause.Both), "of a Darshan log: read, write or both")
	c.Flags().BoolVar(&paper, "paper", false, "take a file to be in I/O from its first access to its last, as "+
		"IOMiner does")
	record.add(c)
	return c
}

// maxIntervals bounds what is held of standard input, bytes.
const maxIntervals = 1 << 30

// readRootcause reads a job from a file of intervals, which begins with a brace, or from a log.
func readRootcause(cmd *cobra.Command, name string, op rootcause.Op, record *lmtFlags) (rootcause.Job, error) {
	if op != rootcause.Read && op != rootcause.Write && op != rootcause.Both {
		return rootcause.Job{}, fmt.Errorf("%w: --op %q; there are read, write and both", api.ErrInvalid, op)
	}
	mounts, err := record.parsed()
	if err != nil {
		return rootcause.Job{}, err
	}
	in, size, done, err := openSeekable(cmd, name, maxIntervals)
	if err != nil {
		return rootcause.Job{}, fmt.Errorf("%s: %w", name, err)
	}
	defer done()
	content := io.NewSectionReader(in, 0, size)
	head := make([]byte, min(64, content.Size()))
	if _, err := content.ReadAt(head, 0); err != nil && err != io.EOF {
		return rootcause.Job{}, fmt.Errorf("%s: %w", name, err)
	}
	if text := bytes.TrimLeft(head, " \t\r\n"); len(text) == 0 || text[0] == '{' || text[0] == '[' {
		if len(record.files) > 0 {
			return rootcause.Job{},
				fmt.Errorf("%s: --lmt needs a Darshan log: intervals do not say on which day they were", name)
		}
		job, err := rootcause.ReadJob(content)
		if err != nil {
			return job, fmt.Errorf("%s: %w", name, err)
		}
		return job, nil
	}
	l, err := logread.Read(content, 0, logread.Options{})
	if err != nil {
		if errors.Is(err, iolog.ErrNotALog) {
			return rootcause.Job{}, fmt.Errorf("%s: neither a Darshan log nor a JSON object of intervals", name)
		}
		return rootcause.Job{}, fmt.Errorf("%s: a Darshan log that cannot be read: %w", name, err)
	}
	if len(l.Jobs) == 0 {
		return rootcause.Job{}, fmt.Errorf("%s: a %s file has no files of a job", name, l.Kind)
	}
	if l.Problem != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "fairway: %s: read in part: %s\n", name, l.Problem)
	}
	names := map[int64]string{}
	for _, f := range l.Files {
		names[f.ID] = f.Path
	}
	job := rootcause.FromLog(&l.Jobs[0], l.JobFiles, names, op)
	job.Mounts = mounts
	if len(record.files) == 0 {
		return job, nil
	}
	err = record.addRecord(cmd, &job, l)
	return job, err
}
