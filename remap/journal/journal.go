// Package journal is the record of everything that the desk decides and does: an append-only file of JSON lines with
// a CRC and a hash chain, its history, and the timeline: findings, exclusions and plans as they were at any instant.
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"fairway/collector/appendlog"
)

// Journal is an append-only file of records, one JSON object a line:
//
//	{"crc":"<CRC-32C of record, 8 hex digits>","hash":"<SHA-256 of previous hash and record>","record":{...}}
//
// The CRC shows a damaged record, the chain of hashes shows an edited, removed or
// inserted one (a cut-off end only to whoever kept the last hash). The records of one Append are a
// batch: after a crash there are all of them or none. The file is locked while open.
// A Journal is used by one goroutine.
type Journal struct {
	*catalog
	path string
	file *appendlog.File
	seq  uint64
	prev [sha256.Size]byte
}

// Summary is what reading a whole journal found.
type Summary struct {
	Records   uint64    `json:"records"`            // with those of segments
	Archived  uint64    `json:"archived,omitempty"` // of them, in Segment and those before it
	Segment   string    `json:"segment,omitempty"`
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

// maxRecordBytes bounds one line: a plan over 40,960 nodes needs about 4 MB.
const maxRecordBytes = 64 << 20

type journalLine struct {
	CRC    string          `json:"crc"`
	Hash   string          `json:"hash"`
	Record json.RawMessage `json:"record"`
}

// Open opens or makes the journal at path, locks it, hands every record in order to replay
// and moves an unfinished last batch to a file beside it, which Summary reports. It fails with
// appendlog.ErrLocked, or with ErrDamaged naming the record; then nothing was changed.
func Open(path string, replay func(*Record) error) (*Journal, Summary, error) {
	file, f, err := appendlog.OpenFile(path)
	if err != nil {
		return nil, Summary{}, fmt.Errorf("open journal: %w", err)
	}
	c := chain{name: path}
	x, err := c.load(f, replay)
	sum := c.summary()
	if err == nil && c.torn > 0 {
		if sum.Kept, err = c.keep(f); err != nil {
			err = fmt.Errorf("%s: keep the unfinished record %d in a file beside it: %w", path, c.seq+1, err)
		}
	}
	if err == nil {
		if err = file.Settle(path, c.size, c.torn > 0); err != nil {
			err = fmt.Errorf("open journal %s: %w", path, err)
		}
	}
	if err != nil {
		file.Close()
		return nil, sum, err
	}
	return &Journal{path: path, file: file, seq: c.seq, prev: c.prev, catalog: x}, sum, nil
}

// OnFile continues the journal whose content is src on file, which the caller has locked. It returns the bytes
// of whole batches, behind which file goes on. Records that come later cannot be read back.
func OnFile(file appendlog.Handle, src source, replay func(*Record) error) (*Journal, int64, error) {
	c := chain{name: "journal"}
	x, err := c.load(src, replay)
	return &Journal{file: appendlog.On(file, c.size), seq: c.seq, prev: c.prev, catalog: x}, c.size, err
}

// source is the content of a journal.
type source interface {
	io.Reader
	io.ReaderAt
}

// load reads a whole journal and notes where its records are.
func (c *chain) load(src source, replay func(*Record) error) (*catalog, error) {
	x := newCatalog(src)
	err := c.read(src, func(r *Record) error {
		if x.records() == 0 {
			x.begin(c.head)
		}
		x.add(r)
		return replay(r)
	})
	if x.records() == 0 {
		x.begin(c.head)
	}
	return x, err
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
	return path, errors.Join(err, to.Sync(), to.Close(), appendlog.SyncDir(filepath.Dir(path)))
}

// Append numbers the records, writes them and returns when they are on disk. On an error none of
// them counts: they are cut off again, and where that fails too the journal takes nothing more.
func (j *Journal) Append(recs ...*Record) error {
	lines, err := j.Encode(recs...)
	if err != nil {
		return err
	}
	return j.AppendLines(recs, lines)
}

// Encode numbers the records as the next batch and returns its lines, which AppendLines takes. Nothing is written.
func (j *Journal) Encode(recs ...*Record) ([]byte, error) {
	if err := j.Broken(); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	prev := j.prev
	for i, r := range recs {
		r.Seq, r.Batch, r.More = j.seq+uint64(i)+1, 0, uint64(len(recs)-i-1)
		if i > 0 {
			r.Batch = recs[0].Seq
		}
		line, hash, err := encodeRecord(r, prev)
		if err != nil {
			return nil, err
		}
		prev = hash
		buf.Write(line)
		r.Hash, r.end = hex.EncodeToString(hash[:]), j.file.Size()+int64(buf.Len())
	}
	return buf.Bytes(), nil
}

// Records returns the number of records.
func (j *Journal) Records() uint64 { return j.seq }

// Broken returns why the journal takes no more records until it is opened again; nil while it does.
func (j *Journal) Broken() error {
	if err := j.file.Broken(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

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
