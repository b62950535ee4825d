package logs

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/anomaly/rootcause"
	"fairway/collector/logs/lmt"
	"fairway/tsdb/history/iolog"
	"fairway/tsdb/history/logread"
)

// lmtFlags are the servers' record beside a log.
type lmtFlags struct {
	files, mounts []string
	zone          string
}

func (f *lmtFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.files, "lmt", nil,
		"with a Darshan log: an LMT record of the storage targets at that time, as 'fairway lmt' reads them; several "+
			"times for several files")
	c.Flags().StringArrayVar(&f.mounts, "mount", nil,
		"POINT=FILESYSTEM: which of the record's file systems is mounted where; without it the one of the mount "+
			"point's last name, or the only one")
	c.Flags().StringVar(&f.zone, "zone", "Local", "time zone of the LMT database server, in which rows are written")
}

// parsed are the named mounts.
func (f *lmtFlags) parsed() (rootcause.Mounts, error) {
	var out rootcause.Mounts
	for _, text := range f.mounts {
		point, fs, found := strings.Cut(text, "=")
		if !found {
			return nil, fmt.Errorf("--mount %q: want POINT=FILESYSTEM, such as /scratch1=snx11025", text)
		}
		out = append(out, rootcause.Mount{Point: point, FileSystem: fs})
	}
	if err := out.Check(); err != nil {
		return nil, fmt.Errorf("--mount: %w", err)
	}
	return out, nil
}

// Of the peak of a target only readings in the usual interval count, and only over a longer time.
const (
	peakAtLeast, peakAtMost = 1.0, 7.5 // seconds of a reading
	peakOver                = time.Hour
)

// record is what LMT files say of a job's time.
type record struct {
	from, to    time.Time // of the job
	first, last time.Time // of the readings
	around      iolog.Around
	readings    int
}

func (r *record) take(o *iolog.OST) {
	end := o.Time.Add(time.Duration(o.Seconds * float64(time.Second)))
	if r.readings == 0 || o.Time.Before(r.first) {
		r.first = o.Time
	}
	if end.After(r.last) {
		r.last = end
	}
	r.readings++
	if o.Seconds >= peakAtLeast && o.Seconds <= peakAtMost {
		sum := 0.0
		for _, bytes := range []float64{o.BytesRead, o.BytesWritten} {
			if bytes > 0 {
				sum += bytes
			}
		}
		r.around.PeakBytesPerSec[o.FS] = max(r.around.PeakBytesPerSec[o.FS], sum/o.Seconds)
	}
	if o.Time.Before(r.to) && end.After(r.from) {
		r.around.OSTs = append(r.around.OSTs, *o)
	}
}

// addRecord joins a job of a log with LMT's files.
func (f *lmtFlags) addRecord(cmd *cobra.Command, job *rootcause.Job, l *iolog.Log) error {
	zone, err := zoneFlag(f.zone)
	if err != nil {
		return err
	}
	j := &l.Jobs[0]
	r := record{from: j.Start, to: j.End, around: iolog.Around{PeakBytesPerSec: map[string]float64{}}}
	for _, name := range f.files {
		if err := r.read(cmd, name, zone); err != nil {
			return err
		}
	}
	all, day := strings.Join(f.files, ", "),
		func(t time.Time) string { return t.In(zone).Format("2006-01-02 15:04:05 -07:00") }
	switch {
	case r.readings == 0:
		return fmt.Errorf("--lmt %s: no interval of a storage target in it (two readings of one make an interval)", all)
	case len(r.around.OSTs) == 0:
		return fmt.Errorf(
			"--lmt %s: readings from %s to %s, and the job ran from %s to %s: another day's record, or another --zone?",
			all, day(r.first), day(r.last), day(r.from), day(r.to))
	}
	if r.last.Sub(r.first) < peakOver {
		clear(r.around.PeakBytesPerSec) // what such a short time shows is not a peak
	}
	if job.FromAround(l, r.around); job.Storage.Unjoined != "" {
		return fmt.Errorf("--lmt %s: %s (--mount POINT=FILESYSTEM)", all, job.Storage.Unjoined)
	}
	return nil
}

func (r *record) read(cmd *cobra.Command, name string, zone *time.Location) error {
	in, size, done, err := openSeekable(cmd, name, maxHeld)
	if err != nil {
		return fmt.Errorf("--lmt: %w", err)
	}
	defer done()
	err = lmt.Read(in, size, lmt.Options{Zone: zone}, func(reading *lmt.Reading) error {
		if row, ok := logread.OST(reading); ok {
			r.take(&row)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("--lmt %s: %w", name, err)
	}
	return nil
}
