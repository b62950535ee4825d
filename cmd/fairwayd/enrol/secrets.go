package enrol

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"fairway/webui/access"
)

// Token is fairwayd token.
func Token() *cobra.Command {
	return &cobra.Command{
		Use:   "token NAME ROLE",
		Short: "Make a bearer token: the secret for its owner, the lines for the configuration",
		Args:  cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			secret := rand.Text()
			_, err := fmt.Fprintf(c.OutOrStdout(),
				"# The secret, shown once, for its owner:\n#   %s\n[[access.token]]\nname = %q\nrole = %q\nsha256 = "+
					"%q\n",
				secret, args[0], args[1], access.HashToken(secret))
			return err
		},
	}
}

// HashPassword is fairwayd hash-password.
func HashPassword() *cobra.Command {
	return &cobra.Command{
		Use:   "hash-password",
		Short: "Read a password from standard input and print the hash for an [[access.account]]",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			line, err := bufio.NewReader(c.InOrStdin()).ReadString('\n')
			password := strings.TrimRight(line, "\r\n")
			if password == "" {
				return errors.Join(errors.New("no password on standard input"), err)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), access.HashPassword(password))
			return err
		},
	}
}
