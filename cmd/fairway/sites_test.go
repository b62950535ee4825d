package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/cmd/program"
)

// --site asks the daemon of that name in the file, with that one's token.
func TestSiteIsAskedByItsName(t *testing.T) {
	s := simsite.New(t, simsite.Options{Forwarders: 4, Compute: 16})
	s.Run(0)
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "sites.toml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(token, simsite.ViewerSecret)
	write(file, "[site.hpc1]\naddr = \"http://"+s.TCP+"\"\ntoken_file = \""+token+
		"\"\n[site.hpc2]\naddr = \"unix:/none\"\n")
	t.Setenv("FAIRWAY_SITES", file)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"sites", program.Done, "hpc2"},
		{"--site hpc1 findings --json", program.Done, "["},
		{"--site hpc2 findings", program.Unreachable, "/none"},
		{"--site hpc3 findings", program.Usage, `no site "hpc3"; it has hpc1, hpc2`},
		{"--site hpc1 --addr unix:/x findings", program.Usage, "leave one out"},
	} {
		if out, code := command(t, strings.Fields(c.args)...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("fairway %s: exit %d, %s", c.args, code, out)
		}
	}
	write(file, "[site.hpc1]\nadr = \"x\"\n")
	if out, code := command(t, "sites"); code != program.Usage || !strings.Contains(out, "adr") {
		t.Errorf("of a wrong key: exit %d, %s", code, out)
	}
}
