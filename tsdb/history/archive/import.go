package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"fairway/tsdb/history/iolog"
)

// Input is one file to read.
type Input struct {
	Path    string
	Content *io.SectionReader
	// ID is the log's identity for the column log.
	ID int64
	// Users says that a user owns the file: accounts in it count for nothing, and are as long as that user likes.
	Users bool
}

// Importer reads I/O logs into an archive. Read is required; the zero value of everything else works.
type Importer struct {
	Dir string
	// Read turns a file into rows. It is called from several goroutines and may panic: that spoils the one log. It
	// answers iolog.ErrNotALog, and of Input.Users iolog.ErrAccounts.
	Read func(ctx context.Context, in Input) (*iolog.Log, error)
	// Now is the clock that rows of the table read are stamped with; default time.Now.
	Now func() time.Time
	// Workers is how many logs are read at a time; default one for each CPU.
	Workers int
	// Retry reads logs again that could not be read before.
	Retry bool
	// UserOf is the name of a uid on this host; empty: it has none. nil: none has.
	UserOf func(uid int64) string
	// TrustedBy is who vouches that the logs are their users' though others own the files; empty: nobody does.
	TrustedBy string
	// BatchRows is how many rows are collected before they become parts; default 500,000.
	BatchRows int
	// Progress is called after every file, from one goroutine; optional.
	Progress func(Progress)
}

// Progress is how far an import is.
type Progress struct {
	Files, Bytes           int64 // done
	TotalFiles, TotalBytes int64
	Elapsed                time.Duration
}

// Left estimates the remaining time from the bytes, or from the files where they are all empty.
func (p Progress) Left() time.Duration {
	done, total := p.Bytes, p.TotalBytes
	if total == 0 {
		done, total = p.Files, p.TotalFiles
	}
	if done == 0 {
		return 0
	}
	return time.Duration(float64(p.Elapsed) * float64(total-done) / float64(done))
}

// Report is what an import did.
type Report struct {
	Files    int64 `json:"files"` // all that were found
	Bytes    int64 `json:"bytes"`
	Imported int64 `json:"imported"` // read now
	Known    int64 `json:"known"`    // read before
	Skipped  int64 `json:"skipped"`  // not logs
	Rows     int64 `json:"rows"`
	// Bad lists the logs that could not be read; they are also in the table read.
	Bad     []Bad   `json:"bad"`
	Seconds float64 `json:"seconds"`
}

// Bad is a log that could not be read, or could not be reached.
type Bad struct {
	Path    string `json:"path"`
	Problem string `json:"problem"`
}

// Import reads every log below the paths that was not read before. Logs that cannot be read are counted
// and listed, never fatal; an error means that the archive itself could not be written, or ctx ended.
// What was committed before an error stays.
func (im *Importer) Import(ctx context.Context, paths ...string) (Report, error) {
	im.defaults()
	s, err := openStore(im.Dir)
	if err != nil {
		return Report{}, err
	}
	defer s.close()
	seen, err := readMemory(ctx, im.Dir, im.Retry)
	if err != nil {
		return Report{}, err
	}
	b, err := newBatch()
	if err != nil {
		return Report{}, err
	}
	defer b.close()
	r := &run{Importer: im, store: s, batch: b, memory: seen, begun: im.Now()}
	r.find(paths)
	if err = r.all(ctx); err == nil {
		err = s.compact(ctx)
	}
	r.report.Seconds = im.Now().Sub(r.begun).Seconds()
	return r.report, err
}

func (im *Importer) defaults() {
	if im.Now == nil {
		im.Now = time.Now
	}
	if im.Workers <= 0 {
		im.Workers = runtime.GOMAXPROCS(0)
	}
	if im.UserOf == nil {
		im.UserOf = func(int64) string { return "" }
	}
	if im.BatchRows <= 0 {
		im.BatchRows = 500_000
	}
}

// run is one import. Its goroutine owns everything but memory, which has its own lock.
type run struct {
	*Importer
	store  *store
	batch  *batch
	memory *memory
	begun  time.Time
	found  []found
	total  int64 // bytes found
	done   int64 // bytes done
	report Report
}

type found struct {
	path     string
	size     int64
	modified time.Time
}

// find lists the files below the paths. What cannot be looked at is a bad log.
func (r *run) find(paths []string) {
	for _, root := range paths {
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			var info fs.FileInfo
			if err == nil && d.Type().IsRegular() {
				info, err = d.Info()
			}
			switch {
			case err != nil:
				r.report.Bad = append(r.report.Bad, Bad{p, err.Error()})
			case info != nil:
				r.found = append(r.found, found{p, info.Size(), info.ModTime()})
				r.total += info.Size()
			}
			return nil
		})
		if err != nil {
			r.report.Bad = append(r.report.Bad, Bad{root, err.Error()})
		}
	}
	r.report.Files, r.report.Bytes = int64(len(r.found)), r.total
}

// result is what became of one file.
type result struct {
	found found
	log   *iolog.Log // nil where there are no rows
	read  iolog.Read
	state state
}

type state int

const (
	imported state = iota
	known
	skipped
	bad
)

// all reads the files with several workers and takes their results one by one.
func (r *run) all(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan result, r.Workers)
	var wg sync.WaitGroup
	var begun atomic.Int64
	for range r.Workers {
		wg.Go(func() {
			for i := begun.Add(1); i <= int64(len(r.found)) && ctx.Err() == nil; i = begun.Add(1) {
				select {
				case results <- r.one(ctx, r.found[i-1]):
				case <-ctx.Done():
				}
			}
		})
	}
	defer wg.Wait()
	defer cancel()
	for n := range r.found {
		var res result
		select {
		case res = <-results:
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // what comes now was cut off; the log may be good
			return errors.Join(ctx.Err(), r.flush())
		}
		if err := r.take(res); err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(Progress{int64(n + 1), r.done, r.report.Files, r.total, r.Now().Sub(r.begun)})
		}
	}
	return r.flush()
}

// take counts a result and adds its rows.
func (r *run) take(res result) error {
	r.done += res.found.size
	var err error
	switch res.state {
	case imported:
		r.report.Imported++
		r.report.Rows += res.read.Rows
		err = r.batch.add(res.log, res.read)
	case known:
		r.report.Known++
	case skipped:
		r.report.Skipped++
	case bad:
		r.report.Bad = append(r.report.Bad, Bad{res.found.path, res.read.Problem})
		if res.read.Hash != "" {
			r.batch.note(res.read)
		}
	}
	if err == nil && (r.batch.rows >= r.BatchRows || len(r.batch.reads) >= r.BatchRows) {
		err = r.flush()
	}
	return err
}

// flush makes what was collected part of the archive.
func (r *run) flush() error {
	if len(r.batch.reads) == 0 {
		return nil
	}
	name := r.batch.name()
	dir, err := r.store.begin(name)
	if err != nil {
		return err
	}
	if err := r.batch.writeTo(dir, name); err != nil {
		return err
	}
	return r.store.commit(dir)
}

// slurp is the size up to which a file is held in memory instead of being read twice.
const slurp = 8 << 20

// one reads one file, whatever it is; it never fails and never panics.
func (r *run) one(ctx context.Context, f found) (res result) {
	res = result{found: f, state: bad, read: iolog.Read{Path: f.path, Size: f.size, Modified: f.modified,
		Imported: r.Now(), Bad: true}}
	defer func() {
		if p := recover(); p != nil {
			res.read.Problem = fmt.Sprintf("BUG: the reader panicked: %v", p)
			res.log = nil
		}
	}()
	if !r.memory.isNew(statKey(f)) {
		res.state = known
		return res
	}
	ctx, cancel := context.WithTimeoutCause(ctx, longestRead, fmt.Errorf("it took more than %s", longestRead))
	defer cancel()
	content, sum, closer, err := open(ctx, f, &res.read)
	if err != nil {
		res.read.Problem = err.Error()
		return res
	}
	defer closer()
	ofUser, asUsers := r.users(&res.read), sha256.Sum256(fmt.Appendf(sum[:], " of %d", res.read.UID))
	if !r.memory.isNew(keyOf(sum)) || ofUser && !r.memory.isNew(keyOf(asUsers)) {
		res.state = known
		return res
	}
	res.read.Hash = hex.EncodeToString(sum[:])
	l, err := r.Read(ctx, Input{Path: f.path, Content: content, ID: idOf(sum), Users: ofUser})
	if l != nil && ofUser && len(l.Slurm)+len(l.OSTs)+len(l.Forwarders) > 0 {
		l, err = nil, iolog.ErrAccounts
	}
	if errors.Is(err, iolog.ErrAccounts) || err == nil && l != nil && r.brought(l, &res.read) {
		sum, res.read.Hash = asUsers, hex.EncodeToString(asUsers[:])
		number(l, idOf(sum))
	}
	if !r.memory.claim(keyOf(sum)) {
		l, err = nil, nil
	}
	switch {
	case l == nil && err == nil:
		res.state = known
	case errors.Is(err, iolog.ErrNotALog):
		res.state = skipped
	case errors.Is(err, iolog.ErrAccounts):
		res.read.Problem = fmt.Sprintf("%v, in a file of uid %d: want one of root's or of who imports it, or "+
			"--trust-owner with --retry", iolog.ErrAccounts, res.read.UID)
	case err != nil:
		res.read.Problem = err.Error()
	default:
		r.own(l, &res.read)
		res.state, res.log = imported, l
		res.read.Bad, res.read.Kind, res.read.Rows, res.read.Problem = false, l.Kind, int64(l.Rows()), l.Problem
	}
	return res
}

// idOf and keyOf are what a log is known by, of the hash of its content.
func idOf(sum [32]byte) int64     { return int64(binary.BigEndian.Uint64(sum[:8])) }
func keyOf(sum [32]byte) [16]byte { return [16]byte(sum[:16]) }

// number gives a log's rows its identity; without a log there are none.
func number(l *iolog.Log, id int64) {
	if l == nil {
		return
	}
	for i := range l.Jobs {
		l.Jobs[i].Log = id
	}
	for i := range l.JobFiles {
		l.JobFiles[i].Log = id
	}
}

// users says whether a file is a user's, and not of root's or of who imports it.
func (im *Importer) users(from *iolog.Read) bool {
	return im.TrustedBy == "" && from.UID != 0 && from.UID != int64(os.Geteuid())
}

// brought says whether a user brings what is not hers. Such a copy is known as that user's: whoever it belongs to may
// bring it yet.
func (im *Importer) brought(l *iolog.Log, from *iolog.Read) bool {
	return im.users(from) && slices.ContainsFunc(l.Jobs, func(j iolog.Job) bool { return j.UID != from.UID })
}

// own says of each job's log whose it is.
func (im *Importer) own(l *iolog.Log, from *iolog.Read) {
	from.TrustedBy = im.TrustedBy
	for i := range l.Jobs {
		switch j := &l.Jobs[i]; {
		case im.TrustedBy != "":
			j.Owner = iolog.OwnerTrusted
		case j.UID == from.UID:
			j.Owner = iolog.OwnerFile
		}
		l.Jobs[i].User = im.UserOf(l.Jobs[i].UID)
	}
}

// The bounds of one file: a log of a job has megabytes, a batch system's accounts of years have a few gigabytes.
const (
	mostBytes   = 64 << 30
	mostHoles   = 64 << 20
	longestRead = 15 * time.Minute
)

// open gives a file's content and its hash, and notes whose it is. A small file is read once, a large one twice: it is
// parsed as a stream and its hash must be known before. Reading ends with ctx.
func open(ctx context.Context, f found, note *iolog.Read) (content *io.SectionReader, sum [32]byte, closer func(),
	err error) {
	file, err := os.OpenFile(f.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, sum, nil, err
	}
	size, err := check(file, note)
	until := untilDone{file, ctx}
	content = io.NewSectionReader(until, 0, size)
	if err == nil && size <= slurp {
		defer file.Close()
		b, err := io.ReadAll(content)
		return io.NewSectionReader(untilDone{bytes.NewReader(b), ctx}, 0, int64(len(b))), sha256.Sum256(b), func() {},
			err
	}
	h := sha256.New()
	if err == nil {
		_, err = io.Copy(h, io.NewSectionReader(until, 0, size))
	}
	if err != nil {
		file.Close()
		return nil, sum, nil, err
	}
	return content, [32]byte(h.Sum(nil)), func() { file.Close() }, nil
}

// check refuses a file that cannot be a log by its kind, its size or its holes.
func check(file *os.File, note *iolog.Read) (size int64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return 0, err
	}
	note.UID = int64(st.Uid)
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return 0, errors.New("it is not a file of bytes any more")
	case st.Size > mostBytes:
		return 0, fmt.Errorf("it has %d bytes, a log at most %d", st.Size, int64(mostBytes))
	}
	var data, holes int64
	for data < st.Size && holes <= mostHoles {
		begins, err := unix.Seek(int(file.Fd()), data, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			begins = st.Size
		} else if err != nil {
			return st.Size, nil // a file system that knows no holes
		}
		holes += begins - data
		if data = begins; data < st.Size {
			if data, err = unix.Seek(int(file.Fd()), begins, unix.SEEK_HOLE); err != nil {
				return 0, err
			}
		}
	}
	if holes > mostHoles {
		return 0, fmt.Errorf("it has holes of %d bytes or more among its %d: it is not a log", holes, st.Size)
	}
	return st.Size, nil
}

// untilDone is a file that can be read as long as a context lasts.
type untilDone struct {
	io.ReaderAt
	ctx context.Context
}

func (u untilDone) ReadAt(p []byte, at int64) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.ReaderAt.ReadAt(p, at)
}
