package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/fairwayd/config"
	"fairway/remap"
	"fairway/webui/access"
)

func TestAccessErrorsNameTheEntry(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	write(t, open, strings.Repeat("s", 40))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(dir, "short")
	write(t, short, "secret\n")
	sum := access.HashToken("x")
	token := func(k config.Token) config.Access { return config.Access{Tokens: []config.Token{k}} }
	provider := func(o access.OIDC) config.Access { return config.Access{OIDC: o} }
	for _, c := range []struct {
		name  string
		given config.Access
		words []string
	}{
		{"token without a secret", token(config.Token{Name: "a", Role: access.RoleAgent}),
			[]string{`"a"`, "sha256 or file"}},
		{"token with two", token(config.Token{Name: "a", Role: access.RoleAgent, SHA256: sum, File: short}),
			[]string{`"a"`, "sha256 or file"}},
		{"token file that others read", token(config.Token{Name: "a", Role: access.RoleAgent, File: open}),
			[]string{open, "chmod 600"}},
		{"short token", token(config.Token{Name: "a", Role: access.RoleAgent, File: short}),
			[]string{short, "6 letters"}},
		{"missing file", token(config.Token{Name: "a", Role: access.RoleAgent, File: "/nonexistent"}),
			[]string{"/nonexistent"}},
		{"unknown role", token(config.Token{Name: "a", Role: "king", SHA256: sum}), []string{`"a"`, "king"}},
		{"anonymous operator", config.Access{Anonymous: remap.Operator}, []string{"anonymous", "operator"}},
		{"proxy that everybody could be", config.Access{Proxy: []access.Proxy{{UserHeader: "X"}}},
			[]string{"[[access.proxy]]", "from"}},
		{"provider in clear text", provider(access.OIDC{Issuer: "http://sso.site", URL: "http://localhost",
			ClientID: "f", NameClaim: "sub"}), []string{"access.oidc.issuer", "https"}},
		{"provider that sends people elsewhere",
			provider(access.OIDC{Issuer: "https://sso.site", URL: "https://elsewhere.site", ClientID: "f",
				NameClaim: "sub"}), []string{"access.oidc.url", "listen.hosts"}},
		{"provider for nobody", provider(access.OIDC{Issuer: "https://sso.site", URL: "http://localhost:7117",
			ClientID: "f", NameClaim: "sub"}), []string{"access.oidc", "nobody can sign in"}},
		{"provider with an unknown role",
			provider(access.OIDC{Issuer: "https://sso.site", URL: "http://localhost:7117", ClientID: "f",
				NameClaim: "sub", Roles: map[string]remap.Role{"*": "king"}}), []string{"access.oidc.roles.*", "king"}},
		{"provider's secret that others read", provider(access.OIDC{Issuer: "https://sso.site", SecretFile: open}),
			[]string{"client_secret_file", "chmod 600"}},
		{"two proxies", config.Access{Proxy: make([]access.Proxy, 2)}, []string{"[[access.proxy]]", "at most one"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := testConf(t)
			conf.Access = c.given
			d, err := openDaemon(conf, slog.New(slog.DiscardHandler))
			if err == nil {
				d.Close()
				t.Fatal("it starts")
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

// TestTokenCommand checks that what `fairwayd token` prints is a configuration that knows the
// secret.
func TestTokenCommand(t *testing.T) {
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"token", "agents", "agent"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(out.String(), "#   ")
	secret, _, _ := strings.Cut(rest, "\n")
	c, _, err := config.File.Parse("f.toml", out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if len(secret) < config.MinSecret || len(c.Access.Tokens) != 1 ||
		c.Access.Tokens[0].SHA256 != access.HashToken(secret) {
		t.Errorf("secret %q, tokens %+v", secret, c.Access.Tokens)
	}
}
