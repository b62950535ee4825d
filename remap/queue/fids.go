package queue

import (
	"encoding/binary"
	"hash/maphash"
	"strings"

	"fairway/remap/queue/aggregate"
)

// More of 9P2000.L: what says which file a fid is, and what meets a file's data.
const (
	tLopen       = 12
	tLcreate     = 14
	tRename      = 20
	tGetattr     = 24
	tSetattr     = 26
	tXattrwalk   = 30
	tXattrcreate = 32
	tFsync       = 50
	tLock        = 52
	tGetlock     = 54
	tRenameat    = 74
	tUnlinkat    = 76
	tVersion     = 100
	tAuth        = 102
	tAttach      = 104
	tWalk        = 110
	tClunk       = 120
	tRemove      = 122
	qidBytes     = 13
)

// The flags of an open: how it may be used, those that make each write a thing of its own, and those that say when a
// write is answered, in which writes that go together must agree.
const (
	flagsAccess = 0o3
	flagsAlone  = 0o2000 | 0o40000 // O_APPEND, O_DIRECT
	flagsSync   = 0o4010000        // O_SYNC, O_DSYNC
	writeOnly   = 0o1
	readWrite   = 0o2
)

// maxFids is how many fids of a connection are known; the others' requests pass as they are.
const maxFids = 1 << 16

// fid is what is known of a client's handle.
type fid struct {
	aggregate.Target
	flags uint32
	open  bool
	lost  bool // the way there is not known: its place is unknown
}

// inquiry is a request that was not answered yet.
type inquiry struct {
	kind  byte
	fid   uint32
	names int   // of a Twalk
	is    fid   // what the fid will be
	part  *part // what is gathered of it, or waits for what is; may be nil
}

// fids knows the files behind the handles of a connection by the messages that pass. It takes a file for known only
// when the forwarder has opened it.
type fids struct {
	known map[uint32]fid
	asked map[uint16]*inquiry // by tag
}

// placeSeed makes places that nobody outside can make alike.
type placeSeed struct{ seed maphash.Seed }

// below is the place of a name in a place.
func (s placeSeed) below(place uint64, name string) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], place)
	h.Write(b[:])
	h.WriteString(name)
	return h.Sum64()
}

// fields takes the fields off a message's body; after one that is not there all are zero and short is set.
type fields struct {
	b     []byte
	short bool
}

func (f *fields) take(n int) []byte {
	if f.short || len(f.b) < n {
		f.short = true
		return make([]byte, n)
	}
	out := f.b[:n]
	f.b = f.b[n:]
	return out
}

func (f *fields) u16() uint16  { return binary.LittleEndian.Uint16(f.take(2)) }
func (f *fields) u32() uint32  { return binary.LittleEndian.Uint32(f.take(4)) }
func (f *fields) u64() uint64  { return binary.LittleEndian.Uint64(f.take(8)) }
func (f *fields) text() string { return string(f.take(int(f.u16()))) }

// request notes what a request is about to make of a handle, and returns the handle that it is about.
func (t *fids) request(frame []byte, s placeSeed, most uint32) *inquiry {
	a := &inquiry{kind: frame[4]}
	f := fields{b: frame[headerBytes:]}
	switch a.kind {
	case tVersion:
		clear(t.known)
		return a
	case tAuth:
		delete(t.known, f.u32())
		return a
	}
	a.fid = f.u32()
	switch was := t.known[a.fid]; a.kind {
	case tAttach:
		f.u32()
		user, tree, number := f.text(), f.text(), f.u32()
		a.is.User = s.below(uint64(number), user)
		for name := range strings.SplitSeq(tree, "/") {
			if name != "" && name != "." {
				a.is.lost = a.is.lost || name == ".."
				a.is.Place = s.below(a.is.Place, name)
			}
		}
		delete(t.known, a.fid)
	case tWalk:
		_, found := t.known[a.fid]
		a.is = fid{Target: was.Target, lost: was.lost || !found}
		a.fid = f.u32()
		a.names = int(f.u16())
		for range a.names {
			name := f.text()
			a.is.lost = a.is.lost || name == ".." || name == "." || strings.Contains(name, "/")
			a.is.Place = s.below(a.is.Place, name)
		}
		delete(t.known, a.fid)
	case tXattrwalk:
		delete(t.known, f.u32())
	case tXattrcreate:
		delete(t.known, a.fid) // what is written to it does not go into the file
	case tLopen:
		a.is = was
		a.is.flags = f.u32()
	case tLcreate:
		a.is = was
		a.is.Place = s.below(was.Place, f.text())
		a.is.flags = f.u32()
	case tClunk, tRemove:
		delete(t.known, a.fid)
	}
	a.is.lost = a.is.lost || f.short
	a.is.Most = int(most) - ioHeader
	return a
}

// ioHeader is what servers leave of a message for the header of a read or a write.
const ioHeader = 24

// reply notes what has become of a handle.
func (t *fids) reply(a *inquiry, reply []byte) {
	if reply[4] != a.kind+1 || len(t.known) >= maxFids {
		return
	}
	f := fields{b: reply[headerBytes:]}
	switch a.kind {
	case tWalk:
		n := int(f.u16())
		if n != a.names {
			return // it led nowhere and made no handle
		}
		if n > 0 {
			f.take((n - 1) * qidBytes)
		}
		if n == 0 {
			t.known[a.fid] = a.is
			return
		}
	case tAttach, tLopen, tLcreate:
	default:
		return
	}
	f.take(5)
	a.is.Path = f.u64()
	if a.kind == tLopen || a.kind == tLcreate {
		a.is.open, a.is.Flags = true, a.is.flags&flagsSync
	}
	if !f.short {
		t.known[a.fid] = a.is
	}
}

// writes says that small writes through the handle may go together with those of others.
func (f *fid) writes() bool {
	access := f.flags & flagsAccess
	return f.open && !f.lost && f.flags&flagsAlone == 0 && (access == writeOnly || access == readWrite)
}

// reads says that reads through the handle may share an answer.
func (f *fid) reads() bool { return f.open && !f.lost && f.flags&flagsAccess != writeOnly }
