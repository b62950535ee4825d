package slurm

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

// The samples of testdata are what Slurm's commands print of one imagined job, written here:
// go test -run Samples -update. It is the job of the Darshan samples, on 8 nodes for 200 s, with one step of theirs.
const (
	waveSubmit, waveStart, waveEnd = 1599999900, 1599999960, 1600000160 // 12:25:00, 12:26:00, 12:29:20 UTC
	waveNodes                      = "nid[00011-00018]"
	waveTRES                       = "billing=512,cpu=512,mem=512G,node=8"
)

// samples are the files by name, how many jobs and steps each has, and the real file that has the same form.
func samples() map[string]sample {
	set := func(n int) string { return fmt.Sprintf(`{"set":true,"infinite":false,"number":%d}`, n) }
	exit := `{"status":["SUCCESS"],"return_code":` + set(0) +
		`,"signal":{"id":{"set":false,"infinite":false,"number":0},"name":""}}`
	names := make([]string, 8)
	for i := range names {
		names[i] = fmt.Sprintf("nid%05d", 11+i)
	}
	member := func(id, start, end string, nodes []string) string {
		list, _ := json.Marshal(nodes)
		return fmt.Sprintf(`%q: {"jobidraw": %q, "start": %q, "end": %q, "nodelist": %s}`, id, id, start, end, list)
	}
	plain := func(id, raw, start, end, elapsed, exit, state, nodes, name string) string {
		return strings.Join([]string{id, raw, "wave", "batch", "normal", "ocean", "ocean", "5000", "ann", "5001",
			"2020-09-13T12:25:00", "2020-09-13T12:25:00", start, end, elapsed, exit, state, "8", "512", "512", "1000Mc",
			"", waveTRES, "00:30:00", nodes, name}, "|") + "\n"
	}
	return map[string]sample{
		"accounting.log": {jobs: 3, like: "xdmod_input_accounting-logs.log", text: plain("7700001", "7700001",
			"2020-09-13T12:26:00", "2020-09-13T12:29:20", "00:03:20", "0:0", "COMPLETED", waveNodes, "wave") +
			plain("7700002_3", "7700005", "2020-09-13T12:30:00", "2020-09-13T12:30:30", "00:00:30", "0:15",
				"CANCELLED by 5001", waveNodes, "sweep|3") +
			plain("7700006", "7700006", "Unknown", "Unknown", "00:00:00", "0:0", "PENDING", "None assigned", "later")},
		"scontrol.txt": {jobs: 1, like: "scontrol_show_job_inti.txt", text: `JobId=7700001 JobName=wave
   UserId=ann(5001) GroupId=ocean(5000) MCS_label=N/A
   Priority=1000 Nice=0 Account=ocean QOS=normal
   JobState=COMPLETED Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:03:20 TimeLimit=00:30:00 TimeMin=N/A
   SubmitTime=2020-09-13T12:25:00 EligibleTime=2020-09-13T12:25:00
   StartTime=2020-09-13T12:26:00 EndTime=2020-09-13T12:29:20 Deadline=N/A
   Partition=batch AllocNode:Sid=login1:4711
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=` + waveNodes + `
   BatchHost=nid00011
   NumNodes=8 NumCPUs=512 NumTasks=64 CPUs/Task=8 ReqB:S:C:T=0:0:*:*
   TRES=cpu=512,mem=512G,node=8,billing=512
     Nodes=` + waveNodes + ` CPU_IDs=0-63 Mem=65536 GRES=
   Features=(null) DelayBoot=00:00:00
   Command=/home/ann/wave.sh
   WorkDir=/home/ann
`},
		"squeue-21.08.json": {jobs: 1, like: "squeue_out.json",
			text: fmt.Sprintf(`{"meta":{"Slurm":{"release":"21.08.5"}},
"errors":[],"jobs":[{"account":"ocean","array_job_id":0,"array_task_id":null,"array_task_string":"","cluster":"wave",
`+
				"\"comment\":\"\",\"command\":\"/home/ann/wave.sh\",\"eligible_time\":%d,\"end_time\":%d,"+
				"\"exit_code\":0,\"group_id\":5000,\"job_id\":7700001,\n"+
				"\"job_state\":\"COMPLETED\",\"name\":\"wave\",\"node_count\":8,\"nodes\":\"%s\","+
				"\"cpus\":512,\"partition\":\"batch\",\"priority\":1000,\n"+
				"\"qos\":\"normal\",\"start_time\":%d,\"submit_time\":%d,\"time_limit\":30,"+
				"\"tres_alloc_str\":\"%s\",\"user_id\":5001,\"user_name\":\"ann\"}]}\n", waveSubmit, waveEnd, waveNodes,
				waveStart, waveSubmit, waveTRES)},
		"slurmrestd-24.05.json": {jobs: 1, like: "slurmrestd_24.05_0.0.41_slurm-job-running.json",
			text: `{"jobs":[{"account":"ocean","array_job_id":` + set(0) +
				`,"array_task_id":{"set":false,"infinite":false,"number":0},"cluster":"wave","comment":"","cpus":` +
				set(512) +
				`,"end_time":` + set(waveEnd) + `,"exit_code":` + exit +
				`,"job_id":7700001,"job_state":["COMPLETED"],"name":"wave","node_count":` +
				set(8) + `,"nodes":"` + waveNodes + `","partition":"batch","priority":` + set(1000) +
				`,"qos":"normal","start_time":` +
				set(waveStart) + `,"submit_time":` + set(waveSubmit) + `,"time_limit":` + set(30) +
				`,"tres_alloc_str":"` + waveTRES +
				`","user_id":5001,"user_name":"ann","group_name":"ocean"}]}` + "\n"},
		"slurmdb-24.05.json": {jobs: 2, like: "slurmrestd_24.05_0.0.41_slurmdb-job-completed.json", text: fmt.Sprintf(
			`{"jobs":[{"account":"ocean","comment":{"administrator":"","job":"","system":""},"allocation_nodes":8,
"array":{"job_id":0,"task_id":{"set":false,"infinite":false,"number":0},"task":""},"cluster":"wave","exit_code":%s,
"group":"ocean","job_id":7700001,"name":"wave","nodes":"%s","partition":"batch","priority":%s,"qos":"normal",
"state":{"current":["COMPLETED"],"reason":"None"},"steps":[{"time":{"elapsed":180,"start":%s,"end":%s},"exit_code":%s,
`+
				"\"nodes\":{\"count\":8,\"range\":\"%s\",\"list\":[\"nid00011\"]},\"state\":[\"COMPLETED\"],"+
				"\"step\":{\"id\":\"7700001.0\",\"name\":\"wave_mpi\"},\n"+
				`"tres":{"allocated":[{"type":"cpu","name":"","id":1,"count":512}]}}],
"time":{"elapsed":200,"eligible":%d,"end":%d,"start":%d,"submission":%d,"limit":%s},
`+
				"\"tres\":{\"allocated\":[{\"type\":\"cpu\",\"name\":\"\",\"id\":1,\"count\":512},"+
				"{\"type\":\"energy\",\"name\":\"\",\"id\":3,\"count\":-2}]},\"user\":\"ann\"}]}\n", exit, waveNodes,
			set(1000), set(waveStart+30), set(waveEnd), exit, waveNodes, waveSubmit, waveEnd, waveStart, waveSubmit,
			set(30))},
		"wave.slurm": {jobs: 3, like: "sample.slurm", text: "{" + strings.Join([]string{
			member("7700001.extern", "2020-09-13T12:26:00", "2020-09-13T12:29:20", names),
			member("7700001", "2020-09-13T12:26:00", "2020-09-13T12:29:20", names),
			member("7700001.0", "2020-09-13T12:26:30", "2020-09-13T12:29:10", names)}, ", ") + "}"},
	}
}

type sample struct {
	jobs       int
	text, like string
}

// realSamples is the folder of real files, where there is one.
const realSamples = "../../../../shared/data/slurm"

func TestSamples(t *testing.T) {
	for name, s := range samples() {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(s.text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(path)
		if err != nil || string(b) != s.text {
			t.Errorf("%s is not what is written: go test -run Samples -update (%v)", path, err)
		}
		got, err := readAll(t, s.text, Options{})
		if err != nil || len(got) != s.jobs {
			t.Errorf("%s: %d jobs, want %d; %v", name, len(got), s.jobs, err)
			continue
		}
		j := got[0]
		if j.ID != "7700001" || len(j.Nodes) != 8 || j.Start.Unix() != waveStart || j.End.Unix() != waveEnd ||
			name != "wave.slurm" && (j.User != "ann" || j.State != "COMPLETED" || *j.NodeCount != 8 || *j.CPUs != 512 ||
				*j.LimitSeconds != 1800) {
			t.Errorf("%s: %+v", name, j)
		}
		if real, err := os.ReadFile(filepath.Join(realSamples, s.like)); err == nil {
			like(t, name, []byte(s.text), real)
		}
	}
}

// like checks that a real file of the same form has the fields of the sample, of the same kinds.
func like(t *testing.T, name string, ours, theirs []byte) {
	t.Helper()
	fields := plainFields
	switch {
	case ours[0] == '{':
		fields = jsonFields
	case bytes.HasPrefix(ours, []byte("JobId=")):
		fields = func(b []byte) (keys []string) {
			for word := range strings.FieldsSeq(string(b)) {
				// The real files were cleaned of what names a person's files.
				private := strings.HasPrefix(word, "Command=") || strings.HasPrefix(word, "WorkDir=")
				if key, _, ok := strings.Cut(word, "="); ok && key != "CPU_IDs" && key != "GRES" && !private {
					keys = append(keys, key)
				}
			}
			return keys
		}
	}
	known := fields(theirs)
	for _, f := range fields(ours) {
		if !slices.Contains(known, f) {
			t.Errorf("%s: real files have no %s", name, f)
		}
	}
}

func plainFields(b []byte) []string {
	line, _, _ := strings.Cut(string(b), "\n")
	return []string{fmt.Sprintf("line of %d fields", strings.Count(line, "|")+1)}
}

// jsonFields are the paths of a document with the kinds of their values; jobs of a cache are alike whatever their name.
func jsonFields(b []byte) (paths []string) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return []string{err.Error()}
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, of := range v {
				if strings.Trim(key, "0123456789.") == "" || strings.Contains(key, ".extern") {
					key = "ID"
				}
				walk(path+"."+key, of)
			}
		case []any:
			for _, of := range v {
				walk(path+"[]", of)
			}
		default:
			paths = append(paths, fmt.Sprintf("%s (%T)", path, v))
		}
	}
	walk("", v)
	return paths
}
