package topology

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// MaxHosts bounds what one host list may stand for: no machine has more nodes.
const MaxHosts = 1 << 20

// maxHostBytes bounds the names that one entry stands for, all in all: a short list may stand for long names.
const maxHostBytes = 64 << 20

// ErrHostList is wrapped by every error of ParseHostList.
var ErrHostList = errors.New("bad host list")

// ParseHostList expands a host list as Slurm writes it, in order: "cn[001-003,7],io1" is cn001,
// cn002, cn003, cn7 and io1. A name may have several brackets. Leading zeros of a range are kept.
// The error says where the list cannot be read.
func ParseHostList(text string) ([]NodeID, error) {
	var out []NodeID
	for rest := text; rest != ""; {
		var one string
		one, rest = CutHostList(rest)
		names, err := expand(strings.TrimSpace(one))
		if err != nil {
			return nil, fmt.Errorf("%w: %q in %.200q: %w", ErrHostList, one, text, err)
		}
		if len(out)+len(names) > MaxHosts {
			return nil, fmt.Errorf("%w: %.200q stands for more than %d hosts", ErrHostList, text, MaxHosts)
		}
		for _, n := range names {
			out = append(out, NodeID(n))
		}
	}
	return out, nil
}

// Distinct returns the different ones of a list, in their order; the zero value counts as none.
func Distinct[T comparable](list []T) (out []T) {
	var none T
	seen := map[T]bool{none: true}
	for _, x := range list {
		if !seen[x] {
			seen[x] = true
			out = append(out, x)
		}
	}
	return out
}

// CutHostList cuts a host list at the first comma that is not in brackets.
func CutHostList(s string) (before, after string) {
	depth := 0
	for i, c := range s {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth <= 0:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// expand writes out the brackets of one entry, the last one fastest.
func expand(s string) ([]string, error) {
	open := strings.IndexByte(s, '[')
	head := s
	if open >= 0 {
		head = s[:open]
	}
	if s == "" || strings.ContainsFunc(head, func(r rune) bool { return r == ']' || unicode.IsSpace(r) }) {
		return nil, errors.New("not a host name")
	}
	if open < 0 {
		return []string{s}, nil
	}
	inside, tail, ok := strings.Cut(s[open+1:], "]")
	if !ok {
		return nil, errors.New("a bracket is not closed")
	}
	tails := []string{""}
	if tail != "" {
		var err error
		if tails, err = expand(tail); err != nil {
			return nil, err
		}
	}
	var out []string
	for part := range strings.SplitSeq(inside, ",") {
		numbers, err := expandRange(part)
		if err != nil {
			return nil, err
		}
		if len(out)+len(numbers)*len(tails) > MaxHosts {
			return nil, fmt.Errorf("more than %d hosts", MaxHosts)
		}
		if each := open + len(numbers[0]) + len(tails[0]); (len(out)+len(numbers)*len(tails))*each > maxHostBytes {
			return nil, fmt.Errorf("names of more than %d bytes", maxHostBytes)
		}
		for _, n := range numbers {
			for _, t := range tails {
				out = append(out, s[:open]+n+t)
			}
		}
	}
	return out, nil
}

// expandRange writes out "001-003" or "7".
func expandRange(s string) ([]string, error) {
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	if len(from) > 20 {
		// Zero padding is kept, in every name.
		return nil, fmt.Errorf("a number of %d digits", len(from))
	}
	a, err := strconv.ParseUint(from, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%q is not a number", from)
	}
	b, err := strconv.ParseUint(to, 10, 32)
	if err != nil || b < a {
		return nil, fmt.Errorf("%q is not a range", s)
	}
	if b-a >= MaxHosts {
		return nil, fmt.Errorf("%q stands for more than %d hosts", s, MaxHosts)
	}
	out := make([]string, 0, b-a+1)
	for n := a; n <= b; n++ {
		out = append(out, fmt.Sprintf("%0*d", len(from), n))
	}
	return out, nil
}
