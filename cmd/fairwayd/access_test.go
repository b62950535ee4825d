package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	for _, c := range []struct {
		name  string
		given Access
		words []string
	}{
		{"token without a secret", Access{Tokens: []Token{{Name: "a", Role: access.RoleAgent}}},
			[]string{`"a"`, "sha256 or file"}},
		{"token with two", Access{Tokens: []Token{{Name: "a", Role: access.RoleAgent, SHA256: sum, File: short}}},
			[]string{`"a"`, "sha256 or file"}},
		{"token file that others read", Access{Tokens: []Token{{Name: "a", Role: access.RoleAgent, File: open}}},
			[]string{open, "chmod 600"}},
		{"short token", Access{Tokens: []Token{{Name: "a", Role: access.RoleAgent, File: short}}},
			[]string{short, "6 letters"}},
		{"missing file", Access{Tokens: []Token{{Name: "a", Role: access.RoleAgent, File: "/nonexistent"}}},
			[]string{"/nonexistent"}},
		{"unknown role", Access{Tokens: []Token{{Name: "a", Role: "king", SHA256: sum}}}, []string{`"a"`, "king"}},
		{"anonymous operator", Access{Anonymous: remap.Operator}, []string{"anonymous", "operator"}},
		{"proxy that everybody could be", Access{Proxy: []Proxy{{UserHeader: "X"}}},
			[]string{"[[access.proxy]]", "from"}},
		{"provider in clear text", Access{OIDC: OIDC{Issuer: "http://sso.site", URL: "http://localhost", ClientID: "f",
			NameClaim: "sub"}}, []string{"access.oidc.issuer", "https"}},
		{"provider that sends people elsewhere",
			Access{OIDC: OIDC{Issuer: "https://sso.site", URL: "https://elsewhere.site", ClientID: "f",
				NameClaim: "sub"}}, []string{"access.oidc.url", "listen.hosts"}},
		{"provider for nobody", Access{OIDC: OIDC{Issuer: "https://sso.site", URL: "http://localhost:7117",
			ClientID: "f", NameClaim: "sub"}}, []string{"access.oidc", "nobody can sign in"}},
		{"provider with an unknown role",
			Access{OIDC: OIDC{Issuer: "https://sso.site", URL: "http://localhost:7117", ClientID: "f", NameClaim: "sub",
				Roles: map[string]remap.Role{"*": "king"}}}, []string{"access.oidc.roles.*", "king"}},
		{"provider's secret that others read", Access{OIDC: OIDC{Issuer: "https://sso.site", SecretFile: open}},
			[]string{"client_secret_file", "chmod 600"}},
		{"two proxies", Access{Proxy: make([]Proxy, 2)}, []string{"[[access.proxy]]", "at most one"}},
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
	c, _, err := parseConfig("f.toml", out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if len(secret) < minSecret || len(c.Access.Tokens) != 1 || c.Access.Tokens[0].SHA256 != access.HashToken(secret) {
		t.Errorf("secret %q, tokens %+v", secret, c.Access.Tokens)
	}
}

// TestAnyOperator: one role that may act, wherever it is given, is enough.
func TestAnyOperator(t *testing.T) {
	for _, c := range []struct {
		access Access
		want   bool
	}{
		{Access{}, false},
		{Access{Anonymous: remap.Viewer, Groups: map[string]remap.Role{"staff": remap.Viewer,
			"slurm": access.RoleScheduler}, Tokens: []Token{{Role: access.RoleAgent}}}, false},
		{Access{Groups: map[string]remap.Role{"ops": remap.Operator}}, true},
		{Access{Tokens: []Token{{Role: remap.Admin}}}, true},
		{Access{Accounts: []Account{{Role: remap.Operator}}}, true},
		{Access{Proxy: []Proxy{{Roles: map[string]remap.Role{"ops": remap.Operator}}}}, true},
		{Access{OIDC: OIDC{Roles: map[string]remap.Role{"ops": remap.Operator}}}, true},
	} {
		if got := c.access.anyOperator(); got != c.want {
			t.Errorf("%+v: %v", c.access, got)
		}
	}
}
