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
// come back), and a row has no value.
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
	if want := "first, 50+0/5, 30+400/15 gap, reset/5, 0+0/5, 500+9000/5, -+1/5, first"; deltas(got) != want {
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
		t.Skip("no time zones here: ", err)
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
			t.Errorf("%q is not said in %v", says, err)
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
		"router: 1.0;h;1;2;lots":                  "no count",
		"ost: 2;h;1;2" + strings.Repeat(";x", 15): "no count",
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
		r := &Reading{Kind: "mdt", Target: "fs-MDT0000", Time: at.Add(after), OpsTotal: ops}
		d.Add(r)
		return r
	}
	r(0, map[string]uint64{"open": 5})
	if got := r(5*time.Second, map[string]uint64{"open": 9, "close": 3}).Delta; got.Ops["open"] != 4 ||
		len(got.Ops) != 1 {
		t.Errorf("%+v", got)
	}
	if got := r(10*time.Second, map[string]uint64{"open": 1, "close": 4}).Delta; !got.Reset || d.Resets != 1 {
		t.Errorf("%+v", got)
	}
	if r(10*time.Second, map[string]uint64{"open": 2}).Delta != nil || d.Repeated != 1 {
		t.Error("a second reading of the same time counts")
	}
}

const real = "../../../../shared/data"

func realFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(real, name))
	if err != nil {
		t.Skip("no real files: ", err)
	}
	return b
}

// TestRealDatabase: 24 targets, 61 times of one night; the figures are those of the rows themselves.
func TestRealDatabase(t *testing.T) {
	got, err := readAll(t, realFile(t, "lmt/snx11025_2018-01-28.sqlite3"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	osts, differences, idle, most, mdts, opens := 0, 0, 0, uint64(0), 0, uint64(0)
	for _, r := range got {
		if r.Kind == "mdt" {
			mdts++
			if r.Delta != nil {
				opens += r.Delta.Ops["open"]
			}
			continue
		}
		osts++
		if r.Delta == nil {
			continue
		}
		differences++
		if r.Delta.Gap || r.Delta.Reset || r.Delta.Seconds != 5 {
			t.Errorf("%+v", r.Delta)
		}
		if *r.Delta.WriteBytes == 0 {
			idle++
		}
		most = max(most, *r.Delta.ReadBytes, *r.Delta.WriteBytes)
	}
	if osts != 1464 || differences != 1440 || idle != 118 || most != 1916582485 || mdts != 61 || opens == 0 {
		t.Errorf("%d readings, %d differences, %d idle, at most %d bytes; %d of metadata, %d opens", osts, differences,
			idle, most, mdts, opens)
	}
	if r := got[0]; r.FileSystem != "snx11025" || r.Index == nil || r.Host == "" || r.Time.Unix() != 1517097600 {
		t.Errorf("%+v", r)
	}
}

func TestRealCerebroStrings(t *testing.T) {
	for name, want := range map[string]int{"1.8.3": 4, "2.10.8": 2} {
		got, err := readAll(t, realFile(t, "lustre/llnl_lmt/"+name+"/outputs/t10.exp"), Options{})
		if err != nil || len(got) != want {
			t.Errorf("%s: %d readings, want %d; %v", name, len(got), want, err)
		}
		if got[0].ReadBytesTotal == nil || *got[0].ReadBytesTotal == 0 {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
}

// smallDatabase writes an SQLite file of one page of tables, so that the reader is tested without a real
// one: file systems, servers, targets, times and data, one row each but two of data.
func smallDatabase() []byte {
	const page = 4096
	blank := func() []byte { return make([]byte, page) }
	leaf := func(p []byte, head int, rows ...[]byte) []byte {
		p[head] = 13
		binary.BigEndian.PutUint16(p[head+3:], uint16(len(rows)))
		at := page
		for i, row := range rows {
			cell := append([]byte{byte(len(row)), byte(i + 1)}, row...)
			at -= len(cell)
			copy(p[at:], cell)
			binary.BigEndian.PutUint16(p[head+8+2*i:], uint16(at))
		}
		return p
	}
	row := func(values ...any) []byte {
		head, body := []byte{0}, []byte{}
		for _, v := range values {
			switch x := v.(type) {
			case nil:
				head = append(head, 0)
			case int:
				head = append(head, 4)
				body = binary.BigEndian.AppendUint32(body, uint32(x))
			case string:
				if n := 13 + 2*len(x); n < 128 {
					head = append(head, byte(n))
				} else {
					head = append(head, 0x80|byte(n>>7), byte(n&0x7f))
				}
				body = append(body, x...)
			}
		}
		head[0] = byte(len(head))
		return append(head, body...)
	}
	schema := func(name string, root int, columns string) []byte {
		return row("table", name, name, root, "CREATE TABLE x ("+columns+")")
	}
	first := blank()
	copy(first, sqliteMagic)
	binary.BigEndian.PutUint16(first[16:], page)
	binary.BigEndian.PutUint32(first[56:], 1)
	leaf(first, 100, schema("filesystem_info", 2, "filesystem_id INTEGER PRIMARY KEY, filesystem_name"),
		schema("OSS_INFO", 3, "OSS_ID, FILESYSTEM_ID"), schema("OST_INFO", 4, "OST_ID, OSS_ID, OST_NAME, HOSTNAME"),
		schema("TIMESTAMP_INFO", 5, "TS_ID, TIMESTAMP"),
		schema("OST_DATA", 6, "OST_ID, TS_ID, READ_BYTES, WRITE_BYTES"))
	out := first
	for _, p := range [][]byte{leaf(blank(), 0, row(nil, "fsx")), leaf(blank(), 0, row(1, 1)),
		leaf(blank(), 0, row(7, 1, "fs-OST000a", "oss")),
		leaf(blank(), 0, row(1, "2018-01-28 00:00:00"), row(2, "2018-01-28 00:00:05")),
		leaf(blank(), 0, row(7, 1, 10, 20), row(7, 2, 15, 20), row(9, 2, 1, 1))} {
		out = append(out, p...)
	}
	return out
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
