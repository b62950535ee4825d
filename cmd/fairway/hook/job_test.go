package hook

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"fairway/collector/topology"
	"fairway/remap/dispatch"
)

// TestJobsOfBatchSystems: the environments that batch systems give their prologues, as their manuals have them.
func TestJobsOfBatchSystems(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "nodes")
	if err := os.WriteFile(hosts, []byte("cn2\ncn2\ncn1.ib0.example.org\ncn1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := []topology.NodeID{"cn2", "cn1"}
	for name, c := range map[string]struct {
		env  string
		args given
		want dispatch.Request
		err  string
	}{
		"slurm": {env: strings.Join(slurmEnv, "|"), want: dispatch.Request{Job: "12", User: "wei", App: "ROMS",
			Nodes: []topology.NodeID{"cn01", "cn02"}}},
		"pbs": {env: "PBS_JOBID=12[3].server|PBS_JOBNAME=roms.sh|PBS_O_LOGNAME=eve|PBS_ACCOUNT=sea|PBS_NODEFILE=" +
			hosts, args: given{user: "wei"},
			want: dispatch.Request{Job: "12[3]", User: "wei", App: "roms.sh", Project: "sea", Nodes: two}},
		"torque's arguments": {args: given{job: "12", user: "wei", name: "roms", account: "sea", nodes: "cn2,cn1"},
			want: dispatch.Request{Job: "12", User: "wei", App: "roms", Project: "sea", Nodes: two}},
		"arguments before the environment": {env: "PBS_JOBID=12.server|PBS_JOBNAME=a|PBS_NODEFILE=/nowhere",
			args: given{system: "pbs", name: "b", nodes: "cn1"},
			want: dispatch.Request{Job: "12", App: "b", Nodes: []topology.NodeID{"cn1"}}},
		"pbs without a node file": {env: "PBS_JOBID=12.server", err: "PBS_NODEFILE: is not set"},
		"lsf": {env: "LSB_JOBID=12|LSB_JOBINDEX=0|LSB_MCPU_HOSTS=cn2 16 cn1 16|LSFUSER=wei|LSB_JOBNAME=roms|" +
			"LSB_PROJECT_NAME=sea",
			want: dispatch.Request{Job: "12", User: "wei", App: "roms", Project: "sea", Nodes: two}},
		"lsf's full names": {env: "LSB_JOBID=12|LSB_MCPU_HOSTS=cn2.example.org 16 cn1.example.org 16",
			want: dispatch.Request{Job: "12", Nodes: two}},
		"lsf's addresses": {env: "LSB_JOBID=12|LSB_MCPU_HOSTS=10.0.0.2 16 10.0.0.1 16",
			want: dispatch.Request{Job: "12", Nodes: []topology.NodeID{"10.0.0.2", "10.0.0.1"}}},
		"lsf's array": {env: "LSB_JOBID=12|LSB_JOBINDEX=3|LSB_HOSTS=cn2 cn2 cn1|LSFUSER=wei|USER=eve",
			want: dispatch.Request{Job: "12[3]", User: "wei", Nodes: two}},
		"lsf's host file": {env: "LSB_JOBID=12|LSB_DJOB_HOSTFILE=" + hosts,
			want: dispatch.Request{Job: "12", Nodes: two}},
		"lsf's half pairs": {env: "LSB_JOBID=12|LSB_MCPU_HOSTS=cn2 16 cn1", err: "LSB_MCPU_HOSTS: 3 words"},
		"flux": {env: "FLUX_JOB_ID=ƒ2oLkTLb|FLUX_JOB_USERID=0|SLURM_JOB_ID=7", args: given{nodes: "cn2,cn1"},
			want: dispatch.Request{Job: "f2oLkTLb", User: "root", Nodes: two}},
		"flux without nodes": {env: "FLUX_JOB_ID=ƒ2oLkTLb", err: "flux jobs -no {nodelist}"},
		"nothing":            {err: "give --system slurm"},
		"another system":     {args: given{system: "sge"}, err: "want slurm, pbs, lsf or flux"},
		"lsf with the words of a user": {env: "LSB_JOBID=12|LSB_HOSTS=cn2 cn1|LSFUSER=eve|SLURM_JOB_ID=7|" +
			"SLURM_JOB_USER=alice|SLURM_JOB_NODELIST=cn[1-4]|FLUX_JOB_ID=f7|PBS_JOBID=7.server",
			want: dispatch.Request{Job: "12", User: "eve", Nodes: two}},
		"pbs of slurm's words": {env: "SLURM_JOB_ID=7|SLURM_JOB_USER=alice|SLURM_JOB_NODELIST=cn[1-4]",
			err: "PBS_JOBID is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{}
			for _, pair := range strings.Split(c.env, "|") {
				k, v, _ := strings.Cut(pair, "=")
				env[k] = v
			}
			if c.args.system == "" && c.env != "" {
				c.args.system, _, _ = strings.Cut(strings.ReplaceAll(name, "'", " "), " ")
			}
			got, err := jobOfHook(func(k string) string { return env[k] }, &c.args)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v (%v), want %+v", got, err, c.want)
			}
		})
	}
}

// TestHookOfPBS runs the program with PBS's environment, as its prologue would.
func TestHookOfPBS(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "nodes")
	if err := os.WriteFile(hosts, []byte("cn2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got dispatch.Request
	addr := slurmDaemon(t, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&got)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"job":"12","policy":"dfra"}`))
	})
	out, _ := hook(t, []string{"PBS_JOBID=12.server", "PBS_NODEFILE=" + hosts}, "dispatch", "--addr", addr, "--user",
		"wei")
	if got.Job != "12" || got.User != "wei" || len(got.Nodes) != 1 || !strings.Contains(out, "keeps its default") {
		t.Errorf("sent %+v: %s", got, out)
	}
}

// FuzzHookEnvironment: whatever a user has put into a job's environment and a node file holds, the hook reads a job or
// says why not, and no node is there twice.
func FuzzHookEnvironment(f *testing.F) {
	for _, env := range []string{strings.Join(slurmEnv, "|"), "PBS_JOBID=12[3].server|PBS_NODEFILE=x",
		"LSB_JOBID=7|LSB_MCPU_HOSTS=cn1 2 cn2 2", "LSB_JOBID=7|LSB_DJOB_HOSTFILE=x",
		"FLUX_JOB_ID=f12|FLUX_JOB_USERID=0"} {
		f.Add(env, "cn2\ncn2\ncn1\n", "")
		f.Add(env, "", "cn[1-3,7]")
	}
	file := filepath.Join(f.TempDir(), "nodes")
	f.Fuzz(func(t *testing.T, text, nodes, flag string) {
		env := map[string]string{}
		for pair := range strings.SplitSeq(text, "|") {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		for _, name := range []string{"PBS_NODEFILE", "LSB_DJOB_HOSTFILE"} { // no other file is read
			if env[name] != "" {
				env[name] = file
			}
		}
		if err := os.WriteFile(file, []byte(nodes), 0o600); err != nil {
			t.Fatal(err)
		}
		system := ""
		for name, id := range map[string]string{"slurm": "SLURM_JOB_ID", "pbs": "PBS_JOBID", "lsf": "LSB_JOBID",
			"flux": "FLUX_JOB_ID"} {
			if env[id] != "" && (system == "" || name < system) {
				system = name
			}
		}
		r, err := jobOfHook(func(name string) string { return env[name] }, &given{system: system, nodes: flag})
		seen := map[topology.NodeID]bool{}
		for _, n := range r.Nodes {
			if err == nil && flag == "" && system != "slurm" && seen[n] {
				t.Errorf("node %q is there twice", n)
			}
			seen[n] = true
		}
		if err == nil && r.Job == "" {
			t.Errorf("a job without an ID: %+v", r)
		}
	})
}
