package archive

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// childEnv makes the test binary an importer that the test kills.
const childEnv = "FAIRWAY_ARCHIVE_CHILD"

func TestMain(m *testing.M) {
	if paths := os.Getenv(childEnv); paths != "" {
		dir, from, _ := strings.Cut(paths, "\n")
		fmt.Println("ready")
		_, err := (&Importer{Dir: dir, Read: readRecipe, BatchRows: 14}).Import(context.Background(), from)
		fmt.Println("end", err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// However often an import is killed, every log ends up in the archive once.
func TestKilledImports(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "archive")
	logs(t, from, 60)
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	killed, before := 0, int64(0)
	for range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir+"\n"+from)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+r.IntN(400)) * time.Millisecond)
		_ = cmd.Process.Kill() // it may have ended
		if cmd.Wait() != nil {
			killed++
		}
		row := one(t, dir, "SELECT count(*) FROM read")
		if now := row[0].(int64); now < before {
			t.Fatalf("the archive lost logs: %d after %d", now, before)
		} else {
			before = now
		}
	}
	run1(t, Importer{Dir: dir}, from)
	got := one(t, dir,
		`SELECT (SELECT count(*) FROM job), (SELECT count(DISTINCT log) FROM job), (SELECT count(*) FROM jobfile),
`+
			"\t\t(SELECT count(DISTINCT (log, file)) FROM jobfile), (SELECT count(*) FROM read), (SELECT "+
			"count(*) FROM jobfile LEFT JOIN job USING (log) WHERE job.log IS NULL)")
	if want := []any{int64(60), int64(60), int64(180), int64(180), int64(60), int64(0)}; !slices.Equal(got, want) {
		t.Errorf("after %d kills: %v, want %v", killed, got, want)
	}
	if killed == 0 {
		t.Error("no import was killed: the test shows nothing")
	}
	t.Logf("%d of 12 imports were killed; %d logs before the last one", killed, before)
}
