package logread

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairway/collector/logs/darshan"
	"fairway/tsdb/history/iolog"
)

// record is one record of a handmade log.
type record struct {
	id     uint64
	rank   int64
	ints   map[string]int64
	floats map[string]float64
}

// handmade writes an uncompressed log of format 3.21: 8 processes, started at 1000 s.
func handmade(posix, mpiio []record, lustre []byte, datasets ...record) []byte {
	var job, names bytes.Buffer
	put := func(w *bytes.Buffer, v any) { _ = binary.Write(w, binary.LittleEndian, v) } // a buffer cannot fail
	put(&job, []int64{1000, 1000, 1009, 8, 77})
	job.Write(make([]byte, 1024))
	job.WriteString("/home/wei/bin/roms in.nml\nlustre\t/scratch\n")
	for id, name := range map[uint64]string{1: "/scratch/a", 2: "/scratch/b", 3: "<STDOUT>", 4: "/scratch/a:/x"} {
		put(&names, id)
		names.WriteString(name + "\x00")
	}
	section := func(m darshan.Module, recs []record) []byte {
		var out bytes.Buffer
		ints, floats := darshan.CounterNames(m)
		for _, r := range recs {
			put(&out, r.id)
			put(&out, r.rank)
			for _, name := range ints {
				if name == "H5D_FILE_REC_ID" {
					break // not in version 1
				}
				put(&out, r.ints[name])
			}
			for _, name := range floats {
				put(&out, r.floats[name])
			}
		}
		return out.Bytes()
	}
	head := make([]byte, 360)
	copy(head, "3.21")
	binary.LittleEndian.PutUint64(head[8:], 6567223)
	head[16] = 2 // not compressed
	out := append(head, job.Bytes()...)
	put64 := func(at int, b []byte) {
		if len(b) > 0 {
			binary.LittleEndian.PutUint64(out[at:], uint64(len(out)))
			binary.LittleEndian.PutUint64(out[at+8:], uint64(len(b)))
			out = append(out, b...)
		}
	}
	put64(24, names.Bytes())
	for id, m := range map[int]struct {
		version uint32
		b       []byte
	}{1: {4, section(darshan.POSIX, posix)}, 2: {3, section(darshan.MPIIO, mpiio)},
		4: {1, section(darshan.H5D, datasets)}, 7: {1, lustre}} {
		put64(40+16*id, m.b)
		binary.LittleEndian.PutUint32(out[296+4*id:], m.version)
	}
	return out
}

func parse(t *testing.T, b []byte) *iolog.Log {
	t.Helper()
	l, err := Read(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), 42, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestHandmadeLog(t *testing.T) {
	posix := func(id uint64, rank, reads int64, start, end float64) record {
		return record{id, rank, map[string]int64{"POSIX_OPENS": 1, "POSIX_READS": reads,
			"POSIX_BYTES_READ": reads * 1000, "POSIX_CONSEC_READS": reads / 2, "POSIX_SEQ_READS": reads,
			"POSIX_SIZE_READ_100_1K": reads}, map[string]float64{"POSIX_F_READ_START_TIMESTAMP": start,
			"POSIX_F_READ_END_TIMESTAMP": end, "POSIX_F_READ_TIME": 1}}
	}
	var lustre bytes.Buffer
	if err := binary.Write(&lustre, binary.LittleEndian, []int64{1, 0, 248, 1, -1, 1 << 20, 2, 20, 21}); err != nil {
		t.Fatal(err)
	}
	l := parse(t, handmade(
		[]record{posix(1, -1, 10, 2, 5), posix(2, 3, 4, 1, 2), posix(2, 4, 4, 0.5, 1.5), posix(3, 0, 9, 1, 9)},
		[]record{{1, -1, map[string]int64{"MPIIO_COLL_READS": 10, "MPIIO_BYTES_READ": 9999}, nil}},
		lustre.Bytes()))
	j := l.Jobs[0]
	if j.JobID != "77" || j.App != "roms" || j.Procs != 8 || j.Log != 42 || j.Start.Unix() != 1000 ||
		j.RunSeconds != 10 {
		t.Errorf("job %+v", j)
	}
	if j.Files != 2 || j.SharedFiles != 2 || j.FullFiles != 1 || j.BytesRead != 18000 || j.PosixReads != 18 ||
		j.ConsecReads != 9 || j.SizeReads[1] != 18 || !j.UsesCollective || j.UsesStdio {
		t.Errorf("job %+v", j)
	}
	slices.SortFunc(l.JobFiles, func(a, b iolog.JobFile) int { return int(a.File - b.File) })
	a, b := l.JobFiles[0], l.JobFiles[1]
	if a.Procs != 8 || a.BytesRead != 10000 || !a.UsesMPIIO || *a.StripeCount != 2 || *a.StripeSize != 1<<20 ||
		!slices.Equal(a.OSTs, []int32{20, 21}) || a.ReadStart != 2 || a.ReadEnd != 5 || !math.IsNaN(a.WriteStart) {
		t.Errorf("file a %+v", a)
	}
	if b.Procs != 2 || b.Reads != 8 || b.ReadStart != 0.5 || b.ReadEnd != 2 || b.SmallReads != 8 ||
		b.StripeCount != nil || b.ReadSeconds != 2 {
		t.Errorf("file b %+v", b)
	}
	if a.StripeOffset == nil || *a.StripeOffset != -1 || b.StripeOffset != nil {
		t.Errorf("stripe offsets %v %v", a.StripeOffset, b.StripeOffset)
	}
	if len(l.Files) != 2 || l.Files[0].Mount != "/scratch" || l.Files[0].FS != "lustre" {
		t.Errorf("names %+v", l.Files)
	}
}

func TestMPIIOStandsInWherePosixIsMissing(t *testing.T) {
	l := parse(t,
		handmade(nil, []record{{1, -1, map[string]int64{"MPIIO_INDEP_WRITES": 3, "MPIIO_COLL_WRITES": 2,
			"MPIIO_BYTES_WRITTEN": 500}, nil}}, nil))
	if f := l.JobFiles[0]; f.BytesWritten != 500 || f.Writes != 5 || f.PosixWrites != 0 || !f.UsesCollective {
		t.Errorf("%+v", f)
	}
}

func TestDamage(t *testing.T) {
	b := handmade([]record{{id: 1, rank: 0}, {id: 2, rank: 0}}, nil, nil)
	binary.LittleEndian.PutUint64(b[40+16+8:], 2*704-100) // the second record is cut
	l := parse(t, b)
	if len(l.JobFiles) != 1 || !strings.Contains(l.Problem, "POSIX") {
		t.Errorf("%d files, problem %q", len(l.JobFiles), l.Problem)
	}
	if _, err := Read(io.NewSectionReader(strings.NewReader("# readme"), 0, 8), 1, Options{}); !errors.Is(err,
		iolog.ErrNotALog) {
		t.Errorf("a readme: %v", err)
	}
}

// The totals of every sample log, and of real ones where these lie beside the repository, against what the upstream
// parser prints of it.
func TestSamplesAgainstUpstreamTotals(t *testing.T) {
	logs, _ := filepath.Glob("../../../collector/logs/darshan/testdata/darshan/*.darshan")
	real, _ := filepath.Glob("../../../../shared/data/darshan/*.darshan")
	logs = append(logs, real...)
	compared := 0
	for _, path := range logs {
		name := strings.TrimSuffix(filepath.Base(path), ".darshan")
		want := totals(t, filepath.Join(filepath.Dir(path), "expected", name+".perf.txt.gz"))
		if want == nil {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		l, err := Read(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), 1, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if l.Jobs[0].UsesPosix {
			compared++
			j := l.Jobs[0]
			for counter, got := range map[string]int64{"POSIX_READS": j.PosixReads, "POSIX_WRITES": j.PosixWrites,
				"POSIX_SEQ_READS": j.SeqReads, "POSIX_SEQ_WRITES": j.SeqWrites, "POSIX_CONSEC_WRITES": j.ConsecWrites} {
				if w := want["total_"+counter]; w != got {
					t.Errorf("%s: %s is %d, upstream says %d", name, counter, got, w)
				}
			}
			// Of some files MPI-IO saw bytes whose POSIX records were cut off.
			w, mpi, stdio := want["total_POSIX_BYTES_WRITTEN"], want["total_MPIIO_BYTES_WRITTEN"],
				want["total_STDIO_BYTES_WRITTEN"]
			if j.BytesWritten < max(w, mpi) || j.BytesWritten > w+stdio+mpi || mpi == 0 && j.BytesWritten > w+stdio {
				t.Errorf("%s: %d bytes written, upstream POSIX %d, MPI-IO %d and STDIO %d", name, j.BytesWritten, w,
					mpi,
					stdio)
			}
		}
	}
	if compared < 4 {
		t.Errorf("only %d logs were compared", compared)
	}
	t.Logf("%d of %d logs compared", compared, len(logs))
}

// totals reads lines "total_X: n" of the upstream parser's output.
func totals(t *testing.T, path string) map[string]int64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for s := bufio.NewScanner(z); s.Scan(); {
		name, value, ok := strings.Cut(s.Text(), ": ")
		if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); ok && err == nil &&
			strings.HasPrefix(name, "total_") {
			out[name] = n
		}
	}
	return out
}

func TestSlurm(t *testing.T) {
	read := func(text string) (*iolog.Log, error) {
		return Read(io.NewSectionReader(strings.NewReader(text), 0, int64(len(text))), 1, Options{})
	}
	l, err := read("JobID|JobIDRaw|User|JobName|Partition|Account|State|Submit|Start|End|NNodes|NodeList\n" +
		"100_2|102|wei|ocean|batch|phys|COMPLETED|2026-11-20T09:00:00|2026-11-20T10:00:00|" +
		"2026-11-20T11:00:00|3|n[01-03]\n" +
		"100_2.batch|102.batch||batch||phys|COMPLETED|2026-11-20T09:00:00|2026-11-20T10:00:00|" +
		"2026-11-20T11:00:00|1|n01\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Slurm) != 1 {
		t.Fatalf("%d rows: %+v", len(l.Slurm), l.Slurm)
	}
	r := l.Slurm[0]
	if r.JobID != "102" || r.SlurmID != "100_2" || r.User != "wei" || r.Start.Hour() != 10 || *r.NodeCount != 3 ||
		!slices.Equal(r.Nodes, []string{"n01", "n02", "n03"}) {
		t.Errorf("%+v", r)
	}
	for _, text := range []string{`{"files":[]}`, "a|b|c|d\n1|2|3|4\n", "some text\n"} {
		if _, err := read(text); !errors.Is(err, iolog.ErrNotALog) {
			t.Errorf("%q: %v", text, err)
		}
	}
	// The same, compressed; a file that is cut off is an error, and other compressed text is not a log.
	squeeze := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	dump := strings.Repeat(
		"102|102|c|p|q|a|g|1|wei|1000|2026-11-20T09:00:00|2026-11-20T09:00:00|2026-11-20T10:00:00|"+
			"2026-11-20T11:00:00|01:00:00|0:0|COMPLETED|1|1|1|0n||||n1|x\n", 500)
	if l, err := read(squeeze(dump)); err != nil || len(l.Slurm) != 500 || l.Problem != "" || l.Kind != "slurm" {
		t.Errorf("a compressed dump: %v", err)
	}
	var noisy strings.Builder // so that half of the compressed bytes is half of the jobs
	for i := range 2000 {
		fmt.Fprintf(&noisy,
			"%d|%d|c|p|q|a|g|1|u%x|1000|2026-11-20T09:00:00|2026-11-20T09:00:00|2026-11-20T10:00:00|"+
				"2026-11-20T11:00:00|01:00:00|0:0|COMPLETED|1|1|1|0n||||n1|x\n", i+1, i+1, i*i*2654435761)
	}
	cut := squeeze(noisy.String())
	if l, err := read(cut[:len(cut)/2]); err != nil || len(l.Slurm) == 0 || l.Problem == "" {
		t.Errorf("a cut dump: %v", err)
	}
	if _, err := read(squeeze("hello")); !errors.Is(err, iolog.ErrNotALog) {
		t.Errorf("compressed text: %v", err)
	}
	if _, err := read(squeeze(dump[:100] + strings.Repeat("0", 64<<20))); err == nil {
		t.Error("a line of 64 MB from a few bytes was read")
	}
	// A list of names in brackets is long in memory, not in a file: what was read until the bound is kept.
	many := strings.Repeat(strings.Replace(dump[:strings.IndexByte(dump, '\n')+1], "n1|x", "n[1-1000]|x", 1), 100)
	bounded, err := slurmRows(strings.NewReader(many), Options{}, 50*(rowBytes+1000*nameBytes))
	if err != nil || !strings.Contains(bounded.Problem, "memory") || len(bounded.Slurm) != 51 {
		t.Errorf("a hundred thousand node names: %v", err)
	}
	for what, text := range map[string]string{"compressed": squeeze(dump), "plain": dump,
		"a target's": "TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES\n"} {
		_, err := Read(io.NewSectionReader(strings.NewReader(text), 0, int64(len(text))), 1, Options{NoAccounts: true})
		if !errors.Is(err, iolog.ErrAccounts) {
			t.Errorf("accounts where none may be, %s: %v", what, err)
		}
	}
	// A truncated answer is a bad log, not another kind of file.
	if _, err := read(`{"meta":{"Slurm":{}},"jobs":[{"job_id":`); err == nil || errors.Is(err, iolog.ErrNotALog) {
		t.Errorf("a cut answer: %v", err)
	}
}

func TestLMT(t *testing.T) {
	text := "TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES\n2018-01-28 00:00:00,snx-OST00ad,100,1000\n2018-01-28 " +
		"00:00:05,snx-OST00ad,150,1000\n2018-01-28 00:00:10,snx-OST00ad,0,0\n2018-01-28 00:00:15,snx-OST00ad,7,9\n"
	l, err := Read(io.NewSectionReader(strings.NewReader(text), 0, int64(len(text))), 1,
		Options{Zone: time.FixedZone("PST", -8*3600)})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.OSTs) != 2 || l.OSTs[0].Target != "snx-OST00ad" || l.OSTs[0].FS != "snx" || l.OSTs[0].BytesRead != 50 ||
		l.OSTs[0].BytesWritten != 0 || l.OSTs[1].BytesWritten != 9 ||
		!l.OSTs[0].Time.Equal(time.Date(2018, 1, 28, 8, 0, 0, 0, time.UTC)) || l.OSTs[0].Seconds != 5 {
		t.Errorf("%+v", l.OSTs)
	}
	bounded, err := lmtRows(io.NewSectionReader(strings.NewReader(text), 0, int64(len(text))), Options{}, ostBytes)
	if err != nil || len(bounded.OSTs) != 2 || !strings.Contains(bounded.Problem, "too much memory") {
		t.Errorf("with room for one row: %+v %v", bounded, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(handmade([]record{{id: 1, rank: 0}}, nil, nil))
	f.Add([]byte("100|102|wei|x\n"))
	f.Add([]byte("TIMESTAMP,OST_NAME,READ_BYTES\n2018-01-28 00:00:00,a-OST0001,1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Read(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), 1, Options{})
		if (l == nil) == (err == nil) {
			t.Fatalf("log %v, error %v", l, err)
		}
	})
}

// TestAStartThatIsExpected: a pending job has no start.
func TestAStartThatIsExpected(t *testing.T) {
	for state, began := range map[string]bool{"PENDING": false, "RUNNING": true} {
		l, err := Slurm(strings.NewReader(`{"jobs":[{"job_id":7,"job_state":["`+state+`"],"start_time":1750086400}]}`),
			Options{})
		if err != nil || len(l.Slurm) != 1 || l.Slurm[0].Start.IsZero() == began {
			t.Errorf("%s: %+v, %v", state, l, err)
		}
	}
}
