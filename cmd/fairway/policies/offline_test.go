package policies

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/cmd/program"
)

// offline runs a command that reads one file and returns its exit code and what it printed.
func offline(t *testing.T, input string, args ...string) (code int, out, errs string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(file, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code = run(t, "", append(args, file)...)
	return code, out, errs
}

func TestOfflinePolicies(t *testing.T) {
	const (
		table = `{"jobs":[{"job":"J1","user":"a","group":"g","size":4},{"job":"J2","user":"b","group":"g","size":1}]}`
		set   = "{\"procs\":200,\"b\":0.01,\"B\":1,\"kprime\":2,\"eps\":0.01,\"apps\":[{\"name\":\"a\",\"w\":10," +
			"\"vol\":10,\"beta\":100},{\"name\":\"b\",\"w\":10,\"vol\":10,\"beta\":100}]}"
		file = `{"start":0,"end":1048576,"stripe_size":65536,"servers":4,"aggregators":4,"method":"group-cyclic"}`
	)
	for _, c := range []struct {
		args  []string
		input string
		code  int
		say   string // on standard output, or standard error when it fails
	}{
		{[]string{"shares", "--policy", "size-fair"}, table, 0, `"J1": 0.8`},
		{[]string{"shares", "--policy", "group-user-size-fair"}, table, 0, `"J1": 0.5`},
		{[]string{"shares", "--policy", "size-fair", "--tbf", "100"}, table, 0, `start fw_J1 jobid={J1} rate=80`},
		{[]string{"shares", "--policy", "size-fair", "--chart"}, table, 0,
			"J1  80.00 % " + strings.Repeat("█", 58) + "\nJ2  20.00 % " + strings.Repeat("█", 14) + "\n"},
		// Two that take turns: each has its half of the pattern, together they fill it.
		{[]string{"periodic", "--chart"}, set, 0, "a   |" + strings.Repeat("█", 36) + strings.Repeat(" ", 36) +
			"|\nb   |" + strings.Repeat(" ", 36) + strings.Repeat("█", 36) + "|\nall |" + strings.Repeat("█", 72) +
			"| of 1 GB/s\n"},
		{[]string{"shares", "--policy", "priority-fair"}, table, 2, `in.json: jobs[0].priority: missing`},
		{[]string{"shares", "--policy", "node-fair"}, table, 2, `"node" is not one of`},
		{[]string{"shares", "--policy", "size-fair", "--idle", "x"}, table, 2, `neither inside nor flat`},
		{[]string{"shares"}, table, 2, "policy"},
		{[]string{"shares", "--policy", "size-fair"}, `{"job":[]}`, 2, `unknown field "job"`},
		{[]string{"periodic"}, set, 0, `"sys_efficiency": 0.5`},
		{[]string{"periodic"}, strings.Replace(set, `"w":10`, `"w":-1`, 1), 2, "in.json: apps[0].w"},
		{[]string{"periodic"}, strings.Replace(set, `"b":0.01`, `"b":0.01,"bb":1`, 1), 2, `unknown field "bb"`},
		{[]string{"filedomain"}, file, 0, `"aggregators_used":4`},
		{[]string{"filedomain"}, strings.Replace(file, "group", "cycle", 1), 2, "in.json: method"},
	} {
		code, out, errs := offline(t, c.input, c.args...)
		got := out
		if c.code != 0 {
			got = errs
			if out != "" {
				t.Errorf("%v failed and printed %s", c.args, out)
			}
		} else if strings.HasPrefix(c.say, `"`) && !json.Valid([]byte(out)) {
			t.Errorf("%v printed no JSON: %s", c.args, out)
		}
		if code != c.code || !strings.Contains(got, c.say) {
			t.Errorf("%v exits with %d, want %d; says %s, want %s", c.args, code, c.code, got, c.say)
		}
	}
	if _, _, code := run(t, "", "shares", "--policy", "size-fair", "/nonexistent"); code != 2 {
		t.Errorf("a file that is not there exits with %d", code)
	}
}

// What is wrong with a file is reported with its name, line and field, what is wrong with a flag with the flag; nothing
// is printed.
func TestWhatIsWrongIsNamed(t *testing.T) {
	const jobs, set, domains = "{\"jobs\":[\n{\"job\":\"1\",\"size\":4}]}",
		"{\"procs\":8,\"b\":1,\"B\":1,\n\"apps\":[{\"name\":\"a\",\"w\":1,\"vol\":1,\"beta\":1}]}",
		"{\"start\":0,\"end\":8,\"stripe_size\":4,\n\"servers\":2,\"aggregators\":2,\"method\":\"even\"}"
	for _, c := range []struct {
		stdin string
		args  []string
		want  string
	}{
		{strings.Replace(jobs, "size", "sise", 1), []string{"shares", "--policy", "size-fair", "-"},
			`-: line 2: unknown field "sise"`},
		{strings.Replace(jobs, "4", `"4"`, 1), []string{"shares", "--policy", "size-fair", "-"}, "jobs.size"},
		{jobs[:20], []string{"shares", "--policy", "size-fair", "-"}, "-: line 2: the text ends inside the object"},
		{jobs, []string{"shares", "--policy", "size-fair", "--tbf", "-5", "-"}, "--tbf -5"},
		{jobs, []string{"shares", "--policy", "size-fair", "--tbf", "4000", "--tbf-cpts", "0", "-"}, "--tbf-cpts 0"},
		{jobs, []string{"shares", "--policy", "size-fair", "--tbf-cpts", "2", "-"}, "belong to --tbf"},
		{strings.Replace(set, "beta", "betta", 1), []string{"periodic", "-"}, `unknown field "betta"`},
		{strings.Replace(domains, `"servers":2`, `"servers":2.5`, 1), []string{"filedomain", "-"},
			"line 2: servers: a JSON number 2.5; want a whole number"},
		{domains + "\n{}", []string{"filedomain", "-"}, "line 3: something follows"},
	} {
		out, errs, code := run(t, c.stdin, c.args...)
		if code != program.Usage || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%q: exit code %d, %s, printed %q; want %q", c.args, code, errs, out, c.want)
		}
	}
}
