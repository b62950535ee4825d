package lmt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func readAll(t testing.TB, b []byte, o Options) ([]Reading, error) {
	t.Helper()
	var out []Reading
	err := Read(bytes.NewReader(b), int64(len(b)), o, func(r *Reading) error {
		out = append(out, *r)
		return nil
	})
	return out, err
}

func show(p *uint64) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(*p)
}

func deltas(readings []Reading) string {
	var out []string
	for i := range readings {
		switch d := readings[i].Delta; {
		case d == nil:
			out = append(out, "first")
		case d.Reset:
			out = append(out, fmt.Sprintf("reset/%g", d.Seconds))
		default:
			s := fmt.Sprintf("%s+%s/%g", show(d.ReadBytes), show(d.WriteBytes), d.Seconds)
			if d.Gap {
				s += " gap"
			}
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

// TestRows: counters rise, a row is missing, the target fails over (its counters are 0 for a while, then
// come back: how much of that was since is not known), and a row has no value.
func TestRows(t *testing.T) {
	text := "OST_NAME\tTIMESTAMP\tREAD_BYTES\tWRITE_BYTES\tHOSTNAME\tPCT_CPU\n"
	for _, row := range []string{"00:00:00\t100\t1000", "00:00:05\t150\t1000", "00:00:20\t180\t1400", "00:00:25\t0\t0",
		"00:00:30\t0\t0",
		"00:00:35\t500\t9000", "00:00:40\tNULL\t9001", "00:00:40\t7\t9002"} {
		text += "fs-x-OST00ad\t2018-01-28 " + row + "\toss1\t1.5\n"
	}
	got, err := readAll(t, []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "first, 50+0/5, 30+400/15 gap, reset/5, 0+0/5, reset/5, -+1/5, first"; deltas(got) != want {
		t.Errorf("deltas %s, want %s", deltas(got), want)
	}
	if r := got[0]; r.Target != "fs-x-OST00ad" || *r.Index != 0xad || r.FileSystem != "fs-x" || r.Host != "oss1" ||
		*r.CPUPercent != 1.5 {
		t.Errorf("%+v", r)
	}
}

func TestServersTimeZone(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	text := "TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES\n"
	// The night on which clocks are set back: 01:59:55 is followed by 01:00:00 again.
	for i, at := range []string{"2018-11-04 01:59:50", "2018-11-04 01:59:55", "2018-11-04 01:00:00",
		"2018-11-04 01:00:05"} {
		text += fmt.Sprintf("%q,fs-OST0001,%d,0\n", at, i)
	}
	got, err := readAll(t, []byte(text), Options{Zone: zone})
	if err != nil || deltas(got) != "first, 1+0/5, 1+0/5, 1+0/5" || got[0].Time.Unix() != 1541321990 {
		t.Errorf("%s from %d, %v", deltas(got), got[0].Time.Unix(), err)
	}
}

func TestBadRowsDoNotStopTheRest(t *testing.T) {
	text := "OST_NAME,TIMESTAMP,READ_BYTES,WRITE_BYTES\nfs-OST0000,2018-01-28 " +
		"00:00:00,1,2\nfs-OST0000,then,1,2\nfs-OST0000,2018-01-28 00:00:05,-5,4\nfs-OST0000\n,2018-01-28 00:00:05,1,1\n"
	got, err := readAll(t, []byte(text), Options{})
	if len(got) != 2 || deltas(got) != "first, -+2/5" {
		t.Errorf("%s", deltas(got))
	}
	for _, says := range []string{"line 3: TIMESTAMP", "line 4: READ_BYTES", "line 5: 1 fields, want 4",
		"line 6: OST_NAME"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is missing in %v", says, err)
		}
	}
	for _, b := range []string{"hello\n", "\x89HDF\r\n\x1a\n and more of it"} {
		if _, err := readAll(t, []byte(b), Options{}); err == nil {
			t.Errorf("%q is understood", b)
		}
	}
}

func TestCerebro(t *testing.T) {
	got,
		err := readAll(t,
		[]byte(
			"sysstat: cpu_util: 2%\nost: "+
				"2;oss3;0.5;17.5;a-OST0000;60;100;500;900;11;22;33;107;0;58;66;2;110;COMPLETE "+
				"1/1;a-OST000b;1;2;3;4;5;6;7;8;9;10;11;12;13;RECOVERING;\n"+
				"mdt: 1;mds;1;2;a-MDT0000;10;30;5;9;INACTIVE"+strings.Repeat(";7;0;0", 21)+
				"\nrouter: 1.0;r1;2;64;1391108595264\nosc: 1;h;a-OST0000;F\n"), Options{})
	if err != nil || len(got) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	if r := got[0]; *r.ReadBytesTotal != 11 || *r.WriteBytesTotal != 22 || *r.Exports != 107 || *r.InodesUsed != 40 ||
		*r.KBytesUsed != 400 ||
		r.Recovery != "COMPLETE 1/1" || *r.CPUPercent != 0.5 || *r.MemoryPercent != 17.5 || r.Delta != nil {
		t.Errorf("%+v", r)
	}
	if *got[1].Index != 11 || got[2].OpsTotal["quotactl"] != 7 || len(got[2].OpsTotal) != 21 ||
		*got[3].RoutedBytesTotal != 1391108595264 {
		t.Errorf("%+v", got[1:])
	}
	for line, says := range map[string]string{
		"ost: 7;h;1;2;a-OST0000":                  `version "7"`,
		"ost: 2;h;1;2;a-OST0000;1":                "2 fields, want 15",
		"ost: 2;h":                                "2 fields",
		"mdt: 3;h;x;2":                            "percentage",
		"router: 1.0;h;1;2;lots":                  "not a count",
		"ost: 2;h;1;2" + strings.Repeat(";x", 15): "not a count",
	} {
		if _, _, err := ParseCerebro(line); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", line, err, says)
		}
	}
}

func TestOperationsOfAMetadataServer(t *testing.T) {
	d := &Differ{Interval: 5 * time.Second}
	at := time.Unix(1e9, 0)
	r := func(after time.Duration, ops map[string]uint64) *Reading {
		r := &Reading{Kind: "mdt", Target: "fs-MDT0000", Time: at.Add(after), Totals: Totals{OpsTotal: ops}}
		d.Add(r)
		return r
	}
	r(0, map[string]uint64{"open": 5})
	if got := r(5*time.Second, map[string]uint64{"open": 9, "close": 3}).Delta; got.Ops["open"] != 4 ||
		len(got.Ops) != 1 {
		t.Errorf("%+v", got)
	}
	if got := r(10*time.Second, map[string]uint64{"open": 1, "close": 4}).Delta; !got.Reset {
		t.Errorf("%+v", got)
	}
	if r(10*time.Second, map[string]uint64{"open": 2}).Delta != nil {
		t.Error("a second reading of the same time counts")
	}
}

// TestBytesThatAreZeroForAWhile: where a counter is 0 and then what it was, nothing was counted from 0.
func TestBytesThatAreZeroForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		written []uint64
		want    string // by reading: bytes written, or reset
	}{
		"one reading":    {[]uint64{1 << 40, 1<<40 + 7, 0, 1<<40 + 9, 1<<40 + 12}, "7 reset reset 3"},
		"two readings":   {[]uint64{1 << 40, 0, 0, 1 << 40, 1<<40 + 5}, "reset 0 reset 5"},
		"begun anew":     {[]uint64{900, 0, 30, 2000}, "reset 30 1970"},
		"begun at once":  {[]uint64{900, 30, 2000}, "reset 1970"},
		"nothing before": {[]uint64{0, 0, 1 << 40}, "0 1099511627776"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Differ{Interval: 5 * time.Second}
			var got []string
			for i, n := range c.written {
				r := &Reading{Kind: "ost", Target: "fs-OST0000", Time: time.Unix(int64(1e9+5*i), 0),
					Totals: Totals{WriteBytesTotal: &n}}
				switch d.Add(r); {
				case r.Delta == nil:
				case r.Delta.Reset:
					got = append(got, "reset")
				default:
					got = append(got, fmt.Sprint(*r.Delta.WriteBytes))
				}
			}
			if all := strings.Join(got, " "); all != c.want {
				t.Errorf("%s, want %s", all, c.want)
			}
		})
	}
}

// realSamples is the folder of real files, where there is one.
const realSamples = "../../../../shared/data"

// counted are the figures of a database's rows.
type counted struct {
	osts, differences, idle, mdts int
	most, opens                   uint64
}

func figuresOf(t *testing.T, b []byte) (c counted, first Reading) {
	t.Helper()
	got, err := readAll(t, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got {
		if r.Kind == "mdt" {
			c.mdts++
			if r.Delta != nil {
				c.opens += r.Delta.Ops["open"]
			}
			continue
		}
		c.osts++
		if r.Delta == nil {
			continue
		}
		c.differences++
		if r.Delta.Gap || r.Delta.Reset || r.Delta.Seconds != 5 {
			t.Errorf("%+v", r.Delta)
		}
		if *r.Delta.WriteBytes == 0 {
			c.idle++
		}
		c.most = max(c.most, *r.Delta.ReadBytes, *r.Delta.WriteBytes)
	}
	return c, got[0]
}

// TestDatabaseOfANight reads a database of 24 targets and 61 times whose tables take many pages, and a real one of the
// same size where it lies beside the repository; the figures are those of the rows.
func TestDatabaseOfANight(t *testing.T) {
	got, first := figuresOf(t, nightDatabase())
	if want := (counted{osts: 1464, differences: 1440, idle: 60, most: 57500}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if first.FileSystem != "fsx" || *first.Index != 0 || first.Host != "oss0" || first.Time.Unix() != 1517097600 {
		t.Errorf("%+v", first)
	}
	b, err := os.ReadFile(filepath.Join(realSamples, "lmt/snx11025_2018-01-28.sqlite3"))
	if err != nil {
		return
	}
	got, first = figuresOf(t, b)
	if got.opens == 0 {
		t.Error("no opens in the real database")
	}
	got.opens = 0
	if want := (counted{osts: 1464, differences: 1440, idle: 118, most: 1916582485, mdts: 61}); got != want {
		t.Errorf("the real database: %+v, want %+v", got, want)
	}
	if first.FileSystem != "snx11025" || first.Index == nil || first.Host == "" || first.Time.Unix() != 1517097600 {
		t.Errorf("%+v", first)
	}
}

// TestCerebroStrings reads what two versions of a server's tools printed, whole with what is not counters.
func TestCerebroStrings(t *testing.T) {
	const rest = "osc: 1;oss1;fs-OST0000;F\nsysstat: cpu_util: 2.07% mem_util: 64.07%\n"
	texts := map[string]int{
		"ost: 2;oss1;2.07;64.06;fs-OST0000;60;100;500;900;11;22;33;3;0;0;0;9671;95316;COMPLETE 1/1 0s remaining;" +
			"fs-OST0001;60;100;500;900;11;22;33;3;0;0;0;9671;95316;RECOVERING 1 4s remaining;\n" +
			"mdt: 3;mds1;2.07;64.06;fs-MDT0000;10;30;5;9;INACTIVE 0s remaining" + strings.Repeat(";7;0;0", 23) + "\n" +
			"router: 1.0;r1;2.07;64.06;139\n" + rest: 4,
		"ost: 2;oss1;0.16;17.49;fs-OST0000;60;100;500;900;11;22;33;107;0;58;66;2;110;COMPLETE 8/8 0s remaining;\n" +
			"mdt: 3;mds1;0.16;17.49;fs-MDT0000;10;30;5;9;COMPLETE 7/7 0s remaining" + strings.Repeat(";7;0;0", 23) +
			"\n" +
			rest: 2,
	}
	for name, n := range map[string]int{"1.8.3": 4, "2.10.8": 2} {
		b, err := os.ReadFile(filepath.Join(realSamples, "lustre/llnl_lmt", name, "outputs/t10.exp"))
		if err == nil {
			texts[string(b)] = n
		}
	}
	for text, want := range texts {
		got, err := readAll(t, []byte(text), Options{})
		if err != nil || len(got) != want {
			t.Errorf("%s: %d readings, want %d; %v", text, len(got), want, err)
			continue
		}
		if got[0].ReadBytesTotal == nil || *got[0].ReadBytesTotal == 0 {
			t.Errorf("%s: %+v", text, got[0])
		}
	}
}

// testTable is one to write into an SQLite file: its columns as SQL has them, and its rows of nil, int and string.
type testTable struct {
	name, columns string
	rows          [][]any
}

const sqlitePage = 4096

// testDatabase writes an SQLite file, so that the reader is tested without a real one. A table of many rows has leaf
// pages and one interior page above them.
func testDatabase(tables ...testTable) []byte {
	pages := [][]byte{make([]byte, sqlitePage)}
	var schema [][]byte
	for _, of := range tables {
		var leaves [][]byte
		var last []int // row number at the end of each leaf
		page, cells, room := make([]byte, sqlitePage), 0, sqlitePage-8
		flush := func(row int) {
			page[0] = 13
			binary.BigEndian.PutUint16(page[3:], uint16(cells))
			leaves, last = append(leaves, page), append(last, row)
			page, cells, room = make([]byte, sqlitePage), 0, sqlitePage-8
		}
		at := sqlitePage
		for i, values := range of.rows {
			cell := leafCell(i+1, sqliteRow(values...))
			if len(cell)+2 > room {
				flush(i)
				at = sqlitePage
			}
			at -= len(cell)
			room -= len(cell) + 2
			copy(page[at:], cell)
			binary.BigEndian.PutUint16(page[8+2*cells:], uint16(at))
			cells++
		}
		flush(len(of.rows))
		first := len(pages) + 1
		pages = append(pages, leaves...)
		root := first
		if len(leaves) > 1 {
			pages = append(pages, interior(first, last))
			root = len(pages)
		}
		schema = append(schema, sqliteRow("table", of.name, of.name, root, "CREATE TABLE x ("+of.columns+")"))
	}
	head := pages[0]
	copy(head, sqliteMagic)
	binary.BigEndian.PutUint16(head[16:], sqlitePage)
	binary.BigEndian.PutUint32(head[56:], 1)
	head[100] = 13
	binary.BigEndian.PutUint16(head[103:], uint16(len(schema)))
	at := sqlitePage
	for i, row := range schema {
		cell := leafCell(i+1, row)
		at -= len(cell)
		copy(head[at:], cell)
		binary.BigEndian.PutUint16(head[108+2*i:], uint16(at))
	}
	return bytes.Join(pages, nil)
}

// interior is a page above leaves that follow each other from page first on.
func interior(first int, last []int) []byte {
	page := make([]byte, sqlitePage)
	page[0] = 5
	n := len(last) - 1
	binary.BigEndian.PutUint16(page[3:], uint16(n))
	binary.BigEndian.PutUint32(page[8:], uint32(first+n))
	at := sqlitePage
	for i, row := range last[:n] {
		cell := append(binary.BigEndian.AppendUint32(nil, uint32(first+i)), sqliteVarint(row)...)
		at -= len(cell)
		copy(page[at:], cell)
		binary.BigEndian.PutUint16(page[12+2*i:], uint16(at))
	}
	return page
}

func sqliteVarint(v int) []byte {
	if v < 128 {
		return []byte{byte(v)}
	}
	return []byte{0x80 | byte(v>>7), byte(v & 0x7f)}
}

func leafCell(number int, row []byte) []byte {
	return append(append(sqliteVarint(len(row)), sqliteVarint(number)...), row...)
}

func sqliteRow(values ...any) []byte {
	head, body := []byte{0}, []byte{}
	for _, v := range values {
		switch x := v.(type) {
		case nil:
			head = append(head, 0)
		case int:
			head = append(head, 4)
			body = binary.BigEndian.AppendUint32(body, uint32(x))
		case string:
			head = append(head, sqliteVarint(13+2*len(x))...)
			body = append(body, x...)
		}
	}
	head[0] = byte(len(head))
	return append(head, body...)
}

// lmtTables are the tables that the reader uses.
func lmtTables(servers, targets, times, data [][]any) []byte {
	return testDatabase(testTable{"filesystem_info", "filesystem_id INTEGER PRIMARY KEY, filesystem_name",
		[][]any{{nil, "fsx"}}},
		testTable{"OSS_INFO", "OSS_ID, FILESYSTEM_ID", servers},
		testTable{"OST_INFO", "OST_ID, OSS_ID, OST_NAME, HOSTNAME", targets},
		testTable{"TIMESTAMP_INFO", "TS_ID, TIMESTAMP", times},
		testTable{"OST_DATA", "OST_ID, TS_ID, READ_BYTES, WRITE_BYTES", data})
}

// smallDatabase has two times of one target, and a row of a target without a name.
func smallDatabase() []byte {
	return lmtTables([][]any{{1, 1}}, [][]any{{7, 1, "fs-OST000a", "oss"}},
		[][]any{{1, "2018-01-28 00:00:00"}, {2, "2018-01-28 00:00:05"}},
		[][]any{{7, 1, 10, 20}, {7, 2, 15, 20}, {9, 2, 1, 1}})
}

// nightDatabase has 61 times of 24 targets: target i reads 1,000 bytes and writes 2,500*i bytes in 5 s; the first one
// writes nothing.
func nightDatabase() []byte {
	var targets, times, data [][]any
	for i := range 24 {
		targets = append(targets, []any{i + 1, 1, fmt.Sprintf("fsx-OST%04x", i), "oss0"})
	}
	begin := time.Unix(1517097600, 0).UTC()
	for k := range 61 {
		times = append(times, []any{k + 1, begin.Add(time.Duration(5*k) * time.Second).Format(time.DateTime)})
		for i := range 24 {
			data = append(data, []any{i + 1, k + 1, 1000 * k, 2500 * i * k})
		}
	}
	return lmtTables([][]any{{1, 1}}, targets, times, data)
}

func TestSmallDatabase(t *testing.T) {
	got, err := readAll(t, smallDatabase(), Options{})
	if len(got) != 2 || deltas(got) != "first, 5+0/5" || got[0].FileSystem != "fsx" || *got[0].Index != 10 {
		t.Errorf("%+v", got)
	}
	if err == nil || !strings.Contains(err.Error(), "target 9, which has no name") {
		t.Errorf("error %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(smallDatabase())
	f.Add(
		[]byte(
			"OST_NAME,TIMESTAMP,READ_BYTES,WRITE_BYTES\nfs-OST0000,2018-01-28 00:00:00,1,2\nfs-OST0000,2018-01-28 " +
				"00:00:05,2,2\n"))
	f.Add([]byte("ost: 2;oss3;0.5;17.5;a-OST0000;60;100;500;900;11;22;33;107;0;58;66;2;110;COMPLETE 1/1;\n"))
	f.Add([]byte("mdt: 1;mds;1;2;a-MDT0000;10;30;5;9;INACTIVE" + strings.Repeat(";7;0;0", 21) +
		"\nrouter: 1.0;r1;2;64;1391108595264\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = Read(bytes.NewReader(b), int64(len(b)), Options{}, func(r *Reading) error {
			_, err := json.Marshal(r)
			return err
		})
	})
}
