//go:build !cgo

package iologs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairwayd/config"
	"fairway/tsdb"
	"fairway/tsdb/history"
	"fairway/webui"
)

// errNoArchive is what a daemon says that was built where no C++ compiler is: everything else works.
var errNoArchive = errors.New(
	"this fairwayd was built without the I/O-log archive (DuckDB needs cgo); build it with CGO_ENABLED=1 and a C++ " +
		"compiler")

// Open has no archive to ask.
func Open(string, string) webui.Archive { return nil }

// Backup refuses to leave out an archive that another build has made.
func Backup(_ context.Context, from, _ string) error {
	if _, err := os.Stat(from); os.IsNotExist(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", from, errNoArchive)
}

// forget takes nothing: see Backup.
func forget(string, time.Time) (int, error) { return 0, nil }

// KeepForwarders has no archive to copy into.
func KeepForwarders(context.Context, string, tsdb.Store, *slog.Logger) {}

// KeepHistory has no archive to learn from.
func KeepHistory(context.Context, *config.Config, *history.Store, *slog.Logger) {}

// Import says that this build has no archive.
func Import(*string) *cobra.Command { return withoutArchive("import PATH...") }

// Query is there as Import is.
func Query(*string) *cobra.Command { return withoutArchive("query [NAME | SQL]") }

// Answer is there as Import is.
func Answer() *cobra.Command { return withoutArchive("answer-archive") }

func withoutArchive(use string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: "Not in this build: the I/O-log archive", DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return errNoArchive },
	}
}
