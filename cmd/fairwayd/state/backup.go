// Package state backs up, restores and shortens a state directory.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/fairwayd/iologs"
	"fairway/collector/appendlog"
	"fairway/remap/journal"
	"fairway/tsdb/engine"
)

// backupNote is the file that makes a directory a backup. It is written last, so that a copy that was cut
// short is not taken for one.
const backupNote = "backup.json"

// backupVersion grows when an older fairwayd could not restore the copy.
const backupVersion = 1

// backup is what the note says.
type backup struct {
	Version int       `json:"version"`
	By      string    `json:"by"`
	Site    string    `json:"site"`
	Store   string    `json:"store"` // its kind; the seconds of a server are not in the copy
	At      time.Time `json:"at"`
	// Files are the sizes of those that are copied as they were.
	Files map[string]int64 `json:"files"`
}

// appended are files of state_dir that only grow, in the order of copying: what an earlier one refers to is in the
// later ones.
var appended = []string{formatFile, "alerts", "detectors", "history", "journal"}

// Backup is fairwayd backup.
func Backup(path *string, version string) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy everything that the daemon keeps into a new directory, also while it runs",
		Long: "Copies store, journal, history, archive, the detectors' memory and what was alerted into DIR, which " +
			"must not\n" +
			"exist or be empty. The copy has everything that was acknowledged before the command; 'fairwayd restore " +
			"DIR'\n" +
			"makes a state directory of it. Seconds on a server (store.kind) are backed up there.",
		Args: cobra.ExactArgs(1),
		RunE: config.File.With(path, func(c *cobra.Command, args []string, conf *config.Config) error {
			note, err := backUp(c.Context(), conf, args[0], version, time.Now())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is copied to %s: %s\n", conf.StateDir, args[0], note.words())
			return err
		}),
	}
}

func (b *backup) words() string {
	words := fmt.Sprintf("%d bytes of journal, %d of history, the archive", b.Files["journal"], b.Files["history"])
	if b.Store == config.StoreEmbedded {
		return words + " and the store"
	}
	return fmt.Sprintf("%s; the seconds are on the server of the store (%s)", words, b.Store)
}

// backUp copies the state directory to dir.
func backUp(ctx context.Context, c *config.Config, dir, version string, now time.Time) (*backup, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("backup: %s is not empty; choose a new directory", dir)
	}
	if _, err := os.Stat(filepath.Join(c.StateDir, "journal")); err != nil {
		return nil, fmt.Errorf("backup: %s is not a state directory: %w", c.StateDir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { // the journal has names and reasons
		return nil, fmt.Errorf("backup: %w", err)
	}
	note := &backup{Version: backupVersion, By: version, Site: c.Name, Store: c.Store.Kind, At: now.UTC(),
		Files: map[string]int64{}}
	if err := iologs.Backup(ctx, filepath.Join(c.StateDir, "archive"), filepath.Join(dir, "archive")); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	copied := func(name string) error {
		n, err := copyPrefix(filepath.Join(c.StateDir, name), filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		note.Files[name] = n
		return nil
	}
	for _, name := range appended {
		if err := copied(name); err != nil {
			return nil, err
		}
	}
	segments, err := filepath.Glob(filepath.Join(c.StateDir, "journal.*.gz"))
	if err != nil {
		return nil, fmt.Errorf("backup: BUG: %w", err)
	}
	for _, path := range segments {
		if err := copied(filepath.Base(path)); err != nil {
			return nil, err
		}
	}
	if c.Store.Kind == config.StoreEmbedded {
		if err := engine.Backup(ctx, filepath.Join(c.StateDir, "store"), filepath.Join(dir, "store")); err != nil {
			return nil, err
		}
	}
	return note, appendlog.WriteNote(filepath.Join(dir, backupNote), note, 0o600)
}

// copyPrefix copies what a growing file holds now. A record that is being written is cut short, and is dropped where
// the copy is opened, as after a crash.
func copyPrefix(from, to string) (int64, error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, info.Size()))
	if err == nil {
		err = out.Sync()
	}
	return n, errors.Join(err, out.Close())
}

// Restore is fairwayd restore.
func Restore(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "restore DIR",
		Short: "Make the state directory of a backup",
		Long: "Makes state_dir, which must not exist or be empty, of the backup in DIR. The journal's chain is " +
			"checked;\n" +
			"nothing is changed where it is broken. Start the daemon afterwards.",
		Args: cobra.ExactArgs(1),
		RunE: config.File.With(path, func(c *cobra.Command, args []string, conf *config.Config) error {
			note, sum, err := restore(conf, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is as %s was at %s: %d records of the journal, %s\n",
				conf.StateDir,
				note.Site, note.At.Format(time.RFC3339), sum.Records, note.words())
			return err
		}),
	}
}

// restore makes the state directory of a backup; an error leaves it as it was.
func restore(c *config.Config, dir string) (*backup, journal.Summary, error) {
	var sum journal.Summary
	fail := func(format string, args ...any) (*backup, journal.Summary, error) {
		return nil, sum, fmt.Errorf("restore: "+format, args...)
	}
	note := &backup{}
	b, err := os.ReadFile(filepath.Join(dir, backupNote))
	if err == nil {
		err = json.Unmarshal(b, note)
	}
	if err != nil {
		return fail("%s is not a whole backup: %w", dir, err)
	}
	if note.Version != backupVersion {
		return fail("%s has version %d, made by fairwayd %s: want version %d", dir, note.Version, note.By,
			backupVersion)
	}
	for name, size := range note.Files {
		if !filepath.IsLocal(name) {
			return fail("%s names the file %q", dir, name)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != size {
			return fail("%s: want %d bytes, as the backup was made: %v", filepath.Join(dir, name), size, err)
		}
	}
	if entries, err := os.ReadDir(c.StateDir); err == nil && len(entries) > 0 {
		return fail("%s is not empty: move it away first", c.StateDir)
	}
	if sum, err = journal.Verify(filepath.Join(dir, "journal")); err != nil {
		return fail("%w", err)
	}
	made := c.StateDir + ".restore"
	if err := os.RemoveAll(made); err != nil {
		return fail("%w", err)
	}
	if err := os.CopyFS(made, os.DirFS(dir)); err != nil {
		return fail("%w", err)
	}
	if err := os.Remove(filepath.Join(made, backupNote)); err != nil {
		return fail("%w", err)
	}
	if err := os.Chmod(made, 0o750); err != nil {
		return fail("%w", err)
	}
	if err := os.Remove(c.StateDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail("%w", err)
	}
	if err := os.Rename(made, c.StateDir); err != nil {
		return fail("%w", err)
	}
	return note, sum, nil
}
