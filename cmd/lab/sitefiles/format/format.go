// Package format writes what a node of a modelled site would show, byte for byte as the systems do: the files of LNet
// and Lustre of several releases, those of Linux, and lnetctl's YAML. It shares no code and no constant with
// fairway's readers, so that a mistake of one is not hidden by the other.
package format

import (
	"fmt"
	"time"
)

// Release is a minor release of Lustre 2: 10, 12, 14, 15 or 17.
type Release int

// Releases are the ones that are written.
var Releases = []Release{10, 12, 14, 15, 17}

// ParseRelease reads "2.15".
func ParseRelease(text string) (Release, error) {
	for _, r := range Releases {
		if text == r.String() {
			return r, nil
		}
	}
	return 0, fmt.Errorf("release %q: want one of %v", text, Releases)
}

func (r Release) String() string { return fmt.Sprintf("2.%d", int(r)) }

// LNetDir is where the release has LNet's files.
func (r Release) LNetDir() string {
	if r <= 10 {
		return "proc/sys/lnet/"
	}
	return "sys/kernel/debug/lnet/"
}

// statsDir is where it has the counters of clients and services.
func (r Release) statsDir() string {
	if r <= 10 {
		return "proc/fs/lustre/"
	}
	return "sys/kernel/debug/lustre/"
}

// serverDir is where it has the counters of targets.
func (r Release) serverDir() string { return "proc/fs/lustre/" }

// paramDir is where it has single values.
func (r Release) paramDir() string {
	if r <= 10 {
		return "proc/fs/lustre/"
	}
	return "sys/fs/lustre/"
}

// usec is how the release spells the unit of times in statistics.
func (r Release) usec() string {
	if r <= 12 {
		return "usec"
	}
	return "usecs"
}

func (r Release) sec() string {
	if r <= 12 {
		return "sec"
	}
	return "secs"
}

// stamp is a time as the kernel prints it: seconds and nine digits.
func stamp(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }

// span is a duration in the same form.
func span(d time.Duration) string { return fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second) }
