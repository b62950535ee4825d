// Package enrol makes tokens, and takes them back.
package enrol

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/program"
	"fairway/collector/appendlog"
	"fairway/collector/topology"
	"fairway/webui/access"
)

// Tokens returns what makes and checks nodes' tokens by the secrets of a file, if there is one. revoked is up to when a
// node's are refused; nil where none is checked or made.
func Tokens(path string, revoked func(topology.NodeID) time.Time, log *slog.Logger) *access.Enrolment {
	if path == "" {
		return &access.Enrolment{Revoked: revoked}
	}
	secrets := config.Watch(log, func() ([]string, error) { return readSecrets(path) }, path)
	return &access.Enrolment{Secrets: secrets.Get, Revoked: revoked}
}

// readSecrets reads one secret a line; the first one makes new tokens.
func readSecrets(path string) (out []string, err error) {
	text, err := appendlog.ReadPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("access.enrolment.secret_file: %w", err)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(line) < config.MinSecret {
			return nil,
				fmt.Errorf("access.enrolment.secret_file: %s has a line of %d letters, a secret has at least %d",
					path, len(line), config.MinSecret)
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("access.enrolment.secret_file: %s is empty; fairwayd enroll --rotate writes a secret",
			path)
	}
	return out, nil
}

// Enroll is fairwayd enroll.
func Enroll(path *string) *cobra.Command {
	var join, dir string
	var lasts time.Duration
	var rotate bool
	c := &cobra.Command{
		Use: "enroll [NODE...]",
		Short: "Make the tokens of nodes' agents, each good for its node alone, or a join token by which agents get " +
			"theirs",
		RunE: config.File.With(path, func(c *cobra.Command, nodes []string, conf *config.Config) error {
			if join == "" && len(nodes) == 0 && !rotate {
				return program.BadUsage(errors.New("no node is named; name some, or use --join PATTERN"))
			}
			made, err := HaveSecret(conf.Access.Enrolment.SecretFile, rotate)
			if err != nil {
				return err
			}
			if made != "" {
				fmt.Fprintf(c.ErrOrStderr(), "made %s; the daemon's user must be able to read it\n", made)
			}
			revoked, err := readRevoked(conf.StateDir)
			if err != nil {
				return err
			}
			e := Tokens(conf.Access.Enrolment.SecretFile, func(n topology.NodeID) time.Time { return revoked[n] }, nil)
			if join != "" {
				token, err := e.JoinToken(join, time.Now().Add(lasts))
				if err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout(), token)
			}
			for _, n := range nodes {
				if err := enrol(c.OutOrStdout(), e, topology.NodeID(n), dir); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	f := c.Flags()
	f.StringVar(&join, "join", "", "print a join token for nodes whose names fit this pattern, such as 'cn*'")
	f.DurationVar(&lasts, "for", time.Hour, "how long the join token lasts")
	f.StringVar(&dir, "dir", "", "write each node's token to DIR/NODE.token instead of printing it")
	f.BoolVar(&rotate, "rotate", false,
		"put a new secret first; the old ones verify until their lines are taken out of the file")
	return c
}

// HaveSecret makes the file of the secret where it is missing, or puts a new one in front. It returns the path of a
// file that was made.
func HaveSecret(path string, rotate bool) (made string, err error) {
	if path == "" {
		return "", fmt.Errorf("%w: access.enrolment.secret_file is not set: say where the secret is kept",
			program.ErrSettings)
	}
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		made = path
	case err != nil:
		return "", err
	case !rotate:
		return "", nil
	}
	part := path + ".part"
	defer os.Remove(part)
	if err := os.WriteFile(part, append([]byte(rand.Text()+rand.Text()+"\n"), old...), 0o600); err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil {
		if err := sameOwner(part, info); err != nil {
			return "", err
		}
	}
	return made, os.Rename(part, path)
}

func enrol(w io.Writer, e *access.Enrolment, n topology.NodeID, dir string) error {
	token, err := e.NodeToken(n, time.Now())
	if err != nil {
		return err
	}
	if dir == "" {
		_, err = fmt.Fprintln(w, token)
		return err
	}
	if n != topology.NodeID(filepath.Base(string(n))) {
		return fmt.Errorf("node %q: its name cannot be a file's; leave --dir out", n)
	}
	f, err := os.OpenFile(filepath.Join(dir, string(n)+".token"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, token)
	return errors.Join(err, f.Close())
}

// sameOwner gives a file to who owns another one, where root has made it.
func sameOwner(path string, as fs.FileInfo) error {
	st, ok := as.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, int(st.Uid), int(st.Gid))
}
