// Package journal is the record of everything that the desk decides and does: an append-only file of JSON lines
// with a CRC and a hash chain, its history, and the timeline of what it says of every instant.
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Journal is an append-only file of records, one JSON object a line:
//
//	{"crc":"<CRC-32C of record, 8 hex digits>","hash":"<SHA-256 of previous hash and record>","record":{...}}
//
// The CRC tells a damaged record from a good one, the chain of hashes shows an edited, removed or
// inserted one (a cut-off end only to whoever kept the last hash). The records of one Append are a
// batch: after a crash there are all of them or none. The file is locked while open.
// A Journal is used by one goroutine.
type Journal struct {
	file    File
	seq     uint64
	prev    [sha256.Size]byte
	size    int64
	catalog *catalog // nil: records cannot be read back
	broken  error    // after a failed write nothing more is taken: what is on disk is not known
}

// File is what a journal needs of an *os.File; tests put a failing one in its place.
type File interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Summary is what reading a whole journal found.
type Summary struct {
	Records   uint64    `json:"records"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	LastHash  string    `json:"last_hash"`
	TornBytes int64     `json:"torn_bytes"` // of an unfinished last batch, never answered
	// Torn says what is wrong with those bytes, Kept is the file that Open moved them to.
	Torn string `json:"torn,omitempty"`
	Kept string `json:"kept,omitempty"`
}

// ErrDamaged is wrapped by every error that names a bad record.
var ErrDamaged = errors.New("journal is damaged")

// ErrLocked says that another process has the journal open.
var ErrLocked = errors.New("journal is in use by another process")

// maxRecordBytes bounds one line: a plan over 40,960 nodes needs about 4 MB.
const maxRecordBytes = 64 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type journalLine struct {
	CRC    string          `json:"crc"`
	Hash   string          `json:"hash"`
	Record json.RawMessage `json:"record"`
}

// Open opens or makes the journal at path, locks it, hands every record in order to replay
// and moves an unfinished last batch to a file beside it, which Summary reports. It fails with
// ErrLocked, or with ErrDamaged naming the record; then nothing was changed.
func Open(path string, replay func(*Record) error) (*Journal, Summary, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, Summary{}, fmt.Errorf("open journal: %w", err)
	}
	j, sum, err := startJournal(f, path, replay)
	if err != nil {
		f.Close()
		return nil, sum, err
	}
	return j, sum, nil
}

// OnFile continues the journal whose content is src on file, which the caller has locked. It returns the bytes
// of whole batches, behind which file goes on. The records cannot be read back.
func OnFile(file File, src io.Reader, replay func(*Record) error) (*Journal, int64, error) {
	c := chain{name: "journal"}
	err := c.read(src, replay)
	return &Journal{file: file, seq: c.seq, prev: c.prev, size: c.size}, c.size, err
}

func startJournal(f *os.File, path string, replay func(*Record) error) (*Journal, Summary, error) {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, Summary{}, fmt.Errorf("%s: %w", path, ErrLocked)
	}
	c := chain{name: path}
	x := newCatalog(f)
	if err := c.read(f, func(r *Record) error {
		x.add(r, r.end)
		return replay(r)
	}); err != nil {
		return nil, c.summary(), err
	}
	sum := c.summary()
	if c.torn > 0 {
		var err error
		if sum.Kept, err = c.keep(f); err != nil {
			return nil, sum, fmt.Errorf("%s: keep the unfinished record %d in a file beside it: %w", path, c.seq+1, err)
		}
		if err := f.Truncate(c.size); err != nil {
			return nil, sum, fmt.Errorf("%s: cut off the unfinished record %d: %w", path, c.seq+1, err)
		}
	}
	if err := errors.Join(f.Sync(), SyncDir(filepath.Dir(path))); err != nil {
		return nil, sum, fmt.Errorf("open journal %s: %w", path, err)
	}
	return &Journal{file: f, seq: c.seq, prev: c.prev, size: c.size, catalog: x}, sum, nil
}

// keep copies what is to be cut off to a file and returns its path. The name follows from the content:
// a start that was cut off itself makes the same file again.
func (c *chain) keep(f *os.File) (string, error) {
	b := make([]byte, c.torn)
	if _, err := f.ReadAt(b, c.size); err != nil {
		return "", err
	}
	path := fmt.Sprintf("%s.cut-%d-%s", c.name, c.seq+1, crcOf(b))
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	_, err = to.Write(b)
	return path, errors.Join(err, to.Sync(), to.Close(), SyncDir(filepath.Dir(path)))
}

// SyncDir forces the entries of a directory to disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Append numbers the records, writes them and returns when they are on disk. On an error none of
// them counts: they are cut off again, and where that fails too the journal takes nothing more.
func (j *Journal) Append(recs ...*Record) error {
	if j.broken != nil {
		return j.broken
	}
	var buf bytes.Buffer
	seq, prev := j.seq, j.prev
	for i, r := range recs {
		seq++
		r.Seq, r.Batch, r.More = seq, 0, uint64(len(recs)-i-1)
		if i > 0 {
			r.Batch = recs[0].Seq
		}
		line, hash, err := encodeRecord(r, prev)
		if err != nil {
			return err
		}
		prev = hash
		buf.Write(line)
		r.end = j.size + int64(buf.Len())
	}
	if _, err := j.file.Write(buf.Bytes()); err != nil {
		return j.fail("write", err, j.file.Truncate(j.size))
	}
	if err := j.file.Sync(); err != nil {
		// After a failed fsync the kernel may have dropped the pages: believe nothing.
		return j.fail("fsync", err, errors.New("unknown content"))
	}
	j.seq, j.prev, j.size = seq, prev, j.size+int64(buf.Len())
	if j.catalog != nil {
		for _, r := range recs {
			j.catalog.add(r, r.end)
		}
	}
	return nil
}

func (j *Journal) fail(op string, err, undo error) error {
	if undo == nil {
		return fmt.Errorf("journal: %s: %w (nothing was done; free the disk)", op, err)
	}
	j.broken = fmt.Errorf("journal: %s: %w (nothing more is taken; look at the disk, then restart fairwayd)", op, err)
	return j.broken
}

// Records returns the number of records.
func (j *Journal) Records() uint64 { return j.seq }

// Broken returns why the journal takes no more records until it is opened again; nil while it does.
func (j *Journal) Broken() error { return j.broken }

// Close releases the file and its lock.
func (j *Journal) Close() error { return j.file.Close() }

func encodeRecord(r *Record, prev [sha256.Size]byte) ([]byte, [sha256.Size]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, prev, fmt.Errorf("journal: encode record %d: %w", r.Seq, err)
	}
	if len(body) > maxRecordBytes {
		return nil, prev, fmt.Errorf("journal: record of %d bytes is larger than %d", len(body), maxRecordBytes)
	}
	hash := chainHash(prev, body)
	line := fmt.Appendf(nil, lineStart+`%s","hash":"%x","record":%s}`+"\n", crcOf(body), hash, body)
	return line, hash, nil
}

func chainHash(prev [sha256.Size]byte, body []byte) [sha256.Size]byte {
	return sha256.Sum256(append(prev[:], body...))
}
