package wire

import "testing"

const taihuLightNodes = 41_488

func BenchmarkEncode(b *testing.B) {
	m := machineSecond(taihuLightNodes)
	buf, err := Append(nil, m)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if buf, err = Append(buf[:0], m); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*taihuLightNodes*8/b.Elapsed().Seconds(), "samples/s")
}

func BenchmarkDecode(b *testing.B) {
	buf, err := Append(nil, machineSecond(taihuLightNodes))
	if err != nil {
		b.Fatal(err)
	}
	var d Decoder
	b.ReportAllocs()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, err := d.Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*taihuLightNodes*8/b.Elapsed().Seconds(), "samples/s")
}
