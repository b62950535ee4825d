package lineproto

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"fairway/collector"
)

var options = Options{Now: time.Unix(1_700_000_000, 5e8), Precision: lineprotocol.Nanosecond}

// show writes frames as "node/role@second metric=value ...".
func show(frames []collector.Frame) (out []string) {
	for _, f := range frames {
		line := fmt.Sprintf("%s/%v@%d", f.Node, f.Role, f.TimeMillis/1000)
		for _, s := range f.Samples {
			line += fmt.Sprintf(" %v=%v", s.Metric, s.Value)
		}
		out = append(out, line)
	}
	return out
}

func TestLinesOfOtherCollectors(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"own": {"fairway,node=cn1,role=compute read_bytes=1.5e9,write_ops=3i 1700000001000000000",
			"cn1/compute@1700000001 read_bytes=1.5e+09 write_ops=3"},
		"cc-metric-collector": {"read_bytes,hostname=cn2.hpc.site,type=node value=42 1700000001999999999",
			"cn2/unknown@1700000001 read_bytes=42"},
		"telegraf": {"read,host=cn3 bytes=7u,ops=8 1700000001000000000",
			"cn3/unknown@1700000001 read_bytes=7 read_ops=8"},
		"no time": {"queue_len,host=f1 gauge=4", "f1/unknown@1700000000 queue_len=4"},
		"a second in lines": {
			"meta_ops,host=f1 value=4\nread_ops,host=f1 value=5\n# remark\n\nmeta_ops,host=f2 value=6",
			"f1/unknown@1700000000 meta_ops=4 read_ops=5;f2/unknown@1700000000 meta_ops=6"},
		"node goes before":    {"fairway,host=a,hostname=b,node=c errors=1", "c/unknown@1700000000 errors=1"},
		"an address is whole": {"fairway,host=10.0.0.1 errors=1", "10.0.0.1/unknown@1700000000 errors=1"},
		"what is not a metric": {"cpu,host=a usage_idle=99.5,read_bytes=3\nfairway,host=a errors=1,version=\"x\",up=t",
			"a/unknown@1700000000 errors=1"},
		"quoted and escaped": {`fairway,host=a\ b,note=x\=y errors=1`, "a b/unknown@1700000000 errors=1"},
		"nothing":            {"", ""},
	} {
		frames, rep, err := Parse([]byte(c.body), options)
		if err != nil || rep.Bad > 0 {
			t.Errorf("%s: %v %v", name, err, rep.Err)
		}
		if got := strings.Join(show(frames), ";"); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestBadLinesCostThemselves(t *testing.T) {
	body := "fairway,host=a errors=1\nfairway,host=a errors=\nfairway errors=2\nfairway,host=b " +
		"errors=nan\nfairway,host=c errors=3"
	frames, rep, err := Parse([]byte(body), options)
	if got := strings.Join(show(frames), ";"); err != nil ||
		got != "a/unknown@1700000000 errors=1;c/unknown@1700000000 errors=3" {
		t.Errorf("got %s, %v", got, err)
	}
	if rep.Lines != 5 || rep.Bad != 3 || rep.Err == nil || !strings.Contains(rep.Err.Error(), "line 2") {
		t.Errorf("report %+v", rep)
	}
	if _, rep, _ := Parse([]byte("cpu,host=a usage=1,text=\"x\""), options); rep.Unknown != 2 {
		t.Errorf("unknown fields: %d, want 2", rep.Unknown)
	}
}

func TestLimits(t *testing.T) {
	var many, wide strings.Builder
	for i := range MaxFrames + 1 {
		fmt.Fprintf(&many, "errors,host=n%d value=1\n", i)
	}
	for range MaxSamplesPerFrame + 1 {
		wide.WriteString("errors,host=a value=1\n")
	}
	for name, body := range map[string]string{"frames": many.String(), "samples": wide.String()} {
		if _, _, err := Parse([]byte(body), options); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, rep, _ := Parse([]byte("errors,host="+strings.Repeat("n", MaxNameBytes+1)+" value=1"), options)
	if rep.Bad != 1 {
		t.Error("a long name was taken")
	}
}

func TestParsePrecision(t *testing.T) {
	frames, _, err := Parse([]byte("errors,host=a value=1 1700000001"), Options{Precision: lineprotocol.Second})
	if err != nil || len(frames) != 1 || frames[0].TimeMillis != 1_700_000_001_000 {
		t.Errorf("%v %v", frames, err)
	}
	for word, ok := range map[string]bool{"": true, "ns": true, "us": true, "ms": true, "s": true, "m": false} {
		if _, err := ParsePrecision(word); (err == nil) != ok {
			t.Errorf("%q: %v", word, err)
		}
	}
}

// FuzzParse feeds bytes: what comes out keeps to the limits, whatever went in.
func FuzzParse(f *testing.F) {
	f.Add([]byte("fairway,node=cn1,role=compute read_bytes=1.5e9,write_ops=3i 1700000001000000000\n"))
	f.Add([]byte("read_bytes,hostname=cn2.hpc.site value=42 1\n# x\n\nerrors,host=a\\ b value=\"s\",x=t"))
	f.Add([]byte("errors,host=a value=1.7e308 1700000001000000000"))
	f.Add([]byte("errors,host=a value=9e999 -9223372036854775808"))
	f.Fuzz(func(t *testing.T, body []byte) {
		frames, rep, err := Parse(body, options)
		if err != nil && !errors.Is(err, ErrLimit) {
			t.Fatalf("an error of no kind: %v", err)
		}
		if rep.Bad > rep.Lines || (rep.Bad > 0) != (rep.Err != nil) {
			t.Fatalf("report %+v", rep)
		}
		seen := map[key]bool{}
		for _, fr := range frames {
			k := key{fr.Node, fr.TimeMillis}
			if fr.Node == "" || len(fr.Node) > MaxNameBytes || len(fr.Samples) == 0 ||
				len(fr.Samples) > MaxSamplesPerFrame || seen[k] {
				t.Fatalf("frame %+v", fr)
			}
			seen[k] = true
			for _, s := range fr.Samples {
				if s.Metric == collector.MetricNone || s.Metric.String() == "" || !collector.IsValue(s.Value) {
					t.Fatalf("sample %+v", s)
				}
			}
		}
	})
}
