package p9

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Message types of 9P2000.L; a reply is its request plus one.
const (
	RLerror      = 7
	rError       = 107 // with Rlerror's body: nfs-ganesha's errors
	TStatfs      = 8
	TLopen       = 12
	TLcreate     = 14
	TSymlink     = 16
	TMknod       = 18
	TRename      = 20
	TReadlink    = 22
	TGetattr     = 24
	TSetattr     = 26
	TXattrwalk   = 30
	TXattrcreate = 32
	TReaddir     = 40
	TFsync       = 50
	TLock        = 52
	TGetlock     = 54
	TLink        = 70
	TMkdir       = 72
	TRenameat    = 74
	TUnlinkat    = 76
	TVersion     = 100
	TAuth        = 102
	TAttach      = 104
	TFlush       = 108
	TWalk        = 110
	TRead        = 116
	TWrite       = 118
	TClunk       = 120
	TRemove      = 122
)

// The sizes of messages, bytes, and other limits of the protocol.
const (
	version     = "9P2000.L"
	noTag       = 0xffff
	noFid       = 0xffffffff
	HeaderBytes = 7  // size[4] type[1] tag[2]
	countBytes  = 4  // before the data of a read or write
	IOHeader    = 24 // more than the header of any read, write or readdir message
	maxWalk     = 16 // names in one Twalk
)

// QID is a server's identity of a file: equal paths are the same file.
type QID struct {
	Type    uint8 // 0x80 directory, 0x02 symlink, 0 file
	Version uint32
	Path    uint64
}

// IsDir reports whether the file is a directory.
func (q QID) IsDir() bool { return q.Type&0x80 != 0 }

// Attr is what Tgetattr answers; times are seconds and nanoseconds since 1970.
type Attr struct {
	Valid               uint64
	QID                 QID
	Mode, UID, GID      uint32
	Nlink, Rdev         uint64
	Size                uint64
	BlockSize, Blocks   uint64
	AtimeSec, AtimeNsec uint64
	MtimeSec, MtimeNsec uint64
	CtimeSec, CtimeNsec uint64
}

// The bits of SetAttr.Valid.
const (
	SetMode     = 1 << 0
	SetUID      = 1 << 1
	SetGID      = 1 << 2
	SetSize     = 1 << 3
	SetAtime    = 1 << 4
	SetMtime    = 1 << 5
	SetAtimeVal = 1 << 7 // the time given, else the server's now
	SetMtimeVal = 1 << 8
)

// SetAttr changes the attributes whose bits are in Valid.
type SetAttr struct {
	Valid               uint32
	Mode, UID, GID      uint32
	Size                uint64
	AtimeSec, AtimeNsec uint64
	MtimeSec, MtimeNsec uint64
}

// Dirent is one directory entry. Offset continues a listing behind it.
type Dirent struct {
	QID    QID
	Offset uint64
	Type   uint8 // as in readdir(3)
	Name   string
}

// StatFS is what Tstatfs answers.
type StatFS struct {
	Type, BlockSize                 uint32
	Blocks, BlocksFree, BlocksAvail uint64
	Files, FilesFree, FSID          uint64
	NameLen                         uint32
}

// errShort says that a message ends before its fields do.
var errShort = errors.New("message is shorter than its fields")

// appendFields appends the fields of a message: numbers of 8 to 64 bits, texts, and a list of names.
func appendFields(b []byte, fields ...any) []byte {
	for _, f := range fields {
		switch v := f.(type) {
		case uint8:
			b = append(b, v)
		case uint16:
			b = binary.LittleEndian.AppendUint16(b, v)
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, v)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, v)
		case string:
			b = append(binary.LittleEndian.AppendUint16(b, uint16(len(v))), v...)
		case []string:
			b = binary.LittleEndian.AppendUint16(b, uint16(len(v)))
			for _, name := range v {
				b = append(binary.LittleEndian.AppendUint16(b, uint16(len(name))), name...)
			}
		default:
			panic(fmt.Sprintf("BUG: a 9P field of %T", f))
		}
	}
	return b
}

// newRequest makes a message of its fields; the header is filled in when it is sent.
func newRequest(fields ...any) []byte { return appendFields(make([]byte, HeaderBytes, 128), fields...) }

// Decoder takes the fields off the rest of a message's body; after the first one that is not there every value is zero
// and Err is set.
type Decoder struct {
	Rest []byte
	Err  error
}

// Take takes n bytes.
func (d *Decoder) Take(n int) []byte {
	if d.Err != nil || len(d.Rest) < n {
		d.Err = errShort
		return make([]byte, n)
	}
	out := d.Rest[:n]
	d.Rest = d.Rest[n:]
	return out
}

// U8, U16, U32 and U64 take numbers, Text a text behind its length.
func (d *Decoder) U8() uint8   { return d.Take(1)[0] }
func (d *Decoder) U16() uint16 { return binary.LittleEndian.Uint16(d.Take(2)) }
func (d *Decoder) U32() uint32 { return binary.LittleEndian.Uint32(d.Take(4)) }
func (d *Decoder) U64() uint64 { return binary.LittleEndian.Uint64(d.Take(8)) }
func (d *Decoder) Text() string {
	n := int(d.U16())
	if len(d.Rest) < n {
		d.Err = errShort
		return ""
	}
	return string(d.Take(n))
}
func (d *Decoder) qid() QID { return QID{d.U8(), d.U32(), d.U64()} }

func (d *Decoder) attr() Attr {
	a := Attr{Valid: d.U64(), QID: d.qid(), Mode: d.U32(), UID: d.U32(), GID: d.U32(), Nlink: d.U64(), Rdev: d.U64(),
		Size: d.U64(), BlockSize: d.U64(), Blocks: d.U64()}
	a.AtimeSec, a.AtimeNsec = d.U64(), d.U64()
	a.MtimeSec, a.MtimeNsec = d.U64(), d.U64()
	a.CtimeSec, a.CtimeNsec = d.U64(), d.U64()
	return a
}

func (d *Decoder) statfs() StatFS {
	return StatFS{Type: d.U32(), BlockSize: d.U32(), Blocks: d.U64(), BlocksFree: d.U64(), BlocksAvail: d.U64(),
		Files: d.U64(), FilesFree: d.U64(), FSID: d.U64(), NameLen: d.U32()}
}

// dirents decodes the data of an Rreaddir; a cut-off last entry is an error.
func dirents(b []byte) ([]Dirent, error) {
	d := Decoder{Rest: b}
	var out []Dirent
	for len(d.Rest) > 0 {
		e := Dirent{QID: d.qid(), Offset: d.U64(), Type: d.U8(), Name: d.Text()}
		if d.Err != nil {
			return nil, fmt.Errorf("directory entry %d of %d bytes: %w", len(out), len(b), d.Err)
		}
		out = append(out, e)
	}
	return out, nil
}
