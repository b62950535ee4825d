package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/remap/window"
)

// newHookEnv is what a batch system calls on the nodes for a job's environment.
func newHookEnv(g *given) *cobra.Command {
	c := &cobra.Command{
		Use: "env", Short: "Print what a job's environment is to have, as Slurm's TaskProlog wants it",
		Long: "Reads what 'hook dispatch --env-dir' wrote for the job, and asks nobody. It prints nothing for a job\n" +
			"of which there is nothing, and always exits with 0.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, _ := knownJob(os.Getenv, g)
			text, err := os.ReadFile(g.envFile(r.Job))
			if err != nil {
				if g.envDir == "" || r.Job == "" || !errors.Is(err, fs.ErrNotExist) {
					fmt.Fprintf(c.ErrOrStderr(), "fairway hook env: %v (the job goes on without it)\n", err)
				}
				return nil
			}
			for line := range strings.Lines(string(text)) {
				if name, _, _ := strings.Cut(line, "="); name == hintsEnv && os.Getenv(name) != "" {
					continue // the user's own count
				}
				fmt.Fprintf(c.OutOrStdout(), "export %s\n", strings.TrimSpace(line))
			}
			return nil
		},
	}
	c.Flags().StringVar(&g.envDir, "env-dir", "", "folder of hook dispatch")
	return c
}

// envFile is where a job's environment is; its name cannot leave the folder.
func (g *given) envFile(id topology.JobID) string {
	return filepath.Join(g.envDir, "job."+strings.ReplaceAll(string(id), "/", "_")+".env")
}

// hintsEnv is where ROMIO looks for the name of a file with hints; an application's own hints count before it.
const hintsEnv = "ROMIO_HINTS"

// hintsFile is where a job's hints are.
func (g *given) hintsFile(id topology.JobID) string {
	return strings.TrimSuffix(g.envFile(id), ".env") + ".romio"
}

// writeEnv leaves what a job's environment is to have, if there is something and a folder for it.
func (g *given) writeEnv(a *dispatch.Answer) error {
	if g.envDir == "" {
		return nil
	}
	text := ""
	if a.Window != nil {
		text = window.Env + "=" + a.Window.Text + "\n"
	}
	if a.Hints != nil && len(a.Hints.Hints) > 0 {
		file, err := filepath.Abs(g.hintsFile(a.Job))
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(a.Hints.File()), 0o644); err != nil {
			return fmt.Errorf("job %s: its ROMIO hints: %w", a.Job, err)
		}
		text += hintsEnv + "=" + file + "\n"
	}
	if text == "" {
		return nil
	}
	file := g.envFile(a.Job)
	// A node reads all of it or nothing.
	if err := os.WriteFile(file+".new", []byte(text), 0o644); err != nil {
		return fmt.Errorf("job %s: its environment: %w", a.Job, err)
	}
	return os.Rename(file+".new", file)
}

// removeEnv forgets an ended job's.
func (g *given) removeEnv(id topology.JobID) error {
	if g.envDir == "" {
		return nil
	}
	var errs []error
	for _, file := range []string{g.envFile(id), g.hintsFile(id)} {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
