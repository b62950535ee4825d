package scraped

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Limits of a folder.
const (
	mostFile = 64 << 20
	mostKept = 20_000_000 // values
)

// ReadFolder reads what was saved in a folder: answers of the query API in files *.json, and expositions, each named
// NODE@SECONDS after the node and the time of its scrape. bad gets what of a file could not be used.
func (r *Reader) ReadFolder(dir string, bad func(error)) error {
	names, err := fs.Glob(os.DirFS(dir), "*")
	if err != nil {
		return err
	}
	series := map[string]*Series{}
	kept := 0
	add := func(labels map[string]string, points ...Point) {
		_, id := identify(labels)
		if series[id] == nil {
			series[id] = &Series{Labels: labels}
		}
		series[id].Points = append(series[id].Points, points...)
		kept += len(points)
	}
	for _, name := range names {
		if err := r.readFile(dir, name, add); err != nil {
			bad(fmt.Errorf("%s/%s: %w", dir, name, err))
		}
		if kept > mostKept {
			return fmt.Errorf("%s holds more than %d values that are read here: look at a shorter time", dir, mostKept)
		}
	}
	var batch []Series
	for _, id := range slices.Sorted(maps.Keys(series)) {
		s := series[id]
		slices.SortStableFunc(s.Points, func(a, b Point) int { return int(min(1, max(-1, a.Millis-b.Millis))) })
		batch = append(batch, *s)
	}
	return r.Take(batch)
}

// readFile reads one file.
func (r *Reader) readFile(dir, name string, add func(map[string]string, ...Point)) error {
	f, err := os.OpenInRoot(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.New("not a file; it is left out")
	}
	b, err := io.ReadAll(io.LimitReader(f, mostFile+1))
	if err != nil {
		return err
	}
	if len(b) > mostFile {
		return fmt.Errorf("more than %d MB; it is left out", mostFile>>20)
	}
	if strings.HasSuffix(name, ".json") {
		return addAnswer(b, add)
	}
	node, at, ok := strings.Cut(name, "@")
	at, _, _ = strings.Cut(at, ".")
	seconds, notNumber := strconv.ParseInt(at, 10, 64)
	if !ok || node == "" || notNumber != nil || seconds <= 0 || seconds > math.MaxInt64/1000 {
		return errors.New("an exposition is named NODE@SECONDS, as in oss1@1764372000; it is left out")
	}
	found := 0
	badLines := parseText(string(b), func(name string) bool { return isOfJobs(name) || r.table.has(name) },
		func(labels map[string]string, v float64) {
			found++
			if labels["instance"] == "" {
				labels["instance"] = node
			}
			add(labels, Point{seconds * 1000, v})
		})
	switch {
	case found == 0:
		return errors.New("nothing in it of the exporters that are read here; it is left out")
	case badLines > 0:
		return fmt.Errorf("%d of its lines could not be read and are left out", badLines)
	}
	return nil
}

func addAnswer(b []byte, add func(map[string]string, ...Point)) error {
	series, partial, err := parseAnswer(b)
	if err != nil {
		return fmt.Errorf("not an answer of the query API: %w; it is left out", err)
	}
	for _, s := range series {
		add(s.Labels, s.Points...)
	}
	return partial
}
