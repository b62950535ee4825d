package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/collector/escape"
	"fairway/tsdb/history/iolog"
	"fairway/webui/api"
	"fairway/webui/client"
)

// newQuery is `fairway query`: questions to the daemon's I/O-log archive, or to one in a directory.
func newQuery(o *cli.Options) *cobra.Command {
	var dir string
	var asCSV bool
	c := &cobra.Command{
		Use:   "query [NAME [parameter=value...] | SQL]",
		Short: "Ask the I/O-log archive: a named analysis, or SQL; without arguments, list the analyses",
		Long: "The analyses are those of IOMiner (Wang et al., section III). Asks the daemon. With --dir it asks " +
			"the archive in that directory, by the fairwayd installed beside it.",
		Example: "  fairway query top-apps op=write n=5\n  fairway query 'SELECT app, count(*) FROM job GROUP BY app'",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && o.JSON {
				return cli.PrintJSON(c.OutOrStdout(), iolog.Analyses)
			}
			if len(args) == 0 {
				return iolog.WriteAnalyses(c.OutOrStdout())
			}
			q, err := iolog.ParseQuestion(args)
			if err != nil {
				return program.BadUsage(err)
			}
			if dir != "" {
				return becomeDaemon("query", o.JSON, asCSV, append([]string{"--dir", dir, "--"}, args...))
			}
			return cli.Show(o, c, func(ctx context.Context, cl *client.Client) (iolog.Result, error) {
				return cl.Ask(ctx, q)
			}, func(w io.Writer, res iolog.Result) error {
				if asCSV {
					return escape.WriteCSV(w, res.Texts())
				}
				return res.WriteTable(w)
			})
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "ask the archive in this directory, without a daemon")
	c.Flags().BoolVar(&asCSV, "csv", false, "answer as CSV")
	return c
}

// newImport is `fairway import`: it becomes the fairwayd beside it, which alone carries the archive.
func newImport(o *cli.Options) *cobra.Command {
	var dir, zone string
	var retry bool
	c := &cobra.Command{
		Use:   "import PATH...",
		Short: "Read I/O logs (Darshan, Slurm, LMT) into the archive, each once",
		Long: "Runs the fairwayd installed beside this command: it reads every log below the paths that was not " +
			"read\n" +
			"before, lists what cannot be read, and may be killed and started again at any point. This is IOMiner's\n" +
			"init_stores (Wang et al., Algorithm 1).",
		Example: "  fairway import /var/log/darshan /var/log/slurm/sacct-2026-11.txt.gz\n  fairway import --dir " +
			"./archive --zone Europe/Berlin .",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var flags []string
			if dir != "" {
				flags = append(flags, "--dir", dir)
			}
			if zone != "" {
				flags = append(flags, "--zone", zone)
			}
			if retry {
				flags = append(flags, "--retry")
			}
			return becomeDaemon("import", o.JSON, false, append(append(flags, "--"), args...))
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the archive (default: of the configured daemon)")
	c.Flags().StringVar(&zone, "zone", "",
		"where the times of Slurm's and LMT's files are that name no zone (default UTC)")
	c.Flags().BoolVar(&retry, "retry", false, "also read logs again that could not be read before")
	return c
}

// becomeDaemon replaces this process by a fairwayd command; it returns only when it cannot.
func becomeDaemon(command string, asJSON, asCSV bool, args []string) error {
	path, err := besideOrInPath("fairwayd")
	if err != nil {
		return err
	}
	argv := []string{path, command}
	if asJSON {
		argv = append(argv, "--json")
	}
	if asCSV {
		argv = append(argv, "--csv")
	}
	if err := syscall.Exec(path, append(argv, args...), os.Environ()); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return errors.New("BUG: exec returned")
}

func besideOrInPath(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "",
			fmt.Errorf(
				"%w: no %s beside this command or in PATH: it carries the archive; run this where the daemon is "+
					"installed", api.ErrNotFound, name)
	}
	return path, nil
}
