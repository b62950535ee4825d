package p9

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Message types of 9P2000.L; a reply is its request plus one.
const (
	rLerror     = 7
	rError      = 107 // with Rlerror's body: nfs-ganesha's errors
	tStatfs     = 8
	tLopen      = 12
	tLcreate    = 14
	tSymlink    = 16
	tMknod      = 18
	tRename     = 20
	tReadlink   = 22
	tGetattr    = 24
	tSetattr    = 26
	tReaddir    = 40
	tFsync      = 50
	tLink       = 70
	tMkdir      = 72
	tRenameat   = 74
	tUnlinkat   = 76
	tVersion    = 100
	tAttach     = 104
	tFlush      = 108
	tWalk       = 110
	tRead       = 116
	tWrite      = 118
	tClunk      = 120
	tRemove     = 122
	version     = "9P2000.L"
	noTag       = 0xffff
	noFid       = 0xffffffff
	headerBytes = 7  // size[4] type[1] tag[2]
	countBytes  = 4  // before the data of a read or write
	ioHeader    = 24 // more than the header of any read, write or readdir message
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
	SetCtime    = 1 << 6
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

// encoder appends fields; the first headerBytes are filled in when the message is sent.
type encoder struct{ b []byte }

func (e *encoder) u8(v uint8)   { e.b = append(e.b, v) }
func (e *encoder) u16(v uint16) { e.b = binary.LittleEndian.AppendUint16(e.b, v) }
func (e *encoder) u32(v uint32) { e.b = binary.LittleEndian.AppendUint32(e.b, v) }
func (e *encoder) u64(v uint64) { e.b = binary.LittleEndian.AppendUint64(e.b, v) }
func (e *encoder) str(s string) {
	e.u16(uint16(len(s)))
	e.b = append(e.b, s...)
}

// decoder takes fields off a message body; after the first short field every value is zero and err is set.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || len(d.b) < n {
		d.err = errShort
		return make([]byte, n)
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) u8() uint8   { return d.take(1)[0] }
func (d *decoder) u16() uint16 { return binary.LittleEndian.Uint16(d.take(2)) }
func (d *decoder) u32() uint32 { return binary.LittleEndian.Uint32(d.take(4)) }
func (d *decoder) u64() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }
func (d *decoder) str() string {
	n := int(d.u16())
	if len(d.b) < n {
		d.err = errShort
		return ""
	}
	return string(d.take(n))
}
func (d *decoder) qid() QID { return QID{d.u8(), d.u32(), d.u64()} }

func (d *decoder) attr() Attr {
	a := Attr{Valid: d.u64(), QID: d.qid(), Mode: d.u32(), UID: d.u32(), GID: d.u32(), Nlink: d.u64(), Rdev: d.u64(),
		Size: d.u64(), BlockSize: d.u64(), Blocks: d.u64()}
	a.AtimeSec, a.AtimeNsec = d.u64(), d.u64()
	a.MtimeSec, a.MtimeNsec = d.u64(), d.u64()
	a.CtimeSec, a.CtimeNsec = d.u64(), d.u64()
	return a
}

func (d *decoder) statfs() StatFS {
	return StatFS{Type: d.u32(), BlockSize: d.u32(), Blocks: d.u64(), BlocksFree: d.u64(), BlocksAvail: d.u64(),
		Files: d.u64(), FilesFree: d.u64(), FSID: d.u64(), NameLen: d.u32()}
}

// dirents decodes the data of an Rreaddir; a cut-off last entry is an error.
func dirents(b []byte) ([]Dirent, error) {
	d := decoder{b: b}
	var out []Dirent
	for len(d.b) > 0 {
		e := Dirent{QID: d.qid(), Offset: d.u64(), Type: d.u8(), Name: d.str()}
		if d.err != nil {
			return nil, fmt.Errorf("directory entry %d of %d bytes: %w", len(out), len(b), d.err)
		}
		out = append(out, e)
	}
	return out, nil
}
