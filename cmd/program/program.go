// Package program is what fairway's programs have in common: how they start and end, what their exit
// codes mean, and how they read a settings file.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// The exit codes of every program and command.
const (
	Done        = 0
	Failed      = 1
	Usage       = 2 // also: settings or input that cannot be used
	NotAllowed  = 4
	NotFound    = 5
	Changed     = 6
	Unreachable = 7
	Partly      = 8
)

// coded is an error with the exit code that it stands for.
type coded struct {
	error
	code int
}

func (e coded) Unwrap() error { return e.error }

// BadUsage marks a command line, a settings file or an input that cannot be understood.
func BadUsage(err error) error { return coded{err, Usage} }

// NoAnswer marks a daemon, mount or queue that does not answer.
func NoAnswer(err error) error { return coded{err, Unreachable} }

// Main runs a program until it ends or a signal ends it, and ends the process with its exit code.
func Main(run func(ctx context.Context, args []string) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// Run executes a command line and says on the standard error why it failed. What it prints goes through Plain.
func Run(ctx context.Context, root *cobra.Command, args []string) error {
	root.SetArgs(args)
	root.SetOut(Plain(root.OutOrStdout()))
	root.SetErr(Plain(root.ErrOrStderr()))
	c, err := root.ExecuteContextC(ctx)
	if err != nil {
		err = cmp.Or(missing(c, err), err)
		fmt.Fprintf(root.ErrOrStderr(), "%s: %s\n", root.Name(), Wording(err))
	}
	return err
}

// cleaned is an output without what could change a terminal, and the output itself.
type cleaned struct {
	mu    sync.Mutex // guards clean: goroutines may print at once, as to a file
	clean io.Writer
	to    io.Writer
}

func (c *cleaned) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clean.Write(p)
}

// Plain is w without what could change a terminal: names of jobs, nodes, sources and files are texts from outside. Line
// ends and tabs pass; every other control character, and one that is not printed, is a '?'.
func Plain(w io.Writer) io.Writer {
	return &cleaned{to: w, clean: transform.NewWriter(w, runes.Map(func(r rune) rune {
		if r == utf8.RuneError || r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}))}
}

// Raw is where JSON and logs go as they are: they escape what a terminal would obey, and programs read them.
func Raw(w io.Writer) io.Writer {
	if c, ok := w.(*cleaned); ok {
		return c.to
	}
	return w
}

// Code is the exit code of a command's outcome.
func Code(err error) int {
	of := coded{}
	switch {
	case err == nil:
		return Done
	case errors.As(err, &of):
		return of.code
	}
	return Failed
}

// Strict makes wrong flags and arguments of a program's every command usage errors that name the help
// to read. It is called when all commands have been added.
func Strict(root *cobra.Command) *cobra.Command {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(flagError)
	strictArgs(root)
	return root
}

func strictArgs(c *cobra.Command) {
	if !c.Runnable() { // cobra would give its help for any word, and succeed
		c.Args, c.RunE = cobra.NoArgs, func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return see(c, plain(c, args, err))
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		strictArgs(sub)
	}
}

// plain says in words what cobra says of the number of arguments: with their names, as the help has them.
func plain(c *cobra.Command, args []string, err error) error {
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "unknown command") && !c.HasSubCommands():
		return fmt.Errorf("'%s' takes no arguments, and got %q", c.CommandPath(), args[0])
	case strings.HasPrefix(text, "unknown command"):
		c.SuggestionsMinimumDistance = 2
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("'%s' has no command %q; did you mean '%s %s'?", c.CommandPath(), args[0],
				c.CommandPath(), near[0])
		}
		return fmt.Errorf("'%s' has no command %q", c.CommandPath(), args[0])
	case strings.HasPrefix(text, "accepts "), strings.HasPrefix(text, "requires at "):
		return fmt.Errorf("want '%s', got %d arguments", strings.TrimSuffix(c.UseLine(), " [flags]"), len(args))
	}
	return err
}

func see(c *cobra.Command, err error) error {
	return BadUsage(fmt.Errorf("%w (see '%s --help')", err, c.CommandPath()))
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS) // /dev/null is a device of characters, too
	return err == nil
}
