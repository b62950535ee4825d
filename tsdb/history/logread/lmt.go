package logread

import (
	"bytes"
	"io"
	"math"

	"fairway/collector/logs/lmt"
	"fairway/tsdb/history/iolog"
)

// looksLikeLMT recognizes LMT's database and rows of it by their first bytes. Strings of its agents carry no
// time and are no history.
func looksLikeLMT(head []byte) bool {
	if bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return true
	}
	line, _, _ := bytes.Cut(bytes.ToUpper(head), []byte("\n"))
	return bytes.Contains(line, []byte("TIMESTAMP")) && (bytes.Contains(line, []byte("READ_BYTES")) ||
		bytes.Contains(line, []byte("OST_NAME")))
}

// LMT reads what storage targets moved between LMT's readings, one row a target and interval. There is no
// row for a target's first reading, nor where a counter went backwards.
func LMT(in *io.SectionReader, o Options) (*iolog.Log, error) { return lmtRows(in, o, mostMemory) }

// ostBytes is what a row of a target takes, about.
const ostBytes = 128

func lmtRows(in *io.SectionReader, o Options, left room) (*iolog.Log, error) {
	l := &iolog.Log{Kind: "lmt"}
	return kept(l, lmt.Read(in, in.Size(), lmt.Options{Zone: o.Zone}, func(r *lmt.Reading) error {
		row, ok := OST(r)
		if !ok {
			return nil
		}
		l.OSTs = append(l.OSTs, row)
		return left.take(ostBytes)
	}))
}

// OST is the row of a reading; ok is false where it has no interval of a storage target.
func OST(r *lmt.Reading) (row iolog.OST, ok bool) {
	d := r.Delta
	if r.Kind != "ost" || d == nil || d.Reset || d.ReadBytes == nil && d.WriteBytes == nil {
		return row, false
	}
	row = iolog.OST{Time: d.Start, Target: string(r.Target), FS: r.FileSystem, Seconds: d.Seconds,
		BytesRead: math.NaN(), BytesWritten: math.NaN(), CPUPercent: math.NaN()}
	if d.ReadBytes != nil {
		row.BytesRead = float64(*d.ReadBytes)
	}
	if d.WriteBytes != nil {
		row.BytesWritten = float64(*d.WriteBytes)
	}
	if r.CPUPercent != nil {
		row.CPUPercent = *r.CPUPercent
	}
	return row, true
}
