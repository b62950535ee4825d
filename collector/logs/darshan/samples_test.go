package darshan

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The samples of testdata are logs of one imagined job, written here with what upstream's parsers would print of
// them: go test -run Samples -update. They lie as the real ones do, where these are beside the repository, and the
// same tests read both.

// waveFile is a file of the job: what each of its ranks' records says, by module and counter.
type waveFile struct {
	id    uint64
	path  string
	rank  int64
	ints  map[string]int64
	reals map[string]float64
	osts  []int64
}

const (
	waveJob   = 7700001
	waveProcs = 64
	waveBytes = 64 << 30 // into the shared file, in writes of 32 MiB
	waveCalls = waveBytes / (32 << 20)
)

// waveFiles are a shared output on eight targets, a restart file of each of two ranks, and an input read by rank 0.
func waveFiles() []waveFile {
	shared := map[string]int64{"OPENS": waveProcs + 1, "WRITES": waveCalls + 3, "SEEKS": waveCalls,
		"SEQ_WRITES":    waveCalls,
		"BYTES_WRITTEN": waveBytes + 600, "MAX_BYTE_WRITTEN": waveBytes + 599, "FILE_NOT_ALIGNED": waveCalls + 2,
		"FILE_ALIGNMENT": 1 << 20, "MEM_ALIGNMENT": 8, "MAX_WRITE_TIME_SIZE": 32 << 20, "SIZE_WRITE_100_1K": 3,
		"SIZE_WRITE_10M_100M": waveCalls, "FASTEST_RANK": 5, "FASTEST_RANK_BYTES": 1 << 30, "SLOWEST_RANK": 41,
		"SLOWEST_RANK_BYTES": 1 << 30, "COLL_OPENS": waveProcs, "COLL_WRITES": waveCalls, "INDEP_WRITES": 3,
		"SIZE_WRITE_AGG_10M_100M": waveCalls, "SIZE_WRITE_AGG_100_1K": 3, "MODE": 9, "HINTS": waveProcs}
	times := map[string]float64{"OPEN_START_TIMESTAMP": 2.5, "OPEN_END_TIMESTAMP": 2.75, "WRITE_START_TIMESTAMP": 3,
		"WRITE_END_TIMESTAMP": 103, "CLOSE_START_TIMESTAMP": 2.625, "CLOSE_END_TIMESTAMP": 103.5, "WRITE_TIME": 5120,
		"META_TIME": 6.5, "MAX_WRITE_TIME": 4.25, "FASTEST_RANK_TIME": 61.5, "SLOWEST_RANK_TIME": 97.25,
		"VARIANCE_RANK_TIME": 12.5}
	files := []waveFile{{11, "/scratch2/wave/out.h5", -1, shared, times, []int64{3, 0, 14, 9, 21, 7, 18, 5}}}
	for rank := range int64(2) {
		files = append(files, waveFile{12 + uint64(rank), fmt.Sprintf("/scratch2/wave/restart.%d", rank), rank,
			map[string]int64{"OPENS": 1, "READS": 4, "SEQ_READS": 4, "CONSEC_READS": 3, "BYTES_READ": 4 << 20,
				"MAX_BYTE_READ": 4<<20 - 1, "SIZE_READ_1M_4M": 4, "FILE_ALIGNMENT": 1 << 20, "MEM_ALIGNMENT": 8},
			map[string]float64{"OPEN_START_TIMESTAMP": .5, "OPEN_END_TIMESTAMP": .75, "READ_START_TIMESTAMP": .75,
				"READ_END_TIMESTAMP": 1.5, "CLOSE_START_TIMESTAMP": 1.5, "CLOSE_END_TIMESTAMP": 1.625, "READ_TIME": .5,
				"META_TIME": .25 + float64(rank)/8, "MAX_READ_TIME": .25}, nil})
	}
	return append(files, waveFile{14, "/home/ann/wave.nml", 0,
		map[string]int64{"OPENS": 1, "READS": 9, "BYTES_READ": 4000, "MAX_BYTE_READ": 3999},
		map[string]float64{"OPEN_START_TIMESTAMP": .125, "OPEN_END_TIMESTAMP": .25, "READ_START_TIMESTAMP": .25,
			"READ_END_TIMESTAMP": .375, "CLOSE_START_TIMESTAMP": .375, "CLOSE_END_TIMESTAMP": .5, "READ_TIME": .0625,
			"META_TIME": .03125}, nil})
}

const waveText = "/apps/wave/wave_mpi --out /scratch2/wave/out.h5 --steps " +
	"64\nlustre\t/scratch2\nnfs\t/home\nrootfs\t/\n"

// waveModules says which module has a record of which file.
var waveModules = []struct {
	m     Module
	files []int
}{{POSIX, []int{0, 1, 2}}, {MPIIO, []int{0}}, {Lustre, []int{0}}, {STDIO, []int{3}}}

// waveLog writes the job in a format; versions are those of its modules that runtimes of the format wrote.
func waveLog(version string, order binary.AppendByteOrder, comp Compression, versions map[Module]uint32) (*testLog,
	string) {
	l := &testLog{version: version, order: order, comp: comp, text: waveText,
		head: []uint64{5001, 1600000000, 1600000119, waveProcs, waveJob}}
	if l.large() {
		l.head = []uint64{5001, 1600000000, 250000000, 1600000119, 750000000, waveProcs, waveJob}
	}
	files := waveFiles()
	for _, f := range files {
		l.names = append(l.names, testName{f.id, f.path})
	}
	var text strings.Builder
	for _, wm := range waveModules {
		var records []byte
		for _, i := range wm.files {
			f := &files[i]
			line := func(name, value string) {
				mount, fs := "/scratch2", "lustre"
				if strings.HasPrefix(f.path, "/home") {
					mount, fs = "/home", "nfs"
				}
				fmt.Fprintf(&text, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", wm.m, f.rank, f.id, name, value, f.path, mount,
					fs)
			}
			if wm.m == Lustre {
				records = append(records, l.waveStripes(f, versions[Lustre], line)...)
				continue
			}
			records = append(records, l.waveRecord(wm.m, versions[wm.m], f, line)...)
		}
		l.modules = append(l.modules, testModule{slotOf(version, wm.m), versions[wm.m], records, 1})
	}
	return l, text.String()
}

// waveRecord writes a record of named counters and prints it.
func (l *testLog) waveRecord(m Module, version uint32, f *waveFile, line func(name, value string)) []byte {
	c := fixed[m]
	of := &c.versions[version-1]
	prefix := map[Module]string{POSIX: "POSIX_", MPIIO: "MPIIO_", STDIO: "STDIO_"}[m]
	b := append(l.ints(f.id, uint64(f.rank)), make([]byte, of.skip)...)
	value := func(i int) int64 { return f.ints[strings.TrimPrefix(c.ints[i], prefix)] }
	real := func(i int) float64 { return f.reals[strings.TrimPrefix(c.floats[i], prefix+"F_")] }
	for _, place := range of.ints {
		v := int64(0)
		if place >= 0 {
			v = value(place)
		}
		b = append(b, l.ints(uint64(v))...)
	}
	for _, place := range of.floats {
		b = append(b, l.floats(real(place))...)
	}
	for i, name := range c.ints {
		switch {
		case slices.Contains(of.ints, i):
			line(name, fmt.Sprint(value(i)))
		case name == "POSIX_RENAMED_FROM":
			line(name, "0")
		default:
			line(name, "-1")
		}
	}
	for i, name := range c.floats {
		if slices.Contains(of.floats, i) {
			line(name, fmt.Sprintf("%.6f", real(i)))
		} else {
			line(name, "-1.000000")
		}
	}
	return b
}

// waveStripes writes the layout of a file, one extent, and prints it.
func (l *testLog) waveStripes(f *waveFile, version uint32, line func(name, value string)) []byte {
	stripes := uint64(len(f.osts))
	var b []byte
	if version == 1 {
		b = l.ints(f.id, uint64(f.rank), 24, 24, ^uint64(0), 1<<20, stripes)
	} else {
		b = append(l.ints(f.id, uint64(f.rank), 1, stripes, 1<<20, stripes, 0, 0, 0, ^uint64(0), 0),
			make([]byte, 16)...)
	}
	known := func(v string) string {
		if version == 1 {
			return "N/A"
		}
		return v
	}
	mirror := map[bool]string{true: "-1", false: "0"}[version == 1]
	line("LUSTRE_NUM_COMPONENTS", "1")
	line("LUSTRE_NUM_STRIPES", fmt.Sprint(stripes))
	for _, p := range [][2]string{{"STRIPE_SIZE", "1048576"}, {"STRIPE_COUNT", fmt.Sprint(stripes)},
		{"STRIPE_PATTERN", known("raid0")}, {"FLAGS", known("0")}, {"EXT_START", "0"}, {"EXT_END", "-1"},
		{"MIRROR_ID", mirror}, {"POOL_NAME", "N/A"}} {
		line("LUSTRE_COMP1_"+p[0], p[1])
	}
	for i, ost := range f.osts {
		b = append(b, l.ints(uint64(ost))...)
		line(fmt.Sprintf("LUSTRE_COMP1_OST_ID_%d", i), fmt.Sprint(ost))
	}
	return b
}

// waveTrace writes the traced operations of one rank on the shared file, and prints them.
func (l *testLog) waveTrace() ([]byte, string) {
	const writes, reads = 3, 1
	b := append(l.ints(11, 7, 0), append([]byte("nid00012"), make([]byte, 56)...)...)
	b = append(b, l.ints(writes, reads)...)
	var text strings.Builder
	for i := range uint64(writes + reads) {
		op, n := "write", i
		if i >= writes {
			op, n = "read", i-writes
		}
		begin := 3 + float64(i)
		b = append(append(b, l.ints(i*64<<20, 32<<20)...), l.floats(begin, begin+.5)...)
		fmt.Fprintf(&text, " X_POSIX  7  %s  %d  %d  %d  %.4f  %.4f\n", op, n, i*64<<20, 32<<20, begin, begin+.5)
	}
	return b, text.String()
}

// wavePerf is what upstream's program sums up, of the modules that it sums up.
func wavePerf() string {
	var b strings.Builder
	figures := func(m Module, bytes int64, slowestRank int, slowest, shared float64) {
		fmt.Fprintf(&b, "# %s module data\n\n# total_bytes: %d\n# I/O timing for unique files (seconds):\n", m, bytes)
		fmt.Fprintf(&b, "# unique files: slowest_rank_io_time: %.6f\n# unique files: slowest_rank: %d\n", slowest,
			slowestRank)
		rate := 0.0
		if slowest+shared > 0 {
			rate = float64(bytes) / (1 << 20) / (slowest + shared)
		}
		fmt.Fprintf(&b, "# shared files: time_by_slowest: %.6f\n# agg_perf_by_slowest: %.6f\n", shared, rate)
	}
	figures(POSIX, waveBytes+600+8<<20, 1, .5+.25+.125, 97.25)
	for _, total := range []string{"READS: 8", fmt.Sprintf("WRITES: %d", waveCalls+3), "SEQ_READS: 8",
		fmt.Sprintf("SEQ_WRITES: %d", waveCalls), "CONSEC_WRITES: 0", fmt.Sprintf("BYTES_WRITTEN: %d", waveBytes+600)} {
		fmt.Fprintf(&b, "total_POSIX_%s\n", total)
	}
	figures(MPIIO, waveBytes+600, 0, 0, 97.25)
	figures(STDIO, 4000, 0, .0625+.03125, 0)
	b.WriteString("total_STDIO_BYTES_WRITTEN: 0\n")
	return b.String()
}

// waveLegacy writes the shared file in a format of one stream, and prints it as the program of 2.x did.
func waveLegacy(t *testing.T, version string, order binary.AppendByteOrder) (log []byte, text string) {
	t.Helper()
	forms := legacyForms()
	form := forms[slices.IndexFunc(forms, func(f legacyForm) bool { return f.version == version })]
	l := &testLog{order: order}
	mounts := "/apps/wave/wave_mpi\n17\tlustre\t/scratch2\n"
	var b []byte
	if form.old {
		b = append([]byte(version), make([]byte, 12-len(version))...)
		for _, v := range []uint32{5001, 1600000000, 1600000119, waveProcs} {
			b = binary.BigEndian.AppendUint32(b, v)
		}
	} else {
		b = append([]byte(version), make([]byte, 8-len(version))...)
		b = append(b, l.ints(magic, 5001, 1600000000, 1600000119, waveProcs, waveJob)...)
		note := make([]byte, form.metadata)
		copy(note, "lib_ver=2.x\n")
		b = append(b, note...)
	}
	b = append(b, mounts...)
	b = append(b, make([]byte, int(form.jobBytes)-len(b))...)
	c, f := fixed[Combined], waveFiles()[0]
	values := map[string]int64{"CP_POSIX_OPENS": f.ints["OPENS"], "CP_POSIX_WRITES": f.ints["WRITES"], "CP_DEVICE": 17,
		"CP_BYTES_WRITTEN": f.ints["BYTES_WRITTEN"], "CP_SEQ_WRITES": f.ints["SEQ_WRITES"],
		"CP_SIZE_WRITE_10M_100M": f.ints["SIZE_WRITE_10M_100M"], "CP_COLL_OPENS": waveProcs}
	reals := map[string]float64{"CP_F_OPEN_TIMESTAMP": 2.5, "CP_F_WRITE_START_TIMESTAMP": 3,
		"CP_F_WRITE_END_TIMESTAMP": 103, "CP_F_CLOSE_TIMESTAMP": 103.5, "CP_F_POSIX_WRITE_TIME": 5120}
	head := l.ints(f.id, ^uint64(0))
	suffix := append([]byte("wave/out.h5"), make([]byte, form.suffixLen-11)...)
	if form.old {
		head = append(l.ints(f.id), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)
	} else {
		head = append(head, suffix...)
	}
	var out strings.Builder
	mount := "\t...wave/out.h5\t/scratch2\tlustre\n"
	if form.old && !slices.Contains(form.ints, combinedDevice) {
		mount = "\t...wave/out.h5\tUNKNOWN\tUNKNOWN\n"
	}
	for i, name := range c.ints {
		v := values[name]
		if slices.Contains(form.ints, i) {
			head = append(head, l.ints(uint64(v))...)
		} else {
			v = 0
		}
		fmt.Fprintf(&out, "-1\t%d\t%s\t%d%s", f.id, name, v, mount)
	}
	for i, name := range c.floats {
		v := reals[name]
		if slices.Contains(form.floats, i) {
			head = append(head, l.floats(v)...)
		} else {
			v = 0
		}
		fmt.Fprintf(&out, "-1\t%d\t%s\t%.6f%s", f.id, name, v, mount)
	}
	if form.old {
		head = append(append(head, suffix...), 0, 0, 0, 0)
	}
	if len(head) != form.recBytes {
		t.Fatalf("a record of %d bytes, want %d", len(head), form.recBytes)
	}
	return append(b, head...), out.String()
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(b)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// waveSamples are the samples by their path below testdata.
func waveSamples(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, s := range []struct {
		name, version string
		order         binary.AppendByteOrder
		comp          Compression
		versions      map[Module]uint32
	}{
		{"wave-3.00-big-endian", "3.00", binary.BigEndian, Zlib, map[Module]uint32{POSIX: 2, MPIIO: 2, Lustre: 1,
			STDIO: 1}},
		{"wave-3.10", "3.10", binary.LittleEndian, Zlib, map[Module]uint32{POSIX: 3, MPIIO: 2, Lustre: 1, STDIO: 1}},
		{"wave-3.21", "3.21", binary.LittleEndian, None, map[Module]uint32{POSIX: 4, MPIIO: 3, Lustre: 1, STDIO: 2}},
		{"wave-3.41", "3.41", binary.LittleEndian, Zlib, map[Module]uint32{POSIX: 4, MPIIO: 3, Lustre: 2, STDIO: 2}},
	} {
		l, text := waveLog(s.version, s.order, s.comp, s.versions)
		if l.large() {
			trace, dxt := l.waveTrace()
			l.modules = append(l.modules, testModule{slotOf(s.version, DXTPOSIX), 1, trace, 1})
			out["darshan/expected/"+s.name+".dxt.txt.gz"] = gzipped(t, []byte(dxt))
		}
		out["darshan/"+s.name+".darshan"] = l.encode(t)
		out["darshan/expected/"+s.name+".parser35.txt.gz"] = gzipped(t, []byte(text))
		out["darshan/expected/"+s.name+".perf.txt.gz"] = gzipped(t, []byte(wavePerf()))
	}
	for version, order := range map[string]binary.AppendByteOrder{"1.22": binary.BigEndian, "1.24": binary.BigEndian,
		"2.00": binary.LittleEndian, "2.06": binary.BigEndian} {
		log, text := waveLegacy(t, version, order)
		out["darshan_1x_2x/wave-"+version+".darshan.gz"] = gzipped(t, log)
		out["darshan_1x_2x/expected/wave-"+version+".parser2.txt.gz"] = gzipped(t, []byte(text))
	}
	return out
}

// TestSamples: testdata has the samples as they are written here.
func TestSamples(t *testing.T) {
	samples := waveSamples(t)
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		path := filepath.Join("testdata", filepath.FromSlash(name))
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, samples[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(plain(t, b), plain(t, samples[name])) {
			t.Errorf("%s is not what is written: go test -run Samples -update (%v)", path, err)
		}
	}
}

// plain is what b decompresses to, or b.
func plain(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return b
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSamplesAreLikeRealLogs compares with real logs, where they are: of each module in the same version upstream
// prints the same counters in the same order, so the records have the same fields.
func TestSamplesAreLikeRealLogs(t *testing.T) {
	real := counterNames(t, realSamples)
	compared := 0
	for key, ours := range counterNames(t, "testdata") {
		theirs, ok := real[key]
		if !ok {
			continue
		}
		compared++
		if !slices.Equal(ours, theirs) {
			t.Errorf("%s: the sample has %q, real logs %q", key, ours, theirs)
		}
	}
	if len(real) > 0 && compared < 6 {
		t.Errorf("only %d records of samples have a real one to compare with", compared)
	}
}

// counterNames are the counters that a parser printed of the first record of each module and version, and of the
// formats without modules; a counter that the version lacks has a - before it.
func counterNames(t *testing.T, root string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	logs, _ := filepath.Glob(filepath.Join(root, "darshan/*.darshan"))
	old, _ := filepath.Glob(filepath.Join(root, "darshan_1x_2x/*.darshan.gz"))
	for _, log := range append(logs, old...) {
		r := openFile(t, log)
		dir, base := filepath.Split(log)
		expected := filepath.Join(dir, "expected", strings.TrimSuffix(base, ".darshan")+".parser35.txt.gz")
		versions := map[string]string{}
		for _, m := range r.Header().Modules {
			versions[m.Module.String()] = fmt.Sprintf("%s %d", m.Module, m.Version)
		}
		if name, ok := strings.CutSuffix(base, ".darshan.gz"); ok {
			expected = filepath.Join(dir, "expected", name+".parser2.txt.gz")
			versions = map[string]string{"-1": r.Header().Version, "0": r.Header().Version}
		}
		if _, err := os.Stat(expected); err != nil {
			continue
		}
		records := map[string]string{}
		for _, line := range counterLines(t, expected) {
			f := strings.Split(line, "\t")
			key, module := versions[f[0]], len(f) == 8
			if !module {
				f = append([]string{""}, f...)
			}
			if key == "" || module && f[0] == "LUSTRE" && strings.Contains(f[3], "OST_ID") || out[key] != nil &&
				records[key] != f[1]+f[2] {
				continue // of another record
			}
			records[key] = f[1] + f[2]
			name := f[3]
			if v := f[4]; module && (v == "-1" || v == "-1.000000") && f[0] != "LUSTRE" {
				name = "-" + name
			}
			out[key] = append(out[key], name)
		}
		for key := range records { // of one log each
			versions[key] = ""
		}
	}
	return out
}
