package program

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Wording is an error in the words of who started the program: without the names that Go gives to the call that failed.
func Wording(err error) string {
	text := err.Error()
	inWords(err, &text)
	return text
}

// inWords replaces in text what err and the errors in it say.
func inWords(err error, text *string) {
	subject, words := "", ""
	switch e := err.(type) {
	case *fs.PathError:
		subject, words = e.Path, Wording(e.Err)
	case *net.OpError:
		if words = Wording(e.Err); e.Addr != nil {
			subject = e.Addr.String()
		}
	case *url.Error:
		subject, words = e.URL, Wording(e.Err)
	case *net.DNSError:
		subject, words = e.Name, e.Err
	case *net.AddrError:
		if subject, words = e.Addr, "want HOST:PORT"; e.Err == "invalid port" { // which Addr is then
			words = "want a port of 1 to 65535"
		}
	case *os.SyscallError:
		words = Wording(e.Err)
	}
	if words != "" {
		if subject != "" {
			words = subject + ": " + words
			*text = strings.ReplaceAll(*text, subject+": "+err.Error(), words) // named before
		}
		*text = strings.ReplaceAll(*text, err.Error(), words)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			inWords(inner, text)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			inWords(inner, text)
		}
	}
	if err == fs.ErrNotExist {
		*text = strings.ReplaceAll(*text, ": "+err.Error(), "")
	}
}

// kinds are values of settings and flags by what TOML and pflag call them.
var kinds = map[string]string{
	"string": "text in quotes", "integer": "a whole number", "int": "a whole number", "int64": "a whole number",
	"uint": "a whole number", "uint32": "a whole number", "float": "a number", "float64": "a number",
	"boolean": "true or false", "bool": "true or false", "slice": "a list in brackets", "array": "a list in brackets",
	"[]any": "a list in brackets", "map": "a table", "table": "a table", "map[string]any": "a table",
	"duration": "a time with its unit, such as 500ms, 30s or 2h",
}

func kind(of string) string {
	if in, ok := kinds[of]; ok {
		return in
	}
	return of
}

// flagError is what is wrong with a flag: its value, as what was wanted. Behind a command that is not known every flag
// is wrong, which helps nobody.
func flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); len(words) > 0 && c.HasSubCommands() {
		if wrong := c.ValidateArgs(words); wrong != nil {
			return wrong
		}
	}
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		if want, ok := kinds[bad.GetFlag().Value.Type()]; ok {
			err = fmt.Errorf("--%s %q: want %s", bad.GetFlag().Name, bad.GetValue(), want)
		}
	}
	return see(c, err)
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// missing says which flags a command needs; nil: err says something else. Cobra gives it no type of its own.
func missing(c *cobra.Command, err error) error {
	names, ok := strings.CutPrefix(err.Error(), "required flag(s) ")
	if !ok {
		return nil
	}
	var flags []string
	for _, m := range quoted.FindAllStringSubmatch(names, -1) {
		flags = append(flags, "--"+m[1])
	}
	return see(c, fmt.Errorf("'%s' needs %s", c.CommandPath(), strings.Join(flags, " and ")))
}

var mismatch = regexp.MustCompile(`^toml: line (\d+) \(last key "(.+)"\): (?:` +
	`incompatible types: TOML value has type (.+); destination has type (.+)|` +
	`type mismatch for .+: expected (table) but found (.+))$`)

// tomlError is what is wrong with a settings file, with its line.
func tomlError(path string, err error) error {
	var bad toml.ParseError
	if !errors.As(err, &bad) {
		if m := mismatch.FindStringSubmatch(err.Error()); m != nil {
			return fmt.Errorf("%w: %s:%s: %s: want %s, got %s", ErrSettings, path, m[1], m[2], kind(m[4]+m[5]),
				kind(m[3]+m[6]))
		}
		return fmt.Errorf("%w: %s: %w", ErrSettings, path, err)
	}
	if value, ok := strings.CutPrefix(bad.Message, "invalid duration: "); ok {
		return fmt.Errorf("%w: %s:%d: %s = %s: want %s", ErrSettings, path, bad.Position.Line, bad.LastKey, value,
			kind("duration"))
	}
	return fmt.Errorf("%w: %s:%d: %s", ErrSettings, path, bad.Position.Line, bad.Message)
}
