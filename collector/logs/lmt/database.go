package lmt

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// maxTimes bounds the times of one database: a year of readings every five seconds.
const maxTimes = 6_400_000

// names are the tables that the data tables refer to.
type names struct {
	fileSystems map[int64]string
	servers     map[int64]int64 // object storage server to its file system
	osts, mdss  map[int64]Reading
	ops         map[int64]string
	times       map[int64]int64 // Unix seconds
}

// readDatabase gives the readings of an LMT database: storage targets, then metadata servers, each in the
// order in which they were recorded.
func readDatabase(in io.ReaderAt, size int64, o Options, give func(*Reading) error) error {
	db, err := openDatabase(in, size)
	if err != nil {
		return err
	}
	n := &names{fileSystems: map[int64]string{}, servers: map[int64]int64{}, osts: map[int64]Reading{},
		mdss: map[int64]Reading{},
		ops:  map[int64]string{}, times: map[int64]int64{}}
	if err := n.read(db, o); err != nil {
		return err
	}
	var bad collector.Faults
	if err := n.ostData(db, give, &bad); err != nil {
		return err
	}
	if _, ok := db.tables["MDS_OPS_DATA"]; ok {
		if err := n.mdsData(db, give, &bad); err != nil {
			return err
		}
	}
	return bad.All()
}

func (n *names) read(db *database, o Options) error {
	target := func(to map[int64]Reading, kind string, row []value, fileSystem int64) {
		r := Reading{Kind: kind, Host: topology.NodeID(text(row[2])), FileSystem: n.fileSystems[fileSystem]}
		r.setTarget(text(row[1]))
		to[integer(row[0])] = r
	}
	c := clock{zone: o.zone()}
	tables := []struct {
		name, columns string
		take          func(row []value) error
	}{{"FILESYSTEM_INFO", "FILESYSTEM_ID FILESYSTEM_NAME", func(row []value) error {
		n.fileSystems[integer(row[0])] = text(row[1])
		return nil
	}}, {"OSS_INFO", "OSS_ID FILESYSTEM_ID", func(row []value) error {
		n.servers[integer(row[0])] = integer(row[1])
		return nil
	}}, {"OST_INFO", "OST_ID OST_NAME HOSTNAME OSS_ID", func(row []value) error {
		target(n.osts, "ost", row, n.servers[integer(row[3])])
		return nil
	}}, {"TIMESTAMP_INFO", "TS_ID TIMESTAMP", func(row []value) error {
		t, err := c.read(text(row[1]))
		if err != nil {
			return fmt.Errorf("TIMESTAMP_INFO, TS_ID %d: %w", integer(row[0]), err)
		}
		if len(n.times) >= maxTimes {
			return fmt.Errorf("over %d times; give a part of the database", maxTimes)
		}
		n.times[integer(row[0])] = t.Unix()
		return nil
	}}, {"MDS_INFO", "MDS_ID MDS_NAME HOSTNAME FILESYSTEM_ID", func(row []value) error {
		target(n.mdss, "mdt", row, integer(row[3]))
		return nil
	}}, {"OPERATION_INFO", "OPERATION_ID OPERATION_NAME", func(row []value) error {
		n.ops[integer(row[0])] = text(row[1])
		return nil
	}}}
	if _, ok := db.tables["MDS_OPS_DATA"]; !ok { // a database need not have metadata servers
		tables = tables[:4]
	}
	for _, t := range tables {
		if err := db.each(t.name, strings.Fields(t.columns), t.take); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the reading of a data row; nil where its target or time is not in the database.
func (n *names) begin(of map[int64]Reading, table string, id, ts value, bad *collector.Faults) *Reading {
	r, ok := of[integer(id)]
	if !ok {
		bad.Add(fmt.Errorf("%s: a row of target %v, which has no name", table, id))
		return nil
	}
	at, ok := n.times[integer(ts)]
	if !ok {
		bad.Add(fmt.Errorf("%s: a row of TS_ID %v, which has no time", table, ts))
		return nil
	}
	r.Time = time.Unix(at, 0).UTC()
	return &r
}

func (n *names) ostData(db *database, give func(*Reading) error, bad *collector.Faults) error {
	columns := []string{"OST_ID", "TS_ID", "READ_BYTES", "WRITE_BYTES", "PCT_CPU", "KBYTES_FREE", "KBYTES_USED",
		"INODES_FREE", "INODES_USED"}
	return db.each("OST_DATA", columns, func(row []value) error {
		r := n.begin(n.osts, "OST_DATA", row[0], row[1], bad)
		if r == nil {
			return nil
		}
		r.CPUPercent = number(row[4])
		var errs [6]error
		r.ReadBytesTotal, errs[0] = count(row[2])
		r.WriteBytesTotal, errs[1] = count(row[3])
		r.KBytesFree, errs[2] = count(row[5])
		r.KBytesUsed, errs[3] = count(row[6])
		r.InodesFree, errs[4] = count(row[7])
		r.InodesUsed, errs[5] = count(row[8])
		if err := errors.Join(errs[:]...); err != nil {
			bad.Add(fmt.Errorf("OST_DATA: %s at %s: %w", r.Target, r.Time.Format(time.RFC3339), err))
		}
		return give(r)
	})
}

// mdsData gives one reading for all operations of a server at one time; their rows lie together.
func (n *names) mdsData(db *database, give func(*Reading) error, bad *collector.Faults) error {
	var now *Reading
	var server, at value
	err := db.each("MDS_OPS_DATA", []string{"MDS_ID", "TS_ID", "OPERATION_ID", "SAMPLES"}, func(row []value) error {
		if now == nil || row[0] != server || row[1] != at {
			if now != nil {
				if err := give(now); err != nil {
					return err
				}
			}
			server, at = row[0], row[1]
			if now = n.begin(n.mdss, "MDS_OPS_DATA", server, at, bad); now == nil {
				return nil
			}
			now.OpsTotal = map[string]uint64{}
		}
		samples, err := count(row[3])
		if op := n.ops[integer(row[2])]; err == nil && samples != nil && op != "" {
			now.OpsTotal[op] = *samples
		}
		return nil
	})
	if err == nil && now != nil {
		err = give(now)
	}
	return err
}

func integer(v value) int64 {
	n, _ := v.(int64)
	return n
}

func text(v value) string {
	s, _ := v.(string)
	return s
}

func number(v value) *float64 {
	switch x := v.(type) {
	case float64:
		if x >= 0 && x < math.MaxFloat64 {
			return &x
		}
	case int64:
		f := float64(x)
		return &f
	}
	return nil
}

// count reads a counter; NULL is not known.
func count(v value) (*uint64, error) {
	switch x := v.(type) {
	case nil:
		return nil, nil
	case int64:
		if x >= 0 {
			n := uint64(x)
			return &n, nil
		}
	case float64:
		if x >= 0 && x < 1<<63 {
			n := uint64(x)
			return &n, nil
		}
	}
	return nil, fmt.Errorf("%v is not a count", v)
}
