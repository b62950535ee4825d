//go:build !cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fairway/webui"
)

// errNoArchive is what a daemon says that was built where no C++ compiler is: everything else works.
var errNoArchive = errors.New(
	"this fairwayd was built without the I/O-log archive (DuckDB needs cgo); build it with CGO_ENABLED=1 and a C++ " +
		"compiler")

func archiveOf(*Config) webui.Archive { return nil }

// backUpArchive refuses to leave out an archive that another build has made.
func backUpArchive(_ context.Context, from, _ string) error {
	if _, err := os.Stat(from); os.IsNotExist(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", from, errNoArchive)
}

// forgetDays takes nothing: see backUpArchive.
func forgetDays(string, time.Time) (int, error) { return 0, nil }

func (d *daemon) keepForwarders(context.Context) {}

func (d *daemon) keepHistory(context.Context) {}

func newImport(*string) *cobra.Command { return withoutArchive("import PATH...") }
func newAnswer() *cobra.Command        { return withoutArchive("answer-archive") }
func newQuery(*string) *cobra.Command  { return withoutArchive("query [NAME | SQL]") }

func withoutArchive(use string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: "Not in this build: the I/O-log archive", DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return errNoArchive },
	}
}
