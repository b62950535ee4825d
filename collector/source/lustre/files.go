package lustre

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// files lists what may match a pattern below any of the roots: its plain name at the end in each folder. Whether the
// file is there, reading it shows.
func (s *Source) files(pattern string) []string {
	dirs, file := path.Split(pattern)
	var out []string
	for _, r := range roots {
		in, _ := fs.Glob(s.fsys, path.Join(r, dirs)) // the patterns are constants
		for _, dir := range in {
			out = append(out, dir+"/"+file)
		}
	}
	return out
}

// has says whether there is a file that matches.
func has(s *Source, pattern string) bool {
	return slices.ContainsFunc(s.files(pattern), func(name string) bool {
		_, err := fs.Stat(s.fsys, name)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// read reads one file; one that is not there is passed over.
func (s *Source) read(name string) ([]byte, error) {
	b, err := fs.ReadFile(s.fsys, name)
	if err == nil {
		s.seen = true
	} else if !errors.Is(err, fs.ErrNotExist) {
		s.fail(name, err)
	}
	return b, err
}

// number reads a file that holds one.
func (s *Source) number(name string) (n uint64, ok bool) {
	b, err := s.read(name)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	s.fail(name, err)
	return n, err == nil
}

func (s *Source) fail(name string, err error) {
	if err != nil {
		s.err = firstOf(s.err, fmt.Errorf("%s: %w", name, err))
	}
}

// found is what became of the files of a pattern: how many were read, how many were there and could not be, and how
// many had a line that could not be understood.
type found struct{ read, lost, bad int }

// all says that something was found and nothing of it is missing.
func (f found) all() bool { return f.read > 0 && f.lost == 0 && f.bad == 0 }

// each hands every line of the stats files that match to visit.
func (s *Source) each(pattern string, visit func(file string, st Stat)) (f found) {
	for _, name := range s.files(pattern) {
		f.add(s.lines(name, func(st Stat) { visit(name, st) }))
	}
	return f
}

// lines hands every line of a stats file to visit.
func (s *Source) lines(name string, visit func(st Stat)) (f found) {
	b, err := s.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found{}
	case err != nil:
		return found{lost: 1}
	}
	stats, err := ParseStats(b)
	if s.fail(name, err); err != nil {
		f.bad++
	} else if len(stats) > 0 {
		s.whole[name] = true
	}
	for _, st := range stats {
		visit(st)
	}
	f.read = 1
	return f
}

func (f *found) add(g found) { f.read, f.lost, f.bad = f.read+g.read, f.lost+g.lost, f.bad+g.bad }
