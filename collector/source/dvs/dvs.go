// Package dvs reads the counts of Cray's Data Virtualization Service on a client, which is a compute node, and on a
// server, which is a forwarding node.
//
// It fills read_ops, write_ops, meta_ops and errors, from /proc/fs/dvs/mounts/*/stats on a client and
// /proc/fs/dvs/stats on a server. DVS counts no bytes there and of times only the last and the longest, so that
// neither is known; behind a server source.lustre has both. Nothing is written: a 2 in one of these files resets it. A
// tick reads one file of 2 kB a mount.
package dvs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"fairway/collector"
)

const (
	dir = "proc/fs/dvs"
	// maxFile bounds one file of counts, bytes.
	maxFile = 1 << 20
)

// dataOf are the requests that carry data, by their class; READPAGE_DATA and those that end in RP are answers.
var dataOf = map[string]collector.Metric{"PARALLEL_READ": collector.ReadOps, "READPAGE_ASYNC": collector.ReadOps,
	"READPAGES_RQ": collector.ReadOps, "PARALLEL_WRITE": collector.WriteOps, "WRITEPAGES_RQ": collector.WriteOps}

// noOps are requests that are no operation of a program.
var noOps = map[string]bool{"READPAGE_DATA": true, "READPAGES_RP": true, "WRITEPAGES_RP": true, "VERIFYFS": true,
	"RO_CACHE_DISABLE": true, "SYNC_UPDATE": true}

// Count is one kind of request: what a client asked and what a server answered, well and with an error.
type Count struct {
	Kind   string `json:"kind"` // without RQ_
	Client [2]uint64
	Server [2]uint64
}

// Source reads the node's counts once a second.
type Source struct {
	fsys   fs.FS
	server bool
	rates  collector.Rates[key]
}

type key struct {
	file, kind string
	failed     bool
}

var _ collector.Source = (*Source)(nil)

// New makes a source over the root of a file system, of a server or of a client.
func New(root fs.FS, server bool) *Source { return &Source{fsys: root, server: server} }

// Name is "dvs".
func (*Source) Name() string { return "dvs" }

// Close has nothing to release.
func (*Source) Close() error { return nil }

// Read reports the rates since the tick before. A bad line costs itself and is named in the error.
func (s *Source) Read(ctx context.Context, into *collector.Reading) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	files := []string{path.Join(dir, "stats")}
	if !s.server {
		files, _ = fs.Glob(s.fsys, path.Join(dir, "mounts/*/stats")) // the pattern is a constant
	}
	s.rates.Begin(into.Now)
	sums := map[collector.Metric]*collector.Total{}
	var bad error
	found := false
	for _, name := range files {
		b, err := fs.ReadFile(s.fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // unmounted meanwhile
		}
		if err == nil && len(b) > maxFile {
			err = fmt.Errorf("%d bytes, more than %d", len(b), maxFile)
		}
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("%s: %w", name, err))
			continue
		}
		found = true
		counts, err := ParseStats(b)
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("%s: %w", name, err))
		}
		for i := range counts {
			s.add(sums, name, &counts[i])
		}
	}
	into.Resets += s.rates.Resets
	if !found && bad == nil {
		return fmt.Errorf("%w: no DVS below %s", collector.ErrNoData, dir)
	}
	for _, m := range []collector.Metric{collector.ReadOps, collector.WriteOps, collector.MetaOps, collector.Errors} {
		if t := sums[m]; t != nil {
			into.AddTotal(m, t)
		}
	}
	return bad
}

// add counts one kind of request: every one as an operation, failed ones as errors too.
func (s *Source) add(sums map[collector.Metric]*collector.Total, file string, c *Count) {
	n := c.Client
	if s.server {
		n = c.Server
	}
	m, data := dataOf[c.Kind]
	switch {
	case noOps[c.Kind]:
		return
	case !data:
		m = collector.MetaOps
	}
	for _, one := range []collector.Metric{m, collector.Errors} {
		if sums[one] == nil {
			sums[one] = &collector.Total{}
		}
	}
	s.rates.AddTo(sums[m], key{file, c.Kind, false}, n[0]+n[1])
	s.rates.AddTo(sums[collector.Errors], key{file, c.Kind, true}, n[1])
}

// ParseStats reads "RQ_KIND: client ok, client errors, server ok, server errors, last, longest"; lines of other names
// count calls of the node's own kernel and are passed over. With a bad line it returns the others and an error that
// names the first one.
func ParseStats(b []byte) (out []Count, bad error) {
	for n := 1; len(b) > 0; n++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		kind, rest, ok := bytes.Cut(line, []byte(":"))
		name, ours := strings.CutPrefix(string(bytes.TrimSpace(kind)), "RQ_")
		if !ours {
			continue
		}
		c := Count{Kind: name}
		f := bytes.Fields(rest)
		err := fmt.Errorf("%d numbers, not 4 and two times", len(f))
		if ok && len(f) >= 4 {
			err = nil
			for i, to := range []*uint64{&c.Client[0], &c.Client[1], &c.Server[0], &c.Server[1]} {
				v, e := strconv.ParseUint(string(f[i]), 10, 64)
				if *to = v; e != nil && err == nil {
					err = fmt.Errorf("%.40q is not a count", f[i])
				}
			}
		}
		if err != nil {
			if bad == nil {
				bad = fmt.Errorf("line %d: %.80q: %w", n, line, err)
			}
			continue
		}
		out = append(out, c)
	}
	if len(out) == 0 && bad == nil {
		bad = errors.New("no line of it counts requests (RQ_...)")
	}
	return out, bad
}
