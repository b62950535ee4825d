package hook

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

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
			r, _, err := knownJob(os.Getenv, g)
			var lines []string
			if err == nil {
				lines, err = g.readEnv(r.Job)
			}
			if err != nil && (g.envDir == "" || !errors.Is(err, fs.ErrNotExist)) {
				goOn(c, err)
				return nil
			}
			for _, line := range lines {
				if name, _, _ := strings.Cut(line, "="); name == hintsEnv && os.Getenv(name) != "" {
					continue // the user's own count
				}
				fmt.Fprintf(c.OutOrStdout(), "export %s\n", line)
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

// windowFile is where a job's window is: the environment names it, for its text changes while the job runs.
func (g *given) windowFile(id topology.JobID) string {
	return strings.TrimSuffix(g.envFile(id), ".env") + ".window"
}

// writeWindows leaves the windows of running jobs; an empty one ends. A newer one, that the hook of a later job left
// meanwhile, stays.
func (g *given) writeWindows(windows map[topology.JobID]string) error {
	if g.envDir == "" {
		return nil
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(windows)) {
		path := g.windowFile(id)
		left, err := readWindow(path)
		if w, bad := readWindow(windows[id]); err == nil && bad == nil && left.From.After(w.From) && w.Every > 0 {
			continue
		}
		err = replaceFile(path, windows[id]+"\n")
		if err != nil {
			err = fmt.Errorf("job %s: its window: %w", id, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// writeEnv leaves what a job's environment is to have, if there is something and a folder for it.
func (g *given) writeEnv(a *dispatch.Answer) error {
	if g.envDir == "" {
		return nil
	}
	if _, err := ownerOf(g.envDir); err != nil {
		return fmt.Errorf("job %s: --env-dir: %w", a.Job, err)
	}
	text := ""
	if a.Windows != nil { // a job may turn out to be periodic, and get its window, while it runs
		file, err := filepath.Abs(g.windowFile(a.Job))
		if err != nil {
			return err
		}
		own := ""
		if a.Window != nil {
			own = a.Window.Text
		}
		if err := g.writeWindows(map[topology.JobID]string{a.Job: own}); err != nil {
			return err
		}
		text = window.Env + "=" + file + "\n"
	}
	if a.Hints != nil && len(a.Hints.Hints) > 0 {
		file, err := filepath.Abs(g.hintsFile(a.Job))
		if err != nil {
			return err
		}
		if err := replaceFile(file, a.Hints.File()); err != nil {
			return fmt.Errorf("job %s: its ROMIO hints: %w", a.Job, err)
		}
		text += hintsEnv + "=" + file + "\n"
	}
	if text == "" {
		return nil
	}
	if err := replaceFile(g.envFile(a.Job), text); err != nil {
		return fmt.Errorf("job %s: its environment: %w", a.Job, err)
	}
	return nil
}

// replaceFile writes a file of which a node reads all or nothing. It follows no link that somebody left there, and
// hooks of several jobs may write it at once. Nothing waits for a disk: a job's start does, and the file is its alone.
func replaceFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// maxEnv bounds a file of a job's environment.
const maxEnv = 64 << 10

// readEnv reads what a job's environment is to have: of a file that whoever has the folder wrote, the names
// that hooks write.
func (g *given) readEnv(id topology.JobID) (lines []string, err error) {
	owner, err := ownerOf(g.envDir)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(g.envFile(id), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || st.Uid != 0 && st.Uid != owner {
		return nil, fmt.Errorf("%s: mode %s, uid %d: want a file that nobody but root or uid %d can write", f.Name(),
			info.Mode(), st.Uid, owner)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxEnv))
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, _, _ := strings.Cut(line, "="); (name == window.Env || name == hintsEnv) && topology.CleanName(line) {
			lines = append(lines, line)
		}
	}
	return lines, err
}

// ownerOf is who owns a folder that nobody else can write to.
func ownerOf(dir string) (uid uint32, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return 0, fmt.Errorf("%s: mode %s: want a folder that its owner alone can write to", dir, info.Mode())
	}
	return st.Uid, nil
}

// removeEnv forgets what was left for a job.
func (g *given) removeEnv(id topology.JobID) error {
	if g.envDir == "" {
		return nil
	}
	var errs []error
	for _, file := range []string{g.envFile(id), g.hintsFile(id), g.windowFile(id)} {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
