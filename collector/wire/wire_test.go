package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

func sample(m collector.Metric, v float64) collector.Sample {
	return collector.Sample{Metric: m, Value: v}
}

// fullFrames uses every field of a frame.
func fullFrames() *Frames {
	return &Frames{Seq: 77, Frames: []collector.Frame{
		{
			Node: "fwd1", Role: topology.Forwarder, TimeMillis: 1_795_000_000_000, RoutesComplete: true,
			Samples: []collector.Sample{
				sample(collector.ReadBytes, 0), sample(collector.WriteBytes, 972e6), sample(collector.QueueLen, 2.55),
				sample(collector.MetaWait, math.SmallestNonzeroFloat64), sample(collector.ReadOps, maxWhole),
				sample(collector.WriteOps, maxWhole+2), sample(collector.MetaOps, math.Copysign(0, -1)),
				sample(collector.Threads, -3), sample(collector.Errors, -collector.MaxValue),
			},
			Jobs: []collector.JobSamples{
				{Job: "88231", Samples: []collector.Sample{sample(collector.ReadBytes, 1.5)}},
				{Job: "88231_4", Samples: []collector.Sample{}},
				{Job: "88231", Target: "fs-OST0043", Samples: []collector.Sample{sample(collector.WriteBytes, 3)}},
				{Job: collector.UncountedWork, Target: "fs-OST0043", Samples: []collector.Sample{}},
				{Job: "@my prog.1000", Target: "fs-OST0043", Samples: []collector.Sample{}},
				{Job: "a job", Samples: []collector.Sample{}},
			},
			Targets: []collector.TargetSamples{
				{Target: "fs-OST0043", Samples: []collector.Sample{sample(collector.WriteOps, 410),
					sample(collector.ClientWrite, 0.038)}},
				{Target: "fs-OST0044", Samples: []collector.Sample{}},
			},
			Routes: []collector.Route{{Client: "cn1", Forwarder: "fwd1"},
				{Client: "", Forwarder: "fwd1", Generation: 1 << 60, Lost: true},
				{Client: "cn2", Forwarder: "fwd2", Generation: 3, Share: 0.3333, Assumed: true},
				{Client: "cn2", Share: 0.5, Address: "10.2.3.1"}, {Forwarder: "fwd2", Address: "10.2.3.2"}},
			Sources: []collector.SourceStatus{
				{Name: "diod", Duration: 412 * time.Microsecond, Failures: 3, Resets: 1,
					Err: "ctl: connection refused", Note: "for I/O completion"},
			},
		},
		{Node: "cn1", Role: topology.Compute, TimeMillis: 1_794_999_999_000, Samples: []collector.Sample{}},
	}}
}

func TestEveryMessageComesBackAsItWas(t *testing.T) {
	messages := []Message{
		Hello{Node: "cn1", Role: topology.Compute, FirstSeq: 9, Instance: "7f3a"},
		fullFrames(),
		&Frames{Seq: 1, Frames: []collector.Frame{}},
		Ack{Seq: math.MaxUint64},
		Order{ID: "p-1/cn1", Kind: "remap", Deadline: time.UnixMilli(1_795_000_001_250).UTC(),
			Body: json.RawMessage(`{"to":"fwd2"}`)},
		Order{ID: "p-2", Kind: "remap"},
		OrderResult{ID: "p-1/cn1", OK: true, Took: 3 * time.Millisecond, Body: json.RawMessage(`{"generation":4}`)},
		OrderResult{ID: "p-2", Err: "no such forwarder"},
		Reject{Code: RejectForbidden, Seq: 12, Text: "this token speaks for cn2"},
	}
	var d Decoder
	for _, want := range messages {
		b, err := Append(nil, want)
		if err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		got, err := d.Decode(b)
		if err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// TestBytesArePinned holds the layout of the package comment: changing it must be a decision, and
// a new version number.
func TestBytesArePinned(t *testing.T) {
	for _, c := range []struct {
		m    Message
		want string
	}{
		{Hello{Node: "cn1", Role: topology.Compute, FirstSeq: 300, Instance: "a"},
			"0101" + "03636e31" + "01" + "ac02" + "0161"},
		{Ack{Seq: 5}, "010305"},
		{&Frames{Seq: 1, Frames: []collector.Frame{{
			Node: "f", Role: topology.Forwarder, TimeMillis: 1000, RoutesComplete: true,
			Samples: []collector.Sample{sample(collector.WriteBytes, 128), sample(collector.QueueLen, 0.5)},
			Routes:  []collector.Route{{Client: "c", Forwarder: "f", Generation: 2}},
		}}}, "0102" + "01" + "d00f" + "01" + "0166" + "52" + "00" + "02" + "828001" + "06000000000000e03f" + "01" +
			"0263" + "00" + "02"},
		{Reject{Code: RejectBusy, Seq: 2, Text: "x"}, "0106" + "05" + "02" + "0178"},
	} {
		b, err := Append(nil, c.m)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", c.m, got, c.want)
		}
	}
}

// TestTruncatedMessage cuts a message at every byte: each cut is an error that says so.
func TestTruncatedMessage(t *testing.T) {
	b, err := Append(nil, fullFrames())
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	for n := range b {
		_, err := d.Decode(b[:n:n])
		if !errors.Is(err, ErrMalformed) {
			t.Fatalf("cut to %d of %d bytes: %v, want ErrMalformed", n, len(b), err)
		}
	}
	if _, err = d.Decode(b[:len(b)-3]); !strings.Contains(err.Error(), `node "cn1"`) ||
		!strings.Contains(err.Error(), "frames") {
		t.Errorf("the error does not name the kind and the node: %v", err)
	}
	if _, err = d.Decode(append(b, 0)); err == nil || !strings.Contains(err.Error(), "1 bytes too many") {
		t.Errorf("a byte too many: %v", err)
	}
}

func TestLimitsNameWhatWasExceeded(t *testing.T) {
	long := strings.Repeat("n", MaxNameBytes+1)
	many := make([]collector.Sample, MaxSamplesPerFrame+1)
	for i := range many {
		many[i] = sample(collector.ReadBytes, float64(i))
	}
	frame := func(f collector.Frame) Message { return &Frames{Frames: []collector.Frame{f}} }
	for want, m := range map[string]Message{
		"node: 256 is more than 255":      Hello{Node: topology.NodeID(long)},
		"frames: 65537 is more than":      &Frames{Frames: make([]collector.Frame, MaxFrames+1)},
		"samples: 1025 is more than 1024": frame(collector.Frame{Samples: many}),
		"jobs: 8193": frame(collector.Frame{Jobs: make([]collector.JobSamples,
			MaxJobsPerFrame+1)}),
		"targets: 1025": frame(collector.Frame{Targets: make([]collector.TargetSamples,
			MaxTargetsPerFrame+1)}),
		"routes: 65537": frame(collector.Frame{Routes: make([]collector.Route,
			MaxRoutesPerFrame+1)}),
		"sources: 65 ": frame(collector.Frame{Sources: make([]collector.SourceStatus,
			MaxSourcesPerFrame+1)}),
		"client: 256": frame(
			collector.Frame{Routes: []collector.Route{{Client: topology.NodeID(long)}}}),
		"order body: 1048577 is more than":     Order{Body: make([]byte, MaxBodyBytes+1)},
		`frame 0 (node "x"): samples: 1025 is`: frame(collector.Frame{Node: "x", Samples: many}),
	} {
		b, err := Append([]byte("kept"), m)
		if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
		if string(b) != "kept" {
			t.Errorf("%s: dst changed", want)
		}
	}
	var d Decoder
	if _, err := d.Decode([]byte{Version, byte(KindFrames), 1, 0, 0xff, 0xff, 0xff, 0x7f}); !errors.Is(err, ErrLimit) {
		t.Errorf("a huge count: %v", err)
	}
	if _, err := d.Decode(make([]byte, MaxMessageBytes+1)); !errors.Is(err, ErrLimit) {
		t.Errorf("a huge message: %v", err)
	}
	if _, err := d.Decode([]byte{9, 1}); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("another version: %v", err)
	}
}

func TestLongErrorTextIsCutNotLost(t *testing.T) {
	b, err := Append(nil, &Frames{Frames: []collector.Frame{{
		Node: "n", Sources: []collector.SourceStatus{{Name: "s", Err: strings.Repeat("e", MaxTextBytes+9)}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	m, err := d.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(m.(*Frames).Frames[0].Sources[0].Err); got != MaxTextBytes {
		t.Errorf("%d bytes of text, want %d", got, MaxTextBytes)
	}
}

func TestWhatNoReaderCouldUseIsLeftOut(t *testing.T) {
	b, err := Append(nil, &Frames{Frames: []collector.Frame{{Node: "n", Samples: []collector.Sample{
		sample(collector.MetaOps, math.NaN()), sample(collector.ReadOps, math.Inf(-1)), sample(collector.QueueLen, 4),
		sample(100, 1),
		sample(collector.WriteOps, 1e300),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	m, err := d.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.(*Frames).Frames[0].Samples,
		[]collector.Sample{sample(collector.QueueLen, 4)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if d.Dropped != 1 { // metric 100 is a newer writer's; the others never left
		t.Errorf("Dropped = %d, want 1", d.Dropped)
	}
}

// TestAbsurdValuesAreDropped sends what this package's writer never would: values whose sums overflow.
func TestAbsurdValuesAreDropped(t *testing.T) {
	const stand = 1.5e29
	b,
		err := Append(nil, &Frames{Frames: []collector.Frame{{Node: "n",
		Samples: []collector.Sample{sample(collector.ReadBytes, stand), sample(collector.QueueLen, 4)},
		Jobs: []collector.JobSamples{{Job: "1",
			Samples: []collector.Sample{sample(collector.WriteBytes, stand)}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	bits := func(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) }
	for _, v := range []float64{1.7e308, -1.7e308, math.Inf(1), math.NaN()} {
		var d Decoder
		m, err := d.Decode(bytes.ReplaceAll(b, bits(stand), bits(v)))
		if err != nil {
			t.Fatal(err)
		}
		f := m.(*Frames).Frames[0]
		if len(f.Samples) != 1 || len(f.Jobs[0].Samples) != 0 || d.Dropped != 2 {
			t.Errorf("%g: %+v, dropped %d", v, f, d.Dropped)
		}
	}
}

// TestMemoryIsReused decodes a machine's second again and again and counts allocations.
func TestMemoryIsReused(t *testing.T) {
	b, err := Append(nil, machineSecond(2000))
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	n := testing.AllocsPerRun(10, func() {
		if _, err := d.Decode(b); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations per message of 16,000 samples, want 0", n)
	}
}

// machineSecond is one second of a machine with that many nodes, eight metrics and a route each.
func machineSecond(nodes int) *Frames {
	rng := rand.New(rand.NewPCG(1, 2))
	m := &Frames{Seq: 1, Frames: make([]collector.Frame, nodes)}
	for i := range m.Frames {
		f := &m.Frames[i]
		*f = collector.Frame{Node: topology.NodeID(fmt.Sprintf("cn%05d", i)), Role: topology.Compute,
			TimeMillis: 1_795_000_000_000, RoutesComplete: true}
		f.Routes = []collector.Route{{Client: f.Node, Forwarder: topology.ForwarderID(fmt.Sprintf("fwd%03d", i/512)),
			Generation: 1}}
		for k := range 8 {
			v := rng.Float64() * 1e9
			if k < 3 {
				v = 0 // idle directions are common
			}
			f.Samples = append(f.Samples, sample(collector.ReadBytes+collector.Metric(k), v))
		}
	}
	return m
}

// FuzzDecode feeds bytes; what decodes must survive a round trip unchanged.
func FuzzDecode(f *testing.F) {
	for _, m := range []Message{
		fullFrames(), Hello{Node: "n", Instance: "i"}, Ack{Seq: 1}, Reject{Code: 1, Text: "t"},
		Order{ID: "i", Kind: "k", Deadline: time.UnixMilli(1).UTC(), Body: []byte("{}")},
		OrderResult{ID: "i", Err: "e"},
	} {
		b, err := Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d, again Decoder
		m, err := d.Decode(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrLimit) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		out, err := Append(nil, m)
		if err != nil {
			t.Fatalf("decoded but does not encode: %v", err)
		}
		m2, err := again.Decode(out)
		if err != nil || !reflect.DeepEqual(m, m2) {
			t.Fatalf("round trip: %v\n%+v\n%+v", err, m, m2)
		}
	})
}

// TestQueueOfOlderAgent: before in_flight an agent of diod reported as queue_len what was queued and in service, and
// under a number of its own what waited. Both arrive under today's names, also those of jobs; a queue without the
// second number is what waits, as it always was.
func TestQueueOfOlderAgent(t *testing.T) {
	const old = "0102" + "01" + "d00f" + "02" + // Frames, sequence 1, base time 1000, two frames
		"0166" + "22" + "00" + "02" + "8609" + "a302" + // f, with jobs: queue_len 9, number 35: 2
		"01" + "026a31" + "01" + "8607" // job j1: queue_len 7
	const lustre = "0167" + "02" + "00" + "01" + "8604" // g: queue_len 4
	b, err := hex.DecodeString(old + lustre)
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	m, err := d.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	frames := m.(*Frames).Frames
	want := []collector.Sample{sample(collector.InFlight, 9), sample(collector.QueueLen, 2)}
	if !reflect.DeepEqual(frames[0].Samples, want) {
		t.Errorf("got %v, want %v", frames[0].Samples, want)
	}
	if got := frames[0].Jobs[0].Samples; !reflect.DeepEqual(got, []collector.Sample{sample(collector.InFlight, 7)}) {
		t.Errorf("the job has %v", got)
	}
	if got := frames[1].Samples; !reflect.DeepEqual(got, []collector.Sample{sample(collector.QueueLen, 4)}) {
		t.Errorf("the other node has %v", got)
	}
	if d.Dropped != 0 {
		t.Errorf("%d samples dropped", d.Dropped)
	}
}

// TestAMessageHoldsLittle sends lists whose items take two to five bytes, and forty to sixty in memory.
func TestAMessageHoldsLittle(t *testing.T) {
	for name, frame := range map[string]func(b []byte) []byte{
		"jobs": func(b []byte) []byte {
			b = binary.AppendUvarint(append(b, flagJobs, 0, 0), MaxJobsPerFrame)
			return append(b, make([]byte, 2*MaxJobsPerFrame)...)
		},
		"targets": func(b []byte) []byte {
			b = binary.AppendUvarint(append(b, flagTargets, 0, 0), MaxTargetsPerFrame)
			return append(b, make([]byte, 2*MaxTargetsPerFrame)...)
		},
		"routes": func(b []byte) []byte {
			b = binary.AppendUvarint(append(b, flagRoutes, 0, 0), MaxRoutesPerFrame)
			return append(b, make([]byte, 3*MaxRoutesPerFrame)...)
		},
		"sources": func(b []byte) []byte {
			b = binary.AppendUvarint(append(b, flagSources, 0, 0), MaxSourcesPerFrame)
			return append(b, make([]byte, 5*MaxSourcesPerFrame)...)
		},
	} {
		one := frame([]byte{1, 'n'})
		n := min(MaxMessageBytes/len(one)-1, MaxFrames)
		msg := binary.AppendUvarint([]byte{Version, byte(KindFrames), 1, 0}, uint64(n))
		msg = append(msg, bytes.Repeat(one, n)...)
		var d Decoder
		if _, err := d.Decode(msg); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "in memory") {
			t.Errorf("%d bytes of %s: %v", len(msg), name, err)
		}
		if d.Small() {
			t.Errorf("after %s a decoder is kept that holds %d bytes", name, d.Held())
		}
		few := binary.AppendUvarint([]byte{Version, byte(KindFrames), 1, 0}, 1)
		if _, err := new(Decoder).Decode(append(few, one...)); err != nil {
			t.Errorf("one frame's %s: %v", name, err)
		}
	}
}
