//go:build cgo

package iologs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/program"
	"fairway/collector/escape"
	"fairway/collector/topology"
	"fairway/tsdb/history/archive"
	"fairway/tsdb/history/iolog"
	"fairway/webui/access/hostuser"
)

// archiveDir is the named archive, or the configured daemon's.
func archiveDir(named, path string) (string, error) {
	if named != "" {
		return named, nil
	}
	c, err := config.File.Load(path)
	if err != nil {
		return "", err
	}
	return filepath.Join(c.StateDir, "archive"), nil
}

// askCommand answers one question to the archive for the daemon, which starts it.
const askCommand = "answer-archive"

// Answer is what the daemon starts of its own program for a question.
func Answer() *cobra.Command {
	return &cobra.Command{
		Use: askCommand, Hidden: true, Args: cobra.NoArgs, Short: "Answer a question of the daemon to the archive",
		RunE: func(c *cobra.Command, _ []string) error {
			return archive.Answer(c.Context(), c.InOrStdin(), program.Raw(c.OutOrStdout()))
		},
	}
}

// Import is fairwayd import.
func Import(path *string) *cobra.Command {
	var dir, zone string
	var asJSON, trust bool
	im := archive.Importer{UserOf: func(uid int64) string {
		u, err := hostuser.UserOf(uint32(uid))
		if err != nil || uid != int64(uint32(uid)) {
			return ""
		}
		return u.Username
	}}
	c := &cobra.Command{
		Use:   "import PATH...",
		Short: "Read I/O logs into the archive, each once",
		Long: "Reads every Darshan log, Slurm accounting file and LMT file below the paths into the archive (Parquet " +
			"by day).\n" +
			"What was read before is passed over; what cannot be read is listed and does not stop the rest. It\n" +
			"may be killed at any point and started again. The daemon may run.\n" +
			"A Darshan log is its user's where that user owns the file; others decide nothing and are on no job's\n" +
			"page. --trust-owner takes copies that root owns for their users'; the table read keeps who does so.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if im.Dir, err = archiveDir(dir, *path); err != nil {
				return err
			}
			if im.Read, err = readLog(zone); err != nil {
				return program.BadUsage(err)
			}
			if trust {
				im.TrustedBy = cmp.Or(im.UserOf(int64(os.Getuid())), fmt.Sprint("uid", os.Getuid()))
			}
			im.Progress = progressTo(program.Raw(c.ErrOrStderr()), program.IsTerminal(os.Stderr))
			for _, path := range args {
				if _, err := os.Stat(path); err != nil {
					return program.BadUsage(err)
				}
			}
			report, err := im.Import(c.Context(), args...)
			if errors.Is(err, archive.ErrBusy) {
				return err
			}
			return errors.Join(printReport(c.OutOrStdout(), report, asJSON), err)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the archive (default: of the configured daemon)")
	c.Flags().StringVar(&zone, "zone", "UTC", "where the times of Slurm's and LMT's files are that name no zone")
	c.Flags().BoolVar(&im.Retry, "retry", false, "also read logs again that could not be read before")
	c.Flags().BoolVar(&trust, "trust-owner", false, "take the logs for their users' whoever owns the files")
	c.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return c
}

// progressTo shows how far an import is: once a second on a terminal, every ten seconds elsewhere.
func progressTo(w io.Writer, terminal bool) func(archive.Progress) {
	every, end := 10*time.Second, "\n"
	if terminal {
		every, end = time.Second, "   \r"
	}
	shown := time.Duration(0)
	return func(p archive.Progress) {
		last := p.Files == p.TotalFiles
		if p.Elapsed-shown < every && !(last && shown > 0) {
			return
		}
		shown = p.Elapsed
		if last && terminal {
			end = "   \n"
		}
		fmt.Fprintf(w, "%d of %d files, %.1f of %.1f MB, %s left%s", p.Files, p.TotalFiles, float64(p.Bytes)/1e6,
			float64(p.TotalBytes)/1e6, p.Left().Round(time.Second), end)
	}
}

// shownBad is how many bad logs are printed; all are in the archive.
const shownBad = 20

func printReport(w io.Writer, r archive.Report, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(program.Raw(w)).Encode(r)
	}
	fmt.Fprintf(w, "%d files: %d read, %d known, %d no logs, %d bad; %d rows in %.1f s\n", r.Files, r.Imported, r.Known,
		r.Skipped, len(r.Bad), r.Rows, r.Seconds)
	for i, b := range r.Bad {
		if i == shownBad {
			fmt.Fprintf(w, "and %d more: fairwayd query bad-logs\n", len(r.Bad)-i)
			break
		}
		fmt.Fprintf(w, "bad: %s: %s\n", topology.Clean(b.Path), topology.Clean(b.Problem))
	}
	return nil
}

// Query is fairwayd query.
func Query(path *string) *cobra.Command {
	var dir string
	var asJSON, asCSV bool
	c := &cobra.Command{
		Use:   "query [NAME [parameter=value...] | SQL]",
		Short: "Ask the archive: a named analysis, or SQL; without arguments, list the analyses",
		Example: "  fairwayd query top-apps op=write n=5\n  fairwayd query 'SELECT app, count(*) FROM job GROUP BY " +
			"app'",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return iolog.WriteAnalyses(c.OutOrStdout())
			}
			q, err := iolog.ParseQuestion(args)
			if err != nil {
				return program.BadUsage(err)
			}
			dir, err := archiveDir(dir, *path)
			if err != nil {
				return err
			}
			if _, err := os.Stat(dir); err != nil {
				return fmt.Errorf("no archive: %w (fairwayd import makes one)", err)
			}
			res, err := archive.Ask(c.Context(), dir, q, 0)
			switch {
			case errors.Is(err, iolog.ErrQuery):
				return program.BadUsage(err)
			case err != nil:
				return err
			case asJSON:
				return json.NewEncoder(program.Raw(c.OutOrStdout())).Encode(res)
			case asCSV:
				return escape.WriteCSV(c.OutOrStdout(), res.Texts())
			}
			return res.WriteTable(c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the archive (default: of the configured daemon)")
	c.Flags().BoolVar(&asJSON, "json", false, "answer as JSON")
	c.Flags().BoolVar(&asCSV, "csv", false, "answer as CSV")
	return c
}
