package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"fairway/collector/logs/slurm"
)

// What a list of squeue or scontrol means for the job table: the number that hooks see, the application,
// which job runs, which is at its hooks, which has ended, and which waits.
func TestJobsOfABatchSystemsList(t *testing.T) {
	var jobs []slurm.Job
	text := `{"jobs":[
` +
		"\t {\"job_id\":11,\"array_job_id\":10,\"array_task_id\":2,\"job_state\":\"RUNNING\"," +
		"\"user_name\":\"ann\",\"name\":\"run.sh\",\"comment\":\"app=ROMS\",\"account\":\"phys\"," +
		"\"nodes\":\"cn[1-2]\",\"node_count\":2,\"start_time\":1790000000,\"qos\":\"high\"," +
		"\"priority\":{\"set\":true,\"infinite\":false,\"number\":4321}},\n" +
		"\t {\"job_id\":12,\"job_state\":\"CONFIGURING\",\"user_name\":\"ann\",\"name\":\"b\"," +
		"\"nodes\":\"cn3\",\"node_count\":1,\"start_time\":1790000000,\"qos\":\"low\",\"priority\":17},\n" +
		"\t {\"job_id\":13,\"job_state\":\"COMPLETED\",\"user_name\":\"ann\",\"name\":\"c\"," +
		"\"account\":\"(null)\",\"nodes\":\"cn4\",\"node_count\":1,\"start_time\":1790000000," +
		"\"end_time\":1790000060},\n" +
		"\t {\"job_id\":14,\"job_state\":\"PENDING\",\"user_name\":\"bob\",\"name\":\"d\",\"nodes\":\"\"," +
		"\"node_count\":8,\"start_time\":1790000100},\n" +
		"\t {\"job_id\":15,\"job_state\":\"PENDING\",\"user_name\":\"bob\",\"name\":\"e\",\"nodes\":\"\"," +
		"\"node_count\":8,\"start_time\":0}]}"
	if err := slurm.Read(strings.NewReader(text), slurm.Options{},
		func(j *slurm.Job) error { jobs = append(jobs, *j); return nil }); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, l := range listJobs(jobs) {
		fmt.Fprintf(&got, "%s %s %s %q %v %d %v %v %q %g\n", l.Job, l.User, l.App, l.Project, l.Nodes, l.Start.Unix(),
			!l.End.IsZero(), l.Starting, l.QOS, l.Priority)
	}
	for _, e := range expectJobs(jobs) {
		fmt.Fprintf(&got, "%s %s %s %d %d\n", e.Job, e.User, e.App, e.Nodes, e.Start.Unix())
	}
	const want = `11 ann ROMS "phys" [cn1 cn2] 1790000000 false false "high" 4321
12 ann b "" [cn3] 1790000000 false true "low" 17
13 ann c "" [cn4] 1790000000 true false "" 0
14 bob d 8 1790000100
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", &got, want)
	}
}
