package hook

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/program"
	"fairway/collector/pace"
	"fairway/remap/window"
)

// newWindow keeps a job's I/O to its window.
func newWindow(o *cli.Options) *cobra.Command {
	var text string
	var most time.Duration
	c := &cobra.Command{
		Use: "window", Short: "Keep a job's I/O to the window that it was given",
		Args: cobra.NoArgs,
	}
	wait := &cobra.Command{
		Use: "wait", Short: "Return when the job's I/O window is open; at once if it has none",
		Long: "A script calls it before its I/O. The window is in " + window.Env +
			", which the job's prologue sets where " +
			"the\nsite gives windows (docs/periodic.md): the pattern's length, when one began, and the open " +
			"intervals,\nor a file that holds them, which changes when other jobs start and end.\n" +
			"It returns at once while half or more of an interval is left, otherwise when the next one opens. A " +
			"window\n" +
			"that cannot be read is named on standard error, and the job goes on without it.",
		Example: "  sleep 60; fairway window wait; cp checkpoint /scratch",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := readWindow(text)
			if err != nil {
				goOn(c, err)
			}
			if err != nil || w.Every == 0 {
				return nil
			}
			pace.Wait(c.Context(), min(most, w.Wait(time.Now())))
			return c.Context().Err()
		},
	}
	f := wait.Flags()
	f.StringVar(&text, "window", os.Getenv(window.Env), "the window; the environment's without it")
	f.DurationVar(&most, "at-most", time.Hour, "longest that the job waits")
	show := &cobra.Command{
		Use: "show", Short: "Print the job's I/O window in words, and how long until it is open",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := readWindow(os.Getenv(window.Env))
			if err == nil && w.Every == 0 {
				err = fmt.Errorf("%s: the job has no window", window.Env)
			}
			if err != nil {
				return program.BadUsage(err)
			}
			if o.JSON {
				return cli.PrintJSON(c.OutOrStdout(), map[string]any{"window": w.String(), "words": w.Words(),
					"open_in_seconds": w.Wait(time.Now()).Seconds()})
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s; open in %.1f s\n", w.Words(), w.Wait(time.Now()).Seconds())
			return err
		},
	}
	c.AddCommand(wait, show)
	return c
}

// maxWindow bounds a window's file, bytes.
const maxWindow = 64 << 10

// readWindow reads a window of the environment: its text, or the path of a file that has it now. Nothing, or an empty
// file, means that the job has none.
func readWindow(text string) (window.Window, error) {
	if strings.HasPrefix(text, "/") {
		f, err := os.Open(text)
		if err != nil {
			return window.Window{}, err
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxWindow))
		if err != nil {
			return window.Window{}, err
		}
		text = string(b)
	}
	if text = strings.TrimSpace(text); text == "" {
		return window.Window{}, nil
	}
	return window.Parse(text)
}
