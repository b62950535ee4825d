package filedomain

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The collective write of the test: four ranks, each with 16 blocks of 60,000 bytes, interleaved in one
// file whose stripes of 64 KiB lie on two servers. No even cut of it falls on a stripe boundary.
const (
	ranks, blocks, blockBytes = 4, 16, 60_000
)

var mpiCase = Case{End: ranks * blocks * blockBytes, StripeSize: 64 << 10, Servers: 2, Aggregators: 3, Method: Even}

// mpiexec has ranks talk through memory. UCX otherwise opens each network device of the machine and gives up when one
// has gone meanwhile, as those of other tests do.
var mpiexec = []string{"mpiexec.hydra", "-genv", "UCX_TLS", "self,sm"}

// TestHintsAreTakenByROMIO gives the advised hints to a real MPI-IO library and looks at what it then
// says it uses and at what it really writes.
func TestHintsAreTakenByROMIO(t *testing.T) {
	writer := buildWriter(t)
	advised := Advise(mpiCase).Hints
	// All ranks are on one machine, where ROMIO takes one aggregator unless hints differ.
	everywhere := map[string]string{"cb_config_list": "*:*"}

	plain := map[string]string{"cb_nodes": fmt.Sprint(mpiCase.Aggregators), "romio_cb_write": "enable"}
	maps.Copy(plain, everywhere)
	maps.Copy(advised, everywhere)
	before, after := collective(t, writer, plain), collective(t, writer, advised)

	for key, want := range advised {
		got, printed := after.used[key], after.printed[key]
		if key == "striping_factor" && got == "" {
			continue // only file systems with stripes report it
		}
		if got != want || printed != want {
			t.Errorf("%s: %q was advised, the library uses %q and ROMIO_PRINT_HINTS says %q", key, want, got, printed)
		}
		if before.used[key] == want && key != "romio_cb_write" && key != "cb_config_list" && key != "cb_buffer_size" {
			t.Errorf("%s is %q without the advice too: the run proves nothing", key, want)
		}
	}
	if n := len(strings.Fields(after.used["romio_aggregator_list"])); n != Matched(mpiCase.Aggregators,
		mpiCase.Servers) {
		t.Errorf("%d aggregators (%s), want %s", n, after.used["romio_aggregator_list"], advised["cb_nodes"])
	}
	if !bytes.Equal(before.data, after.data) {
		t.Error("the two runs wrote different files")
	}
	t.Logf("stripes with more than one writer: %d without the hints, %d with them", before.shared, after.shared)
	if before.shared >= 0 && (before.shared == 0 || after.shared != 0) {
		t.Errorf("%d stripes had several writers without the hints and %d with them; want some, then none",
			before.shared, after.shared)
	}
}

// TestAggregatorsAreThoseThatAreNamed: a real MPI-IO library takes the nodes of cb_config_list in its order, one
// process of each, and passes over names that it does not know.
func TestAggregatorsAreThoseThatAreNamed(t *testing.T) {
	writer := buildWriter(t)
	if os.Geteuid() != 0 {
		t.Skip("skipped: nodes' names need root")
	}
	file := filepath.Join(t.TempDir(), "file")
	argv := append(mpiexec[:len(mpiexec):len(mpiexec)], "-launcher", "fork")
	for i := range ranks {
		argv = append(argv, "-n", "1", "unshare", "--uts", "sh", "-c", `hostname "$0" && exec "$@"`,
			fmt.Sprint("c", i/2), writer, file, "4", "4000", "romio_cb_write=enable",
			"cb_nodes=2", "cb_config_list=c1:1,nobody:1,*:1", ":")
	}
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:len(argv)-1]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.Fields(pairs(usedLine, out)["romio_aggregator_list"]); !slices.Equal(got, []string{"2", "0"}) {
		t.Errorf("aggregators are ranks %v, want 2 and 0: the first of c1, then of c0", got)
	}
}

func buildWriter(t *testing.T) string {
	t.Helper()
	for _, p := range []string{"mpicc.mpich", "mpiexec.hydra"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("skipped: %s is not installed (Debian: mpich libmpich-dev)", p)
		}
	}
	out := filepath.Join(t.TempDir(), "collective")
	if b, err := exec.Command("mpicc.mpich", "-O1", "-Wall", "-Werror", "-o", out,
		"../../../cmd/lab/papers/mpi/collective.c").CombinedOutput(); err != nil {
		t.Fatalf("build the writer: %v\n%s", err, b)
	}
	return out
}

// run is what one collective write showed.
type run struct {
	used, printed map[string]string // hints, as MPI_File_get_info and as ROMIO_PRINT_HINTS say
	data          []byte
	shared        int // stripes that more than one process wrote; -1: strace is not installed
}

var (
	usedLine    = regexp.MustCompile(`(?m)^used ([a-z_]+)=(.*?)\s*$`)
	printedLine = regexp.MustCompile(`(?m)^key = ([a-z_]+)\s+value = (.*?)\s*$`)
	writeCall   = regexp.MustCompile(`^(\d+) .*pwrite64\(.*, (\d+), (\d+)(?:\)| <unfinished)`)
)

// collective writes a file under hints.
func collective(t *testing.T, writer string, hints map[string]string) run {
	t.Helper()
	dir := t.TempDir()
	file, trace := filepath.Join(dir, "file"), filepath.Join(dir, "trace")
	argv := append(mpiexec[:len(mpiexec):len(mpiexec)], "-n", fmt.Sprint(ranks), writer, file, fmt.Sprint(blocks),
		fmt.Sprint(blockBytes))
	for _, key := range slices.Sorted(maps.Keys(hints)) {
		argv = append(argv, key+"="+hints[key])
	}
	_, err := exec.LookPath("strace")
	if err == nil {
		argv = append([]string{"strace", "-f", "-q", "-s", "0", "-e", "trace=pwrite64", "-o", trace}, argv...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "ROMIO_PRINT_HINTS=1")
	out, runErr := cmd.CombinedOutput()
	if runErr != nil {
		t.Fatalf("%v: %v\n%s", argv, runErr, out)
	}
	r := run{used: pairs(usedLine, out), printed: pairs(printedLine, out), shared: -1}
	if r.data, runErr = os.ReadFile(file); runErr != nil || int64(len(r.data)) != mpiCase.End {
		t.Fatalf("the file has %d bytes, want %d (%v)", len(r.data), mpiCase.End, runErr)
	}
	if err == nil {
		r.shared = sharedStripes(t, trace)
	}
	return r
}

func pairs(line *regexp.Regexp, out []byte) map[string]string {
	m := map[string]string{}
	for _, p := range line.FindAllSubmatch(out, -1) {
		m[string(p[1])] = string(p[2])
	}
	return m
}

// sharedStripes counts the stripes that several processes wrote, in a trace.
func sharedStripes(t *testing.T, trace string) (shared int) {
	t.Helper()
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	writers := map[int64]map[string]bool{}
	written := int64(0)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := writeCall.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		n, err1 := strconv.ParseInt(m[2], 10, 64)
		off, err2 := strconv.ParseInt(m[3], 10, 64)
		if err1 != nil || err2 != nil || n == 0 {
			continue
		}
		written += n
		for k := off / mpiCase.StripeSize; k <= (off+n-1)/mpiCase.StripeSize; k++ {
			if writers[k] == nil {
				writers[k] = map[string]bool{}
			}
			writers[k][m[1]] = true
		}
	}
	if written < mpiCase.End {
		t.Fatalf("the trace shows %d bytes written, the file has %d", written, mpiCase.End)
	}
	for _, w := range writers {
		if len(w) > 1 {
			shared++
		}
	}
	return shared
}
