package queue

import (
	"encoding/binary"
	"hash/maphash"
	"strings"

	"fairway/collector/p9"
	"fairway/remap/queue/aggregate"
)

// The flags of an open: how it may be used, those that make each write a thing of its own, and those that say when a
// write is answered, in which writes that go together must agree.
const (
	flagsAccess = 0o3
	flagsAlone  = 0o2000 | flagDirect // O_APPEND
	flagsSync   = 0o4010000           // O_SYNC, O_DSYNC
	writeOnly   = 0o1
	readWrite   = 0o2

	flagExclusive = 0o200
	flagTruncate  = 0o1000
	flagDirect    = 0o40000
	// flagsKnown are those of the protocol. A server that passed others on, such as O_PATH, would open what may not be
	// read; diod drops them.
	flagsKnown = 0o7777777
)

// maxFids is how many fids of a connection are known; the others' requests pass as they are.
const maxFids = 1 << 16

// fid is what is known of a client's handle.
type fid struct {
	aggregate.Target
	flags  uint32
	open   bool
	opened uint64 // when that was asked for, by the cache's clock
	lost   bool   // the way there is not known: its place is unknown
	link   bool   // it is a symbolic link: what is done through it may be done to another file
}

// inquiry is a request that was not answered yet.
type inquiry struct {
	kind  byte
	fid   uint32
	names int   // of a Twalk
	is    fid   // what the fid will be
	part  *part // what is gathered of it, or waits for what is; may be nil
	void  bool  // the handle was given up since: it is not what the answer says

	path    uint64 // of the file that it is about
	changes change
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

// request notes what a request is about to make of a handle, and returns the handle that it is about.
func (t *fids) request(frame []byte, s placeSeed, most uint32) *inquiry {
	a := &inquiry{kind: frame[4]}
	f := p9.Decoder{Rest: frame[p9.HeaderBytes:]}
	switch a.kind {
	case p9.TVersion:
		clear(t.known)
		return a
	case p9.TAuth:
		t.drop(f.U32())
		return a
	}
	a.fid = f.U32()
	switch was, found := t.known[a.fid]; a.kind {
	case p9.TAttach:
		f.U32()
		user, tree, number := f.Text(), f.Text(), f.U32()
		a.is.User = s.below(uint64(number), user)
		for name := range strings.SplitSeq(tree, "/") {
			if name != "" && name != "." {
				a.is.lost = a.is.lost || name == ".."
				a.is.Place = s.below(a.is.Place, name)
			}
		}
		t.drop(a.fid)
	case p9.TWalk:
		a.is = fid{Target: was.Target, lost: was.lost || !found, link: was.link}
		a.fid = f.U32()
		a.names = int(f.U16())
		for range a.names {
			name := f.Text()
			a.is.lost = a.is.lost || name == ".." || name == "." || strings.Contains(name, "/")
			a.is.Place = s.below(a.is.Place, name)
		}
		t.drop(a.fid)
	case p9.TXattrwalk:
		t.drop(f.U32())
	case p9.TXattrcreate:
		t.drop(a.fid) // what is written to it does not go into the file
	case p9.TLopen:
		a.is = was
		a.is.lost = was.lost || !found
		a.is.flags = f.U32()
	case p9.TLcreate:
		a.is = was
		a.is.lost = was.lost || !found
		a.is.Place = s.below(was.Place, f.Text())
		a.is.flags = f.U32()
	case p9.TSetattr:
		a.is.flags = f.U32() // what it sets
	case p9.TClunk, p9.TRemove:
		t.drop(a.fid)
	}
	a.is.lost = a.is.lost || f.Err != nil
	a.is.Most = int(most) - p9.IOHeader
	return a
}

// drop forgets a handle, and what those will say of it that have no answer yet.
func (t *fids) drop(fid uint32) {
	delete(t.known, fid)
	for _, a := range t.asked {
		a.void = a.void || a.fid == fid
	}
}

// qidBytes is how long a server's identity of a file is in a message, qidLink its first byte's bit of a symbolic link.
const (
	qidBytes = 13
	qidLink  = 0x02
)

// reply notes what has become of a handle.
func (t *fids) reply(a *inquiry, reply []byte) {
	if a.void || reply[4] != a.kind+1 || len(t.known) >= maxFids {
		return
	}
	f := p9.Decoder{Rest: reply[p9.HeaderBytes:]}
	switch a.kind {
	case p9.TWalk:
		n := int(f.U16())
		if n != a.names {
			return // it led nowhere and made no handle
		}
		if n > 0 {
			f.Take((n - 1) * qidBytes)
		}
		if n == 0 {
			t.known[a.fid] = a.is
			return
		}
	case p9.TAttach, p9.TLopen, p9.TLcreate:
	default:
		return
	}
	kind, _ := f.U8(), f.U32()
	a.is.Path, a.is.link = f.U64(), kind&qidLink != 0
	if a.kind == p9.TLopen || a.kind == p9.TLcreate {
		a.is.open, a.is.Flags = true, a.is.flags&flagsSync
	}
	if f.Err == nil {
		t.known[a.fid] = a.is
	}
}

// shares says that requests through a handle may go with those of others: it is a file whose place is known.
func (f *fid) shares() bool { return f.open && !f.lost && !f.link && f.flags&^flagsKnown == 0 }

// writes says that small writes through the handle may go together with those of others.
func (f *fid) writes() bool {
	access := f.flags & flagsAccess
	return f.shares() && f.flags&flagsAlone == 0 && (access == writeOnly || access == readWrite)
}

// reads says that reads through the handle may share an answer.
func (f *fid) reads() bool {
	access := f.flags & flagsAccess
	return f.shares() && f.flags&flagDirect == 0 && (access == 0 || access == readWrite)
}
