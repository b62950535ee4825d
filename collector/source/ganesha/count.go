package ganesha

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"fairway/collector"
)

// The objects of ganesha on the bus.
const (
	exportObject = "ExportMgr"
	clientObject = "ClientMgr"
)

// Bounds on what is asked for in a second: a call takes ganesha about 0.1 ms.
const (
	maxExports = 64
	maxClients = 1024
)

// totals are the rates of one second.
type totals struct {
	nine struct { // over 9P
		ops, wire [2]collector.Total // reads and what is sent, writes and what is received
		meta      collector.Total
	}
	nfs struct {
		ops, bytes, nanos [2]collector.Total
		meta, metaNanos   collector.Total
	}
	errors collector.Total
}

// export is an export and the protocols that it was used with.
type export struct {
	id    uint16
	nine  bool
	minor []string // the NFS versions, as ganesha's calls name them: NFSv3, NFSv40
}

func (e *export) name() string { return strconv.Itoa(int(e.id)) }

// askExports lists the exports. That nothing offers the call is collector.ErrNoData.
func askExports(ctx context.Context, b bus) ([]export, error) {
	c := call{object: exportObject, method: "exportmgr.ShowExports"}
	r := b.Ask(ctx, []call{c})[0]
	if errors.Is(r.err, errUnknown) {
		return nil, fmt.Errorf("%w: %s: %w", collector.ErrNoData, &c, r.err)
	}
	rows, err := rowsOf(&c, &r, 1)
	if err != nil {
		return nil, err
	}
	if len(rows) > maxExports {
		return nil, fmt.Errorf("%s: %d exports, at most %d are read", &c, len(rows), maxExports)
	}
	var out []export
	for _, row := range rows {
		used, ok := protocols(row)
		id, isID := at[uint16](row, 0)
		if !ok || !isID {
			return nil, fmt.Errorf("%s: an export is not as expected: %.100v", &c, row)
		}
		e := export{id: id, nine: used["9P"]}
		for _, v := range []string{"NFSv3", "NFSv40", "NFSv41", "NFSv42"} {
			if used[v] {
				e.minor = append(e.minor, v)
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// protocolsInOrder are those of a row that has a word of yes or no for each instead of their names: 2.4 to 3.
var protocolsInOrder = [...]string{"NFSv3", "MNT", "NLMv4", "RQUOTA", "NFSv40", "NFSv41", "NFSv42", "9P"}

// protocols reads which protocols an export or client was used with: a list of pairs somewhere in its row, behind which
// releases put more and more, or, up to release 3, the words alone.
func protocols(row []any) (map[string]bool, bool) {
	used, words := map[string]bool{}, 0
	for i := range row {
		if on, isWord := at[bool](row, i); isWord && words < len(protocolsInOrder) {
			used[protocolsInOrder[words]] = on
			words++
		}
		if pairs, isList := at[[]any](row, i); isList && readPairs(pairs, used) {
			return used, true
		}
	}
	return used, words == len(protocolsInOrder)
}

// readPairs reads a list of names, each with yes or no; ok is false for any other list, and for an empty one.
func readPairs(pairs []any, used map[string]bool) (ok bool) {
	for _, p := range pairs {
		pair, isPair := p.([]any)
		name, isName := at[string](pair, 0)
		on, isOn := at[bool](pair, 1)
		if !isPair || !isName || !isOn {
			return false
		}
		used[name] = on
	}
	return len(pairs) > 0
}

// metadata are the 9P requests that count as metadata operations; those of the protocol itself (version, attach,
// clunk, flush) count as none.
var metadata = []string{"STATFS", "LOPEN", "LCREATE", "SYMLINK", "MKNOD", "RENAME", "READLINK", "GETATTR", "SETATTR",
	"XATTRWALK", "XATTRCREATE", "READDIR", "FSYNC", "LOCK", "GETLOCK", "LINK", "MKDIR", "RENAMEAT", "UNLINKAT", "WALK",
	"REMOVE"}

// metadataV4 are the NFSv4 operations that count as metadata operations; the others belong to every request.
var metadataV4 = map[string]bool{"ACCESS": true, "COMMIT": true, "CREATE": true, "GETATTR": true, "LINK": true,
	"LOCK": true, "LOCKT": true, "LOCKU": true, "LOOKUP": true, "LOOKUPP": true, "NVERIFY": true, "OPEN": true,
	"OPEN_DOWNGRADE": true, "READDIR": true, "READLINK": true, "REMOVE": true, "RENAME": true, "SETATTR": true,
	"VERIFY": true}

// asked is one call and what its answer is for.
type asked struct {
	call
	take func(t *totals, r *reply) error
	lost func(t *totals) error // takes that this release has no such call; nil: nothing of the kind has happened
}

// errNotCounted is the error of what a server does not count, or not within bounds: the rest is known.
var errNotCounted = errors.New("not counted")

// count asks for all counters, in two rounds: the second is of the clients that the first has shown. Without some of
// them no total is known.
func (s *Source) count(ctx context.Context, b bus, exports []export) (*totals, error) {
	t := &totals{}
	var list []asked
	v4, nine := false, false
	for i := range exports {
		e := &exports[i]
		if e.nine {
			nine = true
			list = append(list, s.ask9P(e, "READ", &t.nine.ops[0]), s.ask9P(e, "WRITE", &t.nine.ops[1]))
			for _, op := range metadata {
				list = append(list, s.ask9P(e, op, &t.nine.meta))
			}
		}
		for _, v := range e.minor {
			v4 = v4 || v != "NFSv3"
			list = append(list, s.askIO(e, v))
		}
	}
	if v4 {
		list = append(list, s.askV4())
	}
	var clients []string
	if nine {
		c := call{object: clientObject, method: "clientmgr.ShowClients"}
		list = append(list, asked{call: c, take: func(_ *totals, r *reply) (err error) {
			clients, err = clientsOf(&c, r)
			return err
		}})
	}
	bad := run(ctx, b, t, list)
	list = list[:0]
	for _, addr := range clients {
		list = append(list, s.askWire(addr))
	}
	bad = append(bad, run(ctx, b, t, list)...)
	for _, err := range bad {
		if !errors.Is(err, errNotCounted) {
			t = &totals{}
		}
	}
	return t, errors.Join(bad...)
}

// run asks and takes the answers. What a server does not count stays absent.
func run(ctx context.Context, b bus, t *totals, list []asked) (errs []error) {
	calls := make([]call, len(list))
	for i := range list {
		calls[i] = list[i].call
	}
	failed := 0
	for i, r := range b.Ask(ctx, calls) {
		var err error
		switch {
		case errors.Is(r.err, errUnknown) && list[i].lost != nil:
			err = list[i].lost(t)
		case errors.Is(r.err, errUnknown):
		case r.err != nil:
			err = fmt.Errorf("%s: %w", &list[i].call, r.err)
		default:
			err = list[i].take(t, &r)
		}
		const enough = 4 // they are all alike
		switch {
		case err == nil:
		case !errors.Is(err, errNotCounted):
			errs = append(errs, err)
			failed++
		case len(errs) < enough:
			errs = append(errs, err)
		}
		if failed == enough || ctx.Err() != nil {
			break
		}
	}
	return errs
}

// ask9P asks for an export's requests of one kind.
func (s *Source) ask9P(e *export, op string, to *collector.Total) asked {
	c := call{exportObject, "exportstats.Get9pOpStats", []any{e.id, "_9P_T" + op}}
	return asked{call: c, take: func(_ *totals, r *reply) error {
		row, ok, err := figures(&c, r, 3, 1)
		if ok {
			s.rates.AddTo(to, key{"9P export " + e.name(), op}, row[0])
		}
		return err
	}}
}

// askIO asks for an export's reads and writes over one version of NFS: bytes requested and transferred, operations,
// errors, nanoseconds, and a wait that is always 0.
func (s *Source) askIO(e *export, version string) asked {
	c := call{exportObject, "exportstats.Get" + version + "IO", []any{e.id}}
	// Releases up to 3 count version 4.2 and have no call for it.
	lost := func(t *totals) error {
		for i := range t.nfs.ops {
			for _, part := range []*collector.Total{&t.nfs.ops[i], &t.nfs.bytes[i], &t.nfs.nanos[i]} {
				part.Lose()
			}
		}
		return fmt.Errorf("%s: reads and writes are %w: clients use %s and this release has no call for them", &c,
			errNotCounted, version)
	}
	return asked{call: c, lost: lost, take: func(t *totals, r *reply) error {
		for i, what := range [...]string{" read", " write"} {
			row, ok, err := figures(&c, r, 3+i, 5)
			if !ok {
				return err
			}
			of := version + " export " + e.name() + what
			s.rates.AddTo(&t.nfs.bytes[i], key{of, "bytes"}, row[1])
			s.rates.AddTo(&t.nfs.ops[i], key{of, "ops"}, row[2])
			s.rates.AddTo(&t.errors, key{of, "errors"}, row[3])
			s.rates.AddTo(&t.nfs.nanos[i], key{of, "nanos"}, row[4])
		}
		return nil
	}}
}

// askV4 asks for every operation of NFSv4: its name, count, errors, and the mean, least and greatest milliseconds
// since the start.
func (s *Source) askV4() asked {
	c := call{object: exportObject, method: "exportstats.GetFULLV4Stats"}
	return asked{call: c, take: func(t *totals, r *reply) error {
		if on, ok := at[bool](r.body, 0); ok && !on {
			return fmt.Errorf("%s: NFSv4's metadata operations are %w: %.100v; set Enable_FULLV4_Stats in "+
				"NFS_CORE_PARAM", &c, errNotCounted, r.body[1:])
		}
		for i := range r.body {
			rows, ok := r.body[i].([][]any)
			if !ok {
				continue
			}
			for _, row := range rows {
				name, isName := at[string](row, 0)
				n, isCount := at[uint64](row, 1)
				ms, isMean := at[float64](row, 3)
				if !isName || !isCount || !isMean {
					return fmt.Errorf("%s: an operation is not as expected: %.100v", &c, row)
				}
				nanos := ms * 1e6 * float64(n)
				if !metadataV4[name] || !(nanos >= 0 && nanos < math.MaxInt64) {
					continue
				}
				s.rates.AddTo(&t.nfs.meta, key{"NFSv4", name}, n)
				s.rates.AddTo(&t.nfs.metaNanos, key{"NFSv4 nanos", name}, uint64(nanos))
			}
			return nil
		}
		return fmt.Errorf("%s: no list of operations in the answer: %.100v", &c, r.body)
	}}
}

// askWire asks for a 9P client's bytes, messages and errors, received and sent.
func (s *Source) askWire(addr string) asked {
	c := call{clientObject, "clientstats.Get9pTrans", []any{addr}}
	return asked{call: c, take: func(t *totals, r *reply) error {
		row, ok, err := figures(&c, r, 3, 6)
		if !ok {
			return err
		}
		of := "9P client " + addr
		s.rates.AddTo(&t.nine.wire[1], key{of, "received"}, row[0])
		s.rates.AddTo(&t.nine.wire[0], key{of, "sent"}, row[3])
		s.rates.AddTo(&t.errors, key{of, "receive errors"}, row[2])
		s.rates.AddTo(&t.errors, key{of, "send errors"}, row[5])
		return nil
	}}
}

// clientsOf lists the addresses of the clients that have spoken 9P.
func clientsOf(c *call, r *reply) ([]string, error) {
	rows, err := rowsOf(c, r, 1)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, row := range rows {
		addr, isAddr := at[string](row, 0)
		used, ok := protocols(row)
		if !isAddr || !ok {
			return nil, fmt.Errorf("%s: a client is not as expected: %.100v", c, row)
		}
		if used["9P"] {
			out = append(out, addr)
		}
	}
	if len(out) > maxClients {
		return nil, fmt.Errorf("%s: bytes over 9P are %w: %d clients have used it, at most %d are asked for", c,
			errNotCounted, len(out), maxClients)
	}
	return out, nil
}

// at is element i of a row; ok is false where it is missing or of another type.
func at[T any](row []any, i int) (v T, ok bool) {
	if i < 0 || i >= len(row) {
		return v, false
	}
	v, ok = row[i].(T)
	return v, ok
}

// rowsOf is element i of an answer, a list of structures.
func rowsOf(c *call, r *reply, i int) ([][]any, error) {
	if r.err != nil {
		return nil, fmt.Errorf("%s: %w", c, r.err)
	}
	rows, ok := at[[][]any](r.body, i)
	if !ok {
		return nil, fmt.Errorf("%s: the answer is not as expected: %.100v", c, r.body)
	}
	return rows, nil
}

// figures is element i of an answer with a status before it, a structure of at least n counters. ok is false where
// ganesha says that it has none: nothing of the kind has happened, or is counted.
func figures(c *call, r *reply, i, n int) (row []uint64, ok bool, err error) {
	well, isStatus := at[bool](r.body, 0)
	if isStatus && !well {
		if why, _ := at[string](r.body, 1); strings.Contains(strings.ToLower(why), "disabled") {
			return nil, false, fmt.Errorf("%s: %w: %.100s; set Enable_NFS_Stats in NFS_CORE_PARAM", c, errNotCounted,
				why)
		}
		return nil, false, nil
	}
	raw, isRow := at[[]any](r.body, i)
	if isStatus && isRow && len(raw) >= n {
		for k := range n {
			v, isCounter := at[uint64](raw, k)
			if !isCounter {
				break
			}
			row = append(row, v)
		}
	}
	if len(row) < n {
		return nil, false, fmt.Errorf("%s: the answer is not as expected: %.100v", c, r.body)
	}
	return row, true, nil
}
