package darshan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

var orders = map[string]binary.AppendByteOrder{"little": binary.LittleEndian, "big": binary.BigEndian}

// slots are the numbers of the modules in each format.
func slotOf(version string, m Module) int {
	s, _ := findShape(version)
	for slot := range s.slots {
		if s.module(slot) == m {
			return slot
		}
	}
	return -1
}

// sampleLog is a log with every kind of record, in the format's newest shapes.
func sampleLog(version string, order binary.AppendByteOrder, comp Compression) *testLog {
	l := &testLog{version: version, order: order, comp: comp,
		text: "./app -x\nlustre\t/scratch\nnfs\t/scratch/home\nrootfs\t/\n",
		names: []testName{{11, ""}, {11, "/scratch/home/out"}, {11, "/late"}, {12, "/scratchy/in"},
			{13, "heatmap:POSIX"}}}
	posix := append(l.fixedRecord(11, -1, 69, 17), l.fixedRecord(12, 0, 69, 17)...)
	posix = append(posix, l.fixedRecord(12, 3, 69, 17)...)
	l.modules = []testModule{
		{slotOf(version, POSIX), 4, posix, 3},
		{slotOf(version, MPIIO), 3, l.fixedRecord(11, -1, 51, 17), 1},
		{slotOf(version, STDIO), 2, l.fixedRecord(12, 1, 14, 15), 1},
		{slotOf(version, Lustre), 2, l.lustreRecord(), 1},
		{slotOf(version, DXTPOSIX), 2, l.traceRecord(40), 1},
	}
	if slot := slotOf(version, Heatmap); slot >= 0 {
		l.modules = append(l.modules, testModule{slot, 1, l.heatmapRecords(), 2})
	}
	l.partial = 1 << slotOf(version, STDIO)
	return l
}

// lustreRecord has two components, the first on OSTs 20 and 21, the second not instantiated, and room
// for a third.
func (l *testLog) lustreRecord() []byte {
	none := ^uint64(0)
	b := l.ints(11, none, 3, 3)
	pool := append([]byte("fast"), make([]byte, 12)...)
	b = append(append(b, l.ints(1<<20, 2, 0, 0x10, 0, 1<<30, 0)...), pool...)
	b = append(append(b, l.ints(1<<22, 1, 0, 0x40, 1<<30, none, 0)...), make([]byte, 16)...)
	b = append(append(b, l.ints(none, none, none, none, none, none, none)...), make([]byte, 16)...)
	return append(b, l.ints(20, 21, 7)...)
}

func (l *testLog) traceRecord(size int) []byte {
	b := l.ints(11, 2, 0)
	host := make([]byte, 64)
	copy(host, "nid001")
	b = append(b, host...)
	b = append(b, l.ints(1, 2)...)
	for i := range uint64(3) {
		b = append(append(b, l.ints(i*4096, 4096)...), l.floats(float64(i), float64(i)+0.25)...)
		if size == 40 {
			b = append(b, l.ints(0xbeef)...)
		}
	}
	return b
}

// heatmapRecords are of three ranks, the second with a bin too few, the third with one too many.
func (l *testLog) heatmapRecords() []byte {
	var b []byte
	for rank, bins := range []int{3, 2, 4} {
		b = append(append(append(b, l.ints(13, uint64(rank))...), l.floats(0.2)...),
			l.ints(uint64(bins), 0xdead, 0xdead)...)
		for i := range 2 * bins {
			b = append(b, l.ints(uint64(10*rank+i))...)
		}
	}
	return b
}

func readBytes(t testing.TB, b []byte) (*Log, error) {
	t.Helper()
	return Read(bytes.NewReader(b), int64(len(b)))
}

func TestEveryFormatByteOrderAndCompression(t *testing.T) {
	for _, version := range []string{"3.00", "3.10", "3.20", "3.21", "3.41"} {
		for name, order := range orders {
			for _, comp := range []Compression{Zlib, Bzip2, None} {
				t.Run(fmt.Sprintf("%s/%s/%s", version, name, comp), func(t *testing.T) {
					checkSample(t, sampleLog(version, order, comp).encode(t), version)
				})
			}
		}
	}
}

func checkSample(t *testing.T, b []byte, version string) {
	t.Helper()
	log, err := readBytes(t, b)
	if err != nil {
		t.Fatal(err)
	}
	j := log.Job
	if j.UID != 1001 || j.NProcs != 4 || j.JobID != 4242 || j.Exe != "./app -x" || j.Start.Unix() != 1700000000 {
		t.Errorf("job %+v", j)
	}
	if want := map[bool]float64{true: 9.5, false: 10}[version == "3.41"]; j.RunSeconds != want {
		t.Errorf("runs %v s, want %v", j.RunSeconds, want)
	}
	if !slices.Equal(j.Metadata, []Note{{"lib_ver", "3.x"}, {"h", "a=1;b=2"}}) {
		t.Errorf("metadata %q", j.Metadata)
	}
	if len(log.Files) != 2 {
		t.Fatalf("%d files", len(log.Files))
	}
	out, in := &log.Files[0], &log.Files[1]
	if out.Name != "/scratch/home/out" || out.FS != "nfs" || in.Name != "/scratchy/in" || in.FS != "rootfs" {
		t.Errorf("files %q on %s, %q on %s", out.Name, out.FS, in.Name, in.FS)
	}
	if p := out.POSIX; !p.Shared || p.Ranks != 4 || p.BytesRead != 114 || p.ConsecReads != 118 ||
		p.SizeRead[9] != 138 ||
		p.Write != (Span{2.5, 6.5}) || p.SlowestSeconds != 14.5 {
		t.Errorf("shared record %+v", p)
	}
	if p := in.POSIX; p.Shared || p.Ranks != 2 || p.BytesRead != 228 || p.ReadSeconds != 17 ||
		p.SmallReads() != 2*(129+130+131+132+133) {
		t.Errorf("two ranks' records %+v", p)
	}
	if p := in.STDIO; p.BytesWritten != 106 || p.BytesRead != 107 || p.MetaSeconds != 0.5 ||
		p.ConsecReads != NotRecorded {
		t.Errorf("stdio %+v", p)
	}
	if out.MPIIO.CollectiveOps != 104+105+106+107 {
		t.Errorf("%d collective operations", out.MPIIO.CollectiveOps)
	}
	if !slices.Equal(out.OSTs(), []int64{20, 21}) || out.Components[0].Pool != "fast" || len(out.Components) != 2 {
		t.Errorf("layout %+v", out.Components)
	}
	for _, m := range log.Modules {
		if m.Partial != (m.Module == STDIO) || !m.Read {
			t.Errorf("module %+v", m)
		}
	}
	checkHeatmaps(t, log)
}

func checkHeatmaps(t *testing.T, log *Log) {
	t.Helper()
	if log.Version < "3.20" && len(log.Heatmaps) == 0 {
		return // formats older than the heat map have no number for it
	}
	want := []RankBins{
		{0, "POSIX", Bins{0.2, []int64{0, 1, 2}, []int64{3, 4, 5}}},
		{1, "POSIX", Bins{0.2, []int64{10, 11, 0}, []int64{12, 13, 0}}},
		{2, "POSIX", Bins{0.2, []int64{20, 21, 22}, []int64{24, 25, 26}}},
	}
	if !reflect.DeepEqual(log.Heatmaps, want) {
		t.Errorf("heat maps %v", log.Heatmaps)
	}
}

func TestTraces(t *testing.T) {
	for _, c := range []struct {
		module  Module
		version uint32
		size    int
	}{{DXTPOSIX, 1, 32}, {DXTPOSIX, 2, 40}, {DXTMPIIO, 1, 32}, {DXTMPIIO, 2, 32}, {DXTMPIIO, 3, 40}} {
		l := &testLog{version: "3.41", order: binary.BigEndian, text: "app"}
		l.modules = []testModule{{int(c.module), c.version, l.traceRecord(c.size), 1}}
		r, err := NewReader(bytes.NewReader(l.encode(t)), int64(len(l.encode(t))))
		if err != nil {
			t.Fatal(err)
		}
		records := 0
		err = r.Each(func(rec *Record) error {
			records++
			s := rec.Trace.Reads[1]
			want := Segment{Offset: 8192, Length: 4096, Start: 2, End: 2.25}
			if c.module == DXTMPIIO && c.version == 1 {
				want.Offset = -1 // that version's offsets are wrong
			}
			if len(rec.Trace.Writes) != 1 || s != want {
				t.Errorf("%s v%d: %+v", c.module, c.version, rec.Trace)
			}
			return nil
		})
		if err != nil || records != 1 {
			t.Errorf("%s v%d: %d records, %v", c.module, c.version, records, err)
		}
	}
}

func TestSizesOfRecords(t *testing.T) {
	for m, sizes := range map[Module][]int{POSIX: {680, 648, 664, 704}, MPIIO: {544, 544, 560}, STDIO: {240, 248},
		BGQ: {120, 112},
		H5F: {40, 56, 80}, H5D: {904, 912}, PnetCDFFile: {48, 64, 152}, PnetCDFVar: {1120}} {
		for i, want := range sizes {
			if got := fixed[m].versions[i].size(); got != want {
				t.Errorf("%s version %d: %d bytes, want %d", m, i+1, got, want)
			}
		}
	}
	if fixed[Combined].ints[combinedDevice] != "CP_DEVICE" ||
		fixed[Combined].floats[combinedPOSIX.slowest] != "CP_F_SLOWEST_RANK_TIME" {
		t.Error("places in combined records")
	}
}

// TestLibrariesAreOfTheirFiles: what was asked of HDF5 and PnetCDF belongs to the file of the dataset or variable, by
// its id or by its name.
func TestLibrariesAreOfTheirFiles(t *testing.T) {
	for name, c := range map[string]struct {
		slot    int
		version uint32
		ids     []uint64 // before the counters
		ints    map[int]uint64
		want    *Library
	}{
		"HDF5, by name": {4, 1, nil, map[int]uint64{h5dReads + 1: 80, h5dBytesRead + 1: 8000, h5dCollective: 1},
			&Library{Name: LibraryHDF5, Writes: 80, BytesWritten: 8000, Collective: 80}},
		"HDF5, by id": {4, 2, []uint64{5}, map[int]uint64{h5dReads: 7, h5dBytesRead: 70},
			&Library{Name: LibraryHDF5, Reads: 7, BytesRead: 70}},
		"PnetCDF": {6, 1, []uint64{5}, map[int]uint64{pnetcdfIndepReads: 1, pnetcdfCollReads + 1: 20,
			pnetcdfNBReads + 1: 300, pnetcdfBytesRead: 10, pnetcdfBytesRead + 1: 3200},
			&Library{Name: LibraryPnetCDF, Reads: 1, Writes: 320, BytesRead: 10, BytesWritten: 3200, Collective: 20,
				Nonblocking: 300}},
		"PnetCDF's files":    {5, 2, nil, nil, &Library{Name: LibraryPnetCDF}},
		"of another file":    {6, 1, []uint64{99}, map[int]uint64{pnetcdfIndepReads: 1}, nil},
		"of no file by name": {4, 1, nil, nil, nil},
	} {
		l := &testLog{version: "3.41", order: binary.LittleEndian, text: "app",
			names: []testName{{5, "/s/out.h5"}, {6, "/s/out.h5:/x:/y"}, {7, "/s/other:/x"}}}
		layout := fixed[Module(c.slot)].versions[c.version-1]
		id := uint64(6)
		switch name {
		case "PnetCDF's files":
			id = 5
		case "of no file by name":
			id = 7
		}
		rec := l.ints(append([]uint64{id, 0}, c.ids...)...)
		for i := range len(layout.ints) - len(c.ids) {
			rec = append(rec, l.ints(c.ints[i])...)
		}
		rec = append(rec, make([]byte, layout.size()-len(rec))...)
		l.modules = []testModule{{1, 4, l.fixedRecord(5, 0, 69, 17), 1}, {c.slot, c.version, rec, 1}}
		log, err := readBytes(t, l.encode(t))
		if err != nil || len(log.Files) != 1 {
			t.Fatalf("%s: %+v, %v", name, log, err)
		}
		if got := log.Files[0].Library; (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	opens := fixed[PnetCDFFile].versions[0]
	if opens.ints[0] != 1 || opens.ints[1] != 1 || len(fixed[PnetCDFFile].ints) != 9 {
		t.Error("the opens of the first versions are counted apart")
	}
}

// TestRecordsWithStdioCountersAreDropped: version 1 of POSIX counted fopen too, and its records for
// such files are no POSIX records.
func TestRecordsWithStdioCountersAreDropped(t *testing.T) {
	l := &testLog{version: "3.00", order: binary.LittleEndian, text: "app"}
	rec := l.fixedRecord(5, 0, 68, 15)
	zero := bytes.Clone(rec)
	binary.LittleEndian.PutUint64(zero[16+8*6:], 0)
	zero[0] = 6
	l.modules = []testModule{{1, 1, append(rec, zero...), 1}}
	log, err := readBytes(t, l.encode(t))
	if err != nil || len(log.Files) != 1 || log.Files[0].ID != 6 {
		t.Fatalf("%+v, %v", log.Files, err)
	}
	if p := log.Files[0].POSIX; p.Open.End != NotRecorded || p.Close.Start != NotRecorded || p.BytesRead != 113 {
		t.Errorf("%+v", p)
	}
}

func TestUnknownModulesAreSkipped(t *testing.T) {
	l := sampleLog("3.41", binary.LittleEndian, Zlib)
	l.modules = append(l.modules, testModule{40, 7, []byte("who knows"), 1}, testModule{14, 1, []byte("apmpi"), 1})
	log, err := readBytes(t, l.encode(t))
	if err != nil {
		t.Fatal(err)
	}
	skipped := 0
	for _, m := range log.Modules {
		if !m.Read {
			skipped++
		}
	}
	if skipped != 2 || len(log.Notes()) != 3 {
		t.Errorf("%d skipped, notes %q", skipped, log.Notes())
	}
}

func TestRefusals(t *testing.T) {
	good := sampleLog("3.21", binary.LittleEndian, Zlib).encode(t)
	other := func(change func([]byte)) []byte {
		b := bytes.Clone(good)
		change(b)
		return b
	}
	for name, c := range map[string]struct {
		log  []byte
		is   error
		says string
	}{
		"old":         {other(func(b []byte) { copy(b, "1.4\x00") }), ErrVersion, `unsupported version "1.4"`},
		"new":         {other(func(b []byte) { copy(b, "3.50") }), ErrVersion, `unsupported version "3.50"`},
		"text":        {[]byte(strings.Repeat("no log at all ", 10)), ErrNotDarshan, "not a Darshan log"},
		"empty":       {nil, ErrNotDarshan, "0 bytes"},
		"magic":       {other(func(b []byte) { b[8]++ }), ErrNotDarshan, "magic"},
		"compression": {other(func(b []byte) { b[16] = 9 }), nil, "compression 9"},
	} {
		log, err := readBytes(t, c.log)
		if err == nil || log != nil || (c.is != nil && !errors.Is(err, c.is)) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDamageEndsItsRegionOnly: a bit of one module's data is wrong; the others are read, and the error
// says where.
func TestDamageEndsItsRegionOnly(t *testing.T) {
	l := sampleLog("3.41", binary.LittleEndian, Zlib)
	b := l.encode(t)
	r, err := NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	m := r.Header().Modules[0]
	b[m.Offset+m.Length/2] ^= 0xff
	log, err := readBytes(t, b)
	var where *Error
	if !errors.As(err, &where) || where.Region != "POSIX" || where.Offset != m.Offset {
		t.Fatalf("error %v", err)
	}
	if len(log.Files) != 2 || log.Files[0].MPIIO == nil || log.Files[0].Components == nil || len(log.Heatmaps) != 3 {
		t.Errorf("lost more than the damaged module: %+v", log.Files)
	}
}

// TestRegionsOutsideTheFileCostThemselves: what the header promises and the file lacks is an error; the rest is read.
func TestRegionsOutsideTheFileCostThemselves(t *testing.T) {
	good := sampleLog("3.21", binary.LittleEndian, Zlib).encode(t)
	for name, c := range map[string]struct {
		damage func([]byte) []byte
		region string
	}{
		"module":   {func(b []byte) []byte { b[40+16+8+6] = 1; return b }, "POSIX"},
		"names":    {func(b []byte) []byte { b[24+8+6] = 1; return b }, "record table"},
		"job data": {func(b []byte) []byte { b[smallHeader]++; return b }, "job data"},
		"cut":      {func(b []byte) []byte { return b[:len(b)-50] }, "HEATMAP"},
	} {
		log, err := readBytes(t, c.damage(bytes.Clone(good)))
		var where *Error
		if !errors.As(err, &where) || where.Region != c.region || log == nil || len(log.Files) != 2 ||
			log.Files[0].MPIIO == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestZerosBehindTheHeader(t *testing.T) {
	for _, version := range []string{"3.00", "3.21", "3.41"} {
		for _, comp := range []Compression{Zlib, Bzip2} {
			l := sampleLog(version, binary.BigEndian, comp)
			l.padding = 8192
			checkSample(t, l.encode(t), version)
		}
	}
	want, err := filepath.Glob("../../../../shared/field/darshan-zeros-after-header/*.darshan")
	if err != nil || len(want) != 2 {
		return // the collection is not here
	}
	if a, b := printed(t, openFile(t, want[0])), printed(t, openFile(t, want[1])); len(a) == 0 || !slices.Equal(a, b) {
		t.Errorf("%d and %d lines that differ", len(a), len(b))
	}
}

func TestHostileCountsAskForNoMemory(t *testing.T) {
	l := &testLog{version: "3.41", order: binary.LittleEndian, text: "app"}
	huge := uint64(maxStripes)
	l.modules = []testModule{
		{int(Lustre), 1, l.ints(1, 0, 1, 1, 0, 1<<20, huge), 1},
		{int(Heatmap), 1, append(append(l.ints(1, 0), l.floats(1)...), l.ints(maxBins, 0, 0)...), 1},
		{int(DXTPOSIX), 1, append(l.ints(1, 0, 0), append(make([]byte, 64), l.ints(maxSegments-1, 1)...)...), 1},
	}
	b := l.encode(t)
	n := testing.AllocsPerRun(1, func() {
		if _, err := readBytes(t, b); err == nil || strings.Count(err.Error(), "\n") != 2 {
			t.Errorf("error %v, want one of each module", err)
		}
	})
	if n > 2000 {
		t.Errorf("%v allocations", n)
	}
}

func TestBombsAreStopped(t *testing.T) {
	l := &testLog{version: "3.41", order: binary.LittleEndian, comp: Bzip2, text: "app"}
	l.modules = []testModule{{int(STDIO), 2, make([]byte, 248*60000), 1}}
	_, err := readBytes(t, l.encode(t))
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

func TestLogsCompressedTwice(t *testing.T) {
	name := filepath.Join("testdata", "bzip2.darshan")
	b := sampleLogFile(t, name)
	checkSample(t, b, "3.21")
	checkSample(t, bzip2Compress(t, b), "3.21")
}

// sampleLogFile is a log that needs no bzip2 command to be there.
func sampleLogFile(t *testing.T, name string) []byte {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, sampleLog("3.21", binary.BigEndian, Bzip2).encode(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFixed6IsCsFormat(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	try := func(f float64) {
		want := fmt.Sprintf("%.6f", f)
		if got := string(appendFixed6(nil, f)); got != want {
			t.Fatalf("%g: %s, want %s", f, got, want)
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 0.5e-6, 1.5e-6, 2.5e-6, 0.0000005, 1, -1, 999999.9999995,
		1 << 41, 1<<42 - 0.25,
		1 << 42, 1 << 52, 1e300, 5e-324, 0.1234565, 8.5e-7, 1.0 / 128, 3.0 / 128, 1.0 / (1 << 20),
		1.0 / (1 << 7) * 1e-6} {
		try(f)
		try(-f)
	}
	for range 200000 {
		try(math.Float64frombits(r.Uint64()&^(0x7ff<<52) | uint64(1023-80+r.IntN(140))<<52))
		try(math.Ldexp(float64(r.IntN(1<<30)), -r.IntN(60))) // ties
	}
	for f, want := range map[float64]string{math.Inf(1): "inf", math.Inf(-1): "-inf"} {
		if got := string(appendFixed6(nil, f)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
