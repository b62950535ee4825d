//go:build cgo

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	"fairway/collector/escape"
	"fairway/collector/topology"
	"fairway/tsdb/history/archive"
	"fairway/tsdb/history/iolog"
	"fairway/webui"
	"fairway/webui/access/budget"
	"fairway/webui/access/hostuser"
)

// archiveDir is the named archive, or the configured daemon's.
func archiveDir(named, config string) (string, error) {
	if named != "" {
		return named, nil
	}
	c, err := settings.Load(config)
	if err != nil {
		return "", err
	}
	return filepath.Join(c.StateDir, "archive"), nil
}

// backUpArchive copies the archive in from to the new directory to.
func backUpArchive(ctx context.Context, from, to string) error { return archive.Backup(ctx, from, to) }

// forgetDays takes the days that ended before a time out of the archive in dir; while an import runs it takes none.
func forgetDays(dir string, before time.Time) (days int, err error) {
	if days, err = archive.Forget(dir, before); errors.Is(err, archive.ErrBusy) {
		err = nil
	}
	return days, err
}

// archiveOf answers questions about the daemon's own archive.
func archiveOf(c *Config) webui.Archive {
	all := budget.Defaults()
	limits := archive.Limits{MemoryBytes: all.ArchiveBytes, AnswerBytes: all.AnswerBytes}
	var child []string
	if self != "" {
		child = []string{self, askCommand}
	}
	return archive.NewReader(filepath.Join(c.StateDir, "archive"), limits, child)
}

// askCommand answers one question to the archive for the daemon, which starts it.
const askCommand = "answer-archive"

func newAnswer() *cobra.Command {
	return &cobra.Command{
		Use: askCommand, Hidden: true, Args: cobra.NoArgs, Short: "Answer a question of the daemon to the archive",
		RunE: func(c *cobra.Command, _ []string) error {
			return archive.Answer(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
}

// keepForwarders copies the forwarders' days into the archive until ctx ends.
func (d *daemon) keepForwarders(ctx context.Context) {
	archive.Keep(ctx, filepath.Join(d.conf.StateDir, "archive"), d.store, func(days int, err error) {
		if err != nil {
			d.log.Warn("the forwarders' seconds were not added to the archive; the next try is in an hour", "err", err)
			return
		}
		d.log.Info("forwarders' seconds added to the archive", "days", days)
	})
}

// archiveLookedAt is how often the archive is looked at for new logs: a few folders' times are read then.
const archiveLookedAt = time.Minute

// keepHistory adds the jobs that imports put into the archive to the history, until ctx ends.
func (d *daemon) keepHistory(ctx context.Context) {
	tick := time.NewTicker(archiveLookedAt)
	defer tick.Stop()
	for learned := ""; ; {
		learned = d.learn(ctx, learned)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// learn adds the archive's runs to the history if it is not in the state that was learned before, and
// returns the state that is.
func (d *daemon) learn(ctx context.Context, before string) string {
	dir := filepath.Join(d.conf.StateDir, "archive")
	now := archive.State(dir)
	if now == before {
		return before
	}
	sum, err := d.history.Import(ctx, d.conf.Keep.remembered(archive.Runs(ctx, dir, d.forwardersOf), time.Now()))
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn("the history did not take all runs of the archive; it is tried again", "err", err)
		}
		return before
	}
	for _, bad := range sum.Errors {
		d.log.Warn("a run of the archive is not taken into the history", "err", bad)
	}
	d.log.Info("runs of the archive added to the history", "runs", sum.Runs, "known", sum.Known, "refused", sum.Refused)
	return now
}

// forwardersOf counts the default forwarders of some nodes, 0 where one has none.
func (d *daemon) forwardersOf(nodes []topology.NodeID) int {
	of, mapping := map[topology.ForwarderID]bool{}, d.conf.machine().Default
	for _, n := range nodes {
		f, ok := mapping[n]
		if !ok {
			return 0
		}
		of[f] = true
	}
	return len(of)
}

func newImport(config *string) *cobra.Command {
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
			if im.Dir, err = archiveDir(dir, *config); err != nil {
				return err
			}
			if im.Read, err = readLog(zone); err != nil {
				return program.BadUsage(err)
			}
			if trust {
				im.TrustedBy = cmp.Or(im.UserOf(int64(os.Getuid())), fmt.Sprint("uid", os.Getuid()))
			}
			im.Progress = progressTo(c.ErrOrStderr(), program.IsTerminal(os.Stderr))
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
		return json.NewEncoder(w).Encode(r)
	}
	fmt.Fprintf(w, "%d files: %d read, %d known, %d no logs, %d bad; %d rows in %.1f s\n", r.Files, r.Imported, r.Known,
		r.Skipped, len(r.Bad), r.Rows, r.Seconds)
	for i, b := range r.Bad {
		if i == shownBad {
			fmt.Fprintf(w, "and %d more: fairwayd query bad-logs\n", len(r.Bad)-i)
			break
		}
		fmt.Fprintf(w, "bad: %s: %s\n", b.Path, b.Problem)
	}
	return nil
}

func newQuery(config *string) *cobra.Command {
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
			dir, err := archiveDir(dir, *config)
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
				return json.NewEncoder(c.OutOrStdout()).Encode(res)
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
