package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/collector/wire"
)

// recordedLctl is an object server's lctl as a script: it keeps the rules in a file, and refuses what Lustre refuses.
const recordedLctl = `#!/bin/sh
cd "${0%/*}" && touch rules
value=${2#*=}
case "$1 $2" in
"get_param ost.OSS.ost_io.nrs_policies")
	state=stopped; [ -e on ] && state=started
	printf 'regular_requests:\n  - name: fifo\n    state: started\n    fallback: yes\n\n'
	printf '  - name: tbf jobid\n    state: %s\nhigh_priority_requests:\n' $state ;;
"get_param ost.OSS.ost_io.nrs_tbf_rule")
	echo regular_requests:; echo CPT 0:; cat rules; echo "default * 10000, ref 3" ;;
"set_param ost.OSS.ost_io.nrs_policies=tbf jobid") touch on ;;
"set_param ost.OSS.ost_io.nrs_policies=fifo") rm on ;;
"set_param ost.OSS.ost_io.nrs_tbf_rule="*)
	set -- $value
	case $1 in
	start) ! grep -q "^$2 " rules || exit 17
		echo "$2 $3 ${4#rate=}, ref 0" >>rules ;;
	change) grep -q "^$2 " rules || exit 2
		sed -i "s/^\($2 .*}\) .*/\1 ${3#rate=}, ref 0/" rules ;;
	stop) grep -q "^$2 " rules || exit 2
		sed -i "/^$2 /d" rules ;;
	esac ;;
"get_param -n") echo job_stats:; printf -- '- job_id: 72\n  read_bytes: { samples: 5, unit: bytes }\n' ;;
*) echo "lctl: $*" >&2; exit 1 ;;
esac
`

// An object server's agent makes, changes and removes rules as the daemon's tables come, and leaves none behind.
func TestSharesOfAnObjectServer(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lctl"), []byte(recordedLctl), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	c := defaultConfig()
	c.Spool.Dir = t.TempDir()
	c.Node, c.Role, c.TBF = "oss1", "storage", TBF{RPCsPerSecond: 4000, Partitions: 2}
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
	keep, stop := startTBF(t.Context(), &c, slog.New(slog.DiscardHandler))
	rules := func(when string, want ...string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(dir, "rules"))
		if err != nil || strings.TrimSpace(string(got)) != strings.Join(want, "\n") {
			t.Errorf("%s: %v\n%s", when, err, got)
		}
	}
	for _, step := range []struct{ jobs, want string }{
		{`{"job":"71","size":3},{"job":"72","size":1}`, "fw_71 jobid={71} 1500, ref 0\nfw_72 jobid={72} 500, ref 0"},
		{`{"job":"72","size":1},{"job":"73","size":1}`, "fw_72 jobid={72} 1000, ref 0\nfw_73 jobid={73} 1000, ref 0"},
		{``, ""},
		{`{"job":"74","size":1}`, "fw_74 jobid={74} 2000, ref 0"},
	} {
		body := `{"policy":"size-fair","idle":"inside","lease_seconds":120,"jobs":[` + step.jobs + `]}`
		if _, err := keep(t.Context(), wire.Order{ID: "share/1", Kind: wire.OrderShare,
			Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		rules(step.jobs, step.want)
	}
	if _, err := keep(t.Context(), wire.Order{ID: "share/2", Body: []byte(`{"policy":"size-fare"}`)}); err == nil ||
		!strings.Contains(err.Error(), "order share/2: table: policy") {
		t.Errorf("an unknown policy: %v", err)
	}
	stop()
	rules("the agent has ended", "")
	if _, err := os.Stat(filepath.Join(dir, "on")); !os.IsNotExist(err) {
		t.Errorf("the filter is still on: %v", err)
	}
}

func TestTBFSettings(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"tbf.rpcs_per_second = -1": func(c *Config) { c.TBF.RPCsPerSecond = -1 },
		"tbf.partitions = 0":       func(c *Config) { c.TBF.Partitions = 0 },
		`with role = "compute"`:    func(c *Config) { c.Role = "compute" },
		"a node keeps shares in one way": func(c *Config) {
			c.Source.Queue.Enabled = true
		},
	} {
		c := defaultConfig()
		c.Role, c.TBF.RPCsPerSecond = "storage", 100
		change(&c)
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
