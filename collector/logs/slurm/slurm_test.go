package slurm

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func readAll(t *testing.T, text string, o Options) ([]Job, error) {
	t.Helper()
	var out []Job
	err := Read(strings.NewReader(text), o, func(j *Job) error {
		out = append(out, *j)
		return nil
	})
	return out, err
}

// summary shows what matters of a job in one line.
func summary(j *Job) string {
	n := func(p *int64) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprint(*p)
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Format("01-02T15:04:05")
	}
	return fmt.Sprintf("%s/%d/%s/%s %s %s %s..%s el=%s lim=%s n=%s nodes=%d exit=%s", j.ID, j.RawID, j.ArrayTask,
		j.Step, j.State, j.User,
		at(j.Start), at(j.End), n(j.ElapsedSeconds), n(j.LimitSeconds), n(j.NodeCount), len(j.Nodes), n(j.ExitCode))
}

const line = "%s|1234|cl|p|q|acc|grp|100|ann|1000|2024-05-01T10:00:00|2024-05-01T10:00:00|" +
	"2024-05-01T10:00:05|%s|%s|%s|" +
	"%s|3|36|36|%s||%s|%s|%s|%s\n"

func TestSacctWithoutHeader(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{fmt.Sprintf(line, "1234", "2024-05-01T11:00:05", "01:00:00", "0:0", "COMPLETED", "31000Mn", "cpu=36",
			"1-00:00:00", "n[01-03]", "a|b ü"),
			"1234/1234// COMPLETED ann 05-01T10:00:05..05-01T11:00:05 el=3600 lim=86400 n=3 nodes=3 exit=0"},
		{fmt.Sprintf(line, "1230_4", "Unknown", "100-00:00:01", "0:9", "RUNNING", "2147486648Mn", "", "UNLIMITED",
			"n1,n2,n3", "x"),
			"1230_4/1234/4/ RUNNING ann 05-01T10:00:05..- el=8640001 lim=- n=3 nodes=3 exit=0"},
		{fmt.Sprintf(line, "1230_[1-3,7%2]", "Unknown", "00:00:00", "0:0", "CANCELLED by 77", "0n", "",
			"Partition_Limit", "None assigned", "x"),
			"1230_[1-3,7%2]/1234/[1-3,7%2]/ CANCELLED ann 05-01T10:00:05..- el=0 lim=- n=3 nodes=0 exit=0"},
		{fmt.Sprintf(line, "1234+1.batch", "2024-05-01T10:00:06", "00:01.5", "1:0", "OUT_OF_MEMORY", "3000Mc", "", "",
			"bgq1011[30101x30231]", "x"),
			"1234+1/1234//batch OUT_OF_MEMORY ann 05-01T10:00:05..05-01T10:00:06 el=1 lim=- n=3 nodes=0 exit=1"},
	} {
		got, err := readAll(t, c.text, Options{})
		if err != nil || len(got) != 1 || summary(&got[0]) != c.want {
			t.Errorf("%v %v\n got %s\nwant %s", err, len(got), summary(&got[0]), c.want)
		}
	}
	for _, none := range []string{"2147486648Mn", "0n", "0"} {
		if m, err := parseMemory(none); m != nil || err != nil {
			t.Errorf("%s of memory: %v, %v", none, m, err)
		}
	}
	got, _ := readAll(t, fmt.Sprintf(line, "1", "Unknown", "0:1", "0:9", "CANCELLED by 77", "2.50Gc",
		"cpu=12,gres/gpu=2", "", "n1", "a|b"), Options{})
	if j := got[0]; j.Name != "a|b" || j.CancelledBy != "77" || *j.Signal != 9 ||
		*j.ReqMem != (Memory{2560 << 20, "cpu"}) || j.TRES["gres/gpu"] != "2" {
		t.Errorf("%+v", j)
	}
}

func TestSacctWithHeader(t *testing.T) {
	zone := time.FixedZone("", -7*3600)
	got,
		err := readAll(t,
		"JobID|Start|End|State|Extra|NodeList|\n"+
			"7.0|2017-03-20T01:59:02|2017-03-20T02:11:39|FAILED|?|nid[05398-05399]|\n", Options{zone})
	if err != nil || len(got) != 1 || got[0].Start.Unix() != 1490000342 || got[0].Nodes[1] != "nid05399" ||
		got[0].Step != "0" {
		t.Errorf("%+v %v", got, err)
	}
	got, err = readAll(t, "JobIDRaw|End|State\n8|2017-03-20T02:11:39|RUNNING\n", Options{})
	if err != nil || got[0].ID != "8" || !got[0].End.IsZero() {
		t.Errorf("%+v %v", got, err)
	}
}

// TestBadLinesDoNotStopTheRest: each is reported with line, job and field.
func TestBadLinesDoNotStopTheRest(t *testing.T) {
	text := "JobID|Start|NodeList|User\n1|yesterday|n1|ann\n2|2024-05-01T10:00:05|n[1-|bob\nthree|||\n4|\n" +
		"5|2024-05-01T10:00:05|n5|eve\n"
	got, err := readAll(t, text, Options{})
	if len(got) != 3 || got[0].User != "ann" || got[1].User != "bob" || got[2].User != "eve" {
		t.Errorf("%+v", got)
	}
	var first *LineError
	if !errors.As(err, &first) {
		t.Fatal(err)
	}
	for _, says := range []string{"line 2: job 1: Start: ", "line 3: job 2: NodeList: ", `line 4: JobID: "three"`,
		"line 5: 2 fields, want 4"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q is missing in: %v", says, err)
		}
	}
}

// TestTextOfUsers: what users write may hold the separator or the end of a line, and costs no job.
func TestTextOfUsers(t *testing.T) {
	const both = "7 FAILED 1;8 TIMEOUT 1;"
	for text, want := range map[string]string{
		"JobID|JobName|State|NodeList\n7|crazy|name|FAILED|n1\n8|ok|TIMEOUT|n2\n":     both,
		"JobID|WorkDir|State|NodeList|\n7|/a|b|FAILED|n1|\n8|/c|TIMEOUT|n2|\n":        both,
		"JobID|Comment|State|NodeList|JobName\n7|x|FAILED|n1|a|b\n8|x|TIMEOUT|n2|c\n": both,
		"JobID|SubmitLine|State|NodeList\n7|a &&\n\nb|c|FAILED|n1\n8|x|TIMEOUT|n2\n":  both,
		"JobID|SubmitLine|State|NodeList\n7|cut off\n8|x|TIMEOUT|n2\n9|x\n":           "8 TIMEOUT 1;line 2,line 4",
		"JobID|Comment|JobName|State\n7|a|b|c|FAILED\n8|x|y|TIMEOUT\n":                "8 TIMEOUT 0;line 2",
	} {
		jobs, err := readAll(t, text, Options{})
		got, lines := "", []string{}
		for _, j := range jobs {
			got += fmt.Sprintf("%s %s %d;", j.ID, j.State, len(j.Nodes))
		}
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				line, _, _ = strings.Cut(line, ":")
				lines = append(lines, line)
			}
		}
		if got += strings.Join(lines, ","); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestJSONShapes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// 21.08: plain numbers, the end is a plan while the job runs.
		{
			`{"meta":{},"errors":[],"jobs":[{"job_id":5000000000,"array_job_id":0,"array_task_id":null,
			 "user_name":"ann","job_state":"RUNNING",
		  "start_time":1684114921,"end_time":1686633833,"time_limit":30,"nodes":"cs[75-76]","node_count":2,
		 "exit_code":0,
		  "job_resources":{"nodes":"cs[75-76]"}}]}`,
			"5000000000/5000000000// RUNNING ann 05-15T01:42:01..- el=- lim=1800 n=2 nodes=2 exit=0"},
		// What wait gave of a program that ended with 2, and one that was killed; the partition's time limit.
		{
			`{"jobs":[{"job_id":9,"job_state":"FAILED","exit_code":512,"time_limit":4294967294,"nodes":"c1"}]}`,
			"9/9// FAILED  -..- el=- lim=- n=- nodes=1 exit=2",
		},
		{
			`{"jobs":[{"job_id":9,"job_state":"FAILED","exit_code":9,"time_limit":null,"nodes":"c1"}]}`,
			"9/9// FAILED  -..- el=- lim=- n=- nodes=1 exit=0",
		},
		// 24.05: set, infinite, number; lists.
		{
			`{"jobs":[{"job_id":9,"array_job_id":{"set":true,"infinite":false,"number":7},
			 "array_task_id":{"set":true,"infinite":false,"number":0},
		  "user_name":"bob","job_state":["COMPLETED","REQUEUED"],"start_time":{"set":true,"infinite":false,
		 "number":1747754478},
		  "end_time":{"set":true,"infinite":false,"number":1747754598},"time_limit":{"set":true,
		 "infinite":true,"number":0},"nodes":"",
		  "node_count":{"set":false,"infinite":false,"number":3},"exit_code":{"status":["SUCCESS"],
		 "return_code":{"set":true,"infinite":false,"number":2}}}]}`,
			"7_0/9/0/ COMPLETED bob 05-20T15:21:18..05-20T15:23:18 el=- lim=- n=- nodes=0 exit=2"},
		// slurmdb.
		{
			`{"jobs":[{"job_id":649718,"user":"eve","allocation_nodes":1,"nodes":"cn001",
			 "state":{"current":["TIMEOUT"],"reason":"None"},
		  "time":{"elapsed":61,"start":1747754469,"end":0,"submission":1747754468,"limit":{"set":true,
		 "infinite":false,"number":1}},
		  "exit_code":{"return_code":{"set":true,"number":0},"signal":{"id":{"set":true,"number":15}}}}]}`,
			"649718/649718// TIMEOUT eve 05-20T15:21:09..- el=61 lim=60 n=1 nodes=1 exit=0"},
	} {
		got, err := readAll(t, c.text, Options{})
		if err != nil || len(got) != 1 || summary(&got[0]) != c.want {
			t.Errorf("%v\n got %+v\nwant %s", err, got, c.want)
			if len(got) > 0 {
				t.Log(summary(&got[0]))
			}
		}
	}
}

func TestJSONSteps(t *testing.T) {
	got,
		err := readAll(t,
		`{"jobs":[{"job_id":1,"nodes":"a[1-2]","state":{"current":"COMPLETED"},
		 "tres":{"allocated":[{"type":"cpu","count":4},
	 {"type":"energy","count":-2},{"type":"gres","name":"gpu","count":1}]},"steps":[{"step":{"id":"1.batch",
	 "name":"batch"},"nodes":{"count":1,"range":"a1","list":["a1"]},
	 "state":["COMPLETED"],"time":{"elapsed":1,"start":{"set":true,"number":1747754469},"end":{"set":true,
	 "number":1747754470}}},{"step":{"id":{"job_id":1,"step_id":{"set":true,"infinite":false,"number":3}}}},
	 {"step":{"id":{"job_id":1,"step_id":{"set":false,"infinite":false,"number":0}}}},
	 {"step":{"id":{"job_id":1,"step_id":"0"},"name":"app"},"nodes":{"list":["a1","a2"]},"state":"RUNNING",
	 "time":{"start":1747754469,"end":1747754470}}]}]}`, Options{})
	if err != nil || len(got) != 5 || got[2].Step != "3" || got[3].Step != "?" {
		t.Fatal(err, got)
	}
	got = append(got[:2], got[4])
	if j := got[0]; *j.CPUs != 4 || j.TRES["gres/gpu"] != "1" || len(j.TRES) != 2 {
		t.Errorf("%+v", j)
	}
	if got[1].Step != "batch" || got[1].End.IsZero() || len(got[1].Nodes) != 1 || got[2].Step != "0" ||
		!got[2].End.IsZero() || len(got[2].Nodes) != 2 {
		t.Errorf("%+v", got[1:])
	}
}

func TestJSONRefusals(t *testing.T) {
	for text, says := range map[string]string{
		`{"jobs":[{"job_id":1},`:                        "JSON at byte",
		`{"nodes":[]}`:                                  "want the output of sacct --json",
		`{"jobs":7}`:                                    "not a list",
		`{"jobs":[{"job_id":1,"nodes":"a[1-"}]}`:        "job 1: nodes",
		`{"jobs":[{"job_id":1,"start_time":-5}]}`:       "start_time",
		`{"jobs":[{"job_id":1,"name":5},{"job_id":2}]}`: "jobs[0]",
	} {
		if _, err := readAll(t, text, Options{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// TestListsThatAreNotWhole: what Slurm puts beside a list that it could not get is an error, also where its program did
// not fail; so is a list of something else. A list without jobs is read.
func TestListsThatAreNotWhole(t *testing.T) {
	const down = `"errors":[{"description":"Failed to query","error_number":1,"error":"Unable to contact slurm ` +
		`controller","source":"slurm_load_jobs()"}]`
	for text, want := range map[string]string{
		`{"jobs":[],` + down + `}`:                                       "Failed to query (Unable to contact",
		`{` + down + `,"jobs":[{"job_id":7}]}`:                           "the list is not whole",
		`{"jobs":[],"errors":"none"}`:                                    "errors: json",
		`{"jobs":[{"id":"f2PTYP4HzE5","state":"RUN","nnodes":2}]}`:       "jobs[0]: no job_id",
		`{"jobs":[` + strings.Repeat(`{"id":1},`, 30) + `{"id":2}]}`:     "no job_id; want",
		"JobId=one JobName=x\n":                                          "not a job ID",
		`{"jobs":[],"errors":[],"warnings":[{"description":"late"}]}`:    "",
		`{"jobs":[],"errors":[{"error_number":9003,"error":"Nothing"}]}`: "",
		"No jobs in the system\n":                                        "",
	} {
		jobs, err := readAll(t, text, Options{})
		if want == "" && (err != nil || len(jobs) > 0) || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %d jobs, %v; want %q", text, len(jobs), err, want)
		}
	}
}

func TestScontrol(t *testing.T) {
	got, err := readAll(t, `JobId=12 ArrayJobId=10 ArrayTaskId=2 JobName=a b=c
   UserId=ann(1000) GroupId=grp(100) MCS_label=N/A
   JobState=RUNNING Reason=None
   RunTime=5-21:51:00 TimeLimit=7-00:00:00
   StartTime=2025-01-21T16:47:16 EndTime=2025-01-28T16:47:16 Deadline=N/A
   NodeList=inti[6015,6019]
   NumNodes=2 NumCPUs=256
     Nodes=inti[6015,6019] CPU_IDs=0-255 Mem=240000
   Command=/x Y=JobId=3 NodeList=z
JobId=13 Name=old JobState=COMPLETED StartTime=2025-01-21T16:47:16 EndTime=2025-01-28T16:47:16
   MidplaneList=(null) NodeList=(null)
`, Options{})
	if err != nil || len(got) != 2 {
		t.Fatalf("%v %+v", err, got)
	}
	if want := "10_2/12/2/ RUNNING ann 01-21T16:47:16..- el=510660 lim=604800 n=2 nodes=2 exit=-"; summary(
		&got[0]) != want || got[0].Name != "a b=c" {
		t.Errorf("%s (%q), want %s", summary(&got[0]), got[0].Name, want)
	}
	if want := "13/13// COMPLETED  01-21T16:47:16..01-28T16:47:16 el=- lim=- n=- nodes=0 exit=-"; summary(
		&got[1]) != want || got[1].Name != "old" {
		t.Errorf("%s (%q), want %s", summary(&got[1]), got[1].Name, want)
	}
}

// real are files of real systems; each has at least so many jobs and no line that is not understood.
// With -o all keys of a job stand in one line. What follows a command or a comment is read, but nobody
// gives a job other nodes by writing them there.
func TestScontrolOneLine(t *testing.T) {
	got,
		err := readAll(t,
		`JobId=7 JobName=run UserId=ann(1000) JobState=RUNNING NodeList=cn[1-2] Command=/x NodeList=z JobId=9 `+
			`WorkDir=/home/a b UserId=root(0) `+
			`Comment=app=ROMS, NodeList=y StdErr=/dev/null StdIn=/dev/null StdOut=/dev/null Power= MailUser=ann
JobId=8 JobName=next JobState=PENDING Command=(null) WorkDir=/ Comment=(null)
`, Options{})
	if err != nil || len(got) != 2 {
		t.Fatalf("%v %+v", err, got)
	}
	if j := got[0]; j.ID != "7" || j.User != "ann" || j.NodeList != "cn[1-2]" || j.Comment != "app=ROMS, NodeList=y" {
		t.Errorf("%+v", j)
	}
	if j := got[1]; j.ID != "8" || j.Name != "next" || j.Comment != "" {
		t.Errorf("%+v", j)
	}
}

func TestApplicationIsTheNameOrWhatTheCommentSays(t *testing.T) {
	for comment, want := range map[string]string{"": "run", "of ann": "run", "app=ROMS": "ROMS", "x;app=WRF,y": "WRF"} {
		if got := Application("run", comment); got != want {
			t.Errorf("%q: %q, want %q", comment, got, want)
		}
	}
	for _, text := range []string{`{"jobs":[{"job_id":1,"comment":"app=A"}]}`,
		`{"jobs":[{"job_id":1,"comment":{"administrator":"x","job":"app=A"}}]}`,
		"JobID|Comment|JobName\n1|app=A|run\n", "JobId=1 JobName=run\n   Comment=app=A\n"} {
		got, err := readAll(t, text, Options{})
		if err != nil || len(got) != 1 || Application(got[0].Name, got[0].Comment) != "A" {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
}

func TestAskIsWholeOrAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs")
	ask := func(text string, argv ...string) ([]Job, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Ask(t.Context(), append(argv, file), 10*time.Second, Options{})
	}
	if jobs, err := ask(`{"jobs":[{"job_id":7,"nodes":"n1"}]}`, "cat"); err != nil || len(jobs) != 1 ||
		jobs[0].ID != "7" {
		t.Errorf("%+v %v", jobs, err)
	}
	if jobs, err := ask(`{"jobs":[]}`, "cat"); err != nil || len(jobs) != 0 {
		t.Errorf("%+v %v", jobs, err)
	}
	for name, c := range map[string]struct {
		text string
		argv []string
		says string
	}{
		"nothing":       {"", []string{"cat"}, "printed nothing"},
		"half a list":   {`{"jobs":[{"job_id":7},`, []string{"cat"}, "JSON at byte"},
		"a bad job":     {`{"jobs":[{"job_id":7,"nodes":"a[1-"},{"job_id":8}]}`, []string{"cat"}, "job 7: nodes"},
		"it fails":      {"", []string{"ls", "/nonexistent"}, "No such file"},
		"no program":    {"", []string{"/nonexistent"}, "no such file"},
		"other words":   {"slurm_load_jobs error: Unable to contact slurm controller\n", []string{"cat"}, "fields"},
		"no shell here": {"", []string{"echo $HOME;"}, "echo $HOME"},
	} {
		if jobs, err := ask(c.text, c.argv...); err == nil || jobs != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v, want %q", name, jobs, err, c.says)
		}
	}
	if _, err := Ask(t.Context(), []string{"sleep", "60"}, 50*time.Millisecond, Options{}); err == nil ||
		!strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("%v", err)
	}
}

var real = map[string]int{"phillips.log.gz": 4285, "sample.slurm": 11, "scontrol_show_job_inti.txt": 1,
	"scontrol_show_job_hummingbird.txt":              1,
	"slurmrestd_24.05_0.0.41_slurm-job-running.json": 1, "slurmrestd_24.05_0.0.41_slurm-jobs.json.gz": 2,
	"slurmrestd_24.05_0.0.41_slurmdb-job-archived.json": 1, "slurmrestd_24.05_0.0.41_slurmdb-job-completed.json": 2,
	"slurmrestd_24.05_0.0.41_slurmdb-job-running.json": 1, "slurmrestd_24.05_0.0.41_slurmdb-job-timeout.json": 1,
	"slurmrestd_25.05_0.0.43_slurm-job-running.json": 1, "slurmrestd_25.05_0.0.43_slurmdb-job-completed.json": 1,
	"squeue_out.json": 1,
	"xdmod_input_accounting-logs-with-job-arrays.log": 4, "xdmod_input_accounting-logs.log": 4}

// TestRealFiles reads every line of real files, where there are some.
func TestRealFiles(t *testing.T) {
	dir := realSamples
	if _, err := os.Stat(dir); err != nil {
		return // TestSamples reads samples of the same forms
	}
	for name, least := range real {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if b, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		got, err := readAll(t, string(b), Options{})
		if err != nil || len(got) < least {
			t.Errorf("%s: %d jobs, want %d; %v", name, len(got), least, err)
			continue
		}
		t.Logf("%s: %d, %s", name, len(got), summary(&got[0]))
		for i := range got {
			j := &got[i]
			if j.NodeCount != nil && *j.NodeCount > 0 && len(j.Nodes) > 0 && int64(len(j.Nodes)) != *j.NodeCount &&
				j.Step == "" {
				t.Errorf("%s: job %s has %d nodes, its list %d", name, j.ID, *j.NodeCount, len(j.Nodes))
			}
		}
	}
}

// TestStepsOfTheJob: the job's program runs inside its step.
func TestStepsOfTheJob(t *testing.T) {
	b, err := os.ReadFile("testdata/wave.slurm")
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t, string(b), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range got {
		if j.Step == "" && (j.Start.Unix() != waveStart || len(j.Nodes) != 8) {
			t.Errorf("starts %d on %d nodes", j.Start.Unix(), len(j.Nodes))
		}
		if j.Step == "0" && (j.Start.Unix() > 1600000000 || j.End.Unix() < 1600000119) {
			t.Errorf("step 0 runs from %d to %d", j.Start.Unix(), j.End.Unix())
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(line, "1230_[1-3,7%2]", "Unknown", "00:00:00", "0:0", "CANCELLED by 77", "0n", "",
		"Partition_Limit", "n[1-3]", "x")))
	f.Add(
		[]byte(
			"JobID|Start|End|State|Extra|NodeList|\n" +
				"7.0|2017-03-20T01:59:02|2017-03-20T02:11:39|FAILED|?|nid[05398-05399]|\n"))
	f.Add(
		[]byte(
			`{"jobs":[{"job_id":{"set":true,"number":1},"nodes":{"list":["a1"]},"state":{"current":["X"]},
			 "steps":[{"step":{"id":{"step_id":"0"}}}]}]}`))
	f.Add(
		[]byte("JobId=12 ArrayJobId=10 ArrayTaskId=2 JobName=a b=c\n   UserId=ann(1000) TRES=cpu=1 NodeList=a[1-2]\n"))
	f.Add([]byte(`{"1.0":{"jobidraw":"1.0","start":"2017-03-20T01:59:02","nodelist":["a"]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = Read(bytes.NewReader(b), Options{}, func(j *Job) error {
			if j.ID == "" {
				t.Fatal("a job without a name")
			}
			_, err := json.Marshal(j)
			return err
		})
	})
}

// TestStatesAreSets: a base state and its flags are one state as Slurm's programs print it, and a part of a
// heterogeneous job has its number.
func TestStatesAreSets(t *testing.T) {
	job := func(id int, states string) string {
		return fmt.Sprintf(`{"job_id":%d,"job_state":%s,"nodes":"c1","start_time":1714550400,"end_time":1714550500}`,
			id, states)
	}
	in := `{"jobs":[` + strings.Join([]string{job(1, `["RUNNING","CONFIGURING"]`), job(2, `["COMPLETED","COMPLETING"]`),
		job(3, `["FAILED","REQUEUE_HOLD"]`), job(4, `["PENDING","REQUEUED"]`), job(5, `["COMPLETED"]`), job(6, `[]`),
		job(7, `"RUNNING"`)}, ",") + `]}`
	var got []string
	each := func(j *Job) error {
		got = append(got, fmt.Sprintf("%s %s ended=%t", j.ID, j.State, !j.End.IsZero()))
		return nil
	}
	if err := Read(strings.NewReader(in), Options{}, each); err != nil {
		t.Error(err)
	}
	het := "JobId=71 HetJobId=70 HetJobOffset=1 JobName=x\n   JobState=RUNNING\n"
	if err := Read(strings.NewReader(het), Options{}, each); err != nil {
		t.Error(err)
	}
	want := []string{"1 CONFIGURING ended=false", "2 COMPLETING ended=false", "3 REQUEUE_HOLD ended=false",
		"4 PENDING ended=false", "5 COMPLETED ended=true", "6  ended=true", "7 RUNNING ended=false",
		"70+1 RUNNING ended=false"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
