// Package engine is the embedded store: a write-ahead log, blocks of two minutes, and down-sampled tiers of them, in
// one directory.
//
// This package takes rows in, answers queries and has the store's parts work together: rows has what is not sealed yet,
// log the log, block the files of sealed blocks, tier the tiers; column codes a column, and disk is what is below.
//
// # Files
//
// Numbers are little-endian unless they are uvarint (LEB128) or varint (the same, zigzag). CRC is CRC-32C
// (Castagnoli). Every file and block begins with a magic word and a version; a reader refuses another version and
// names the file and both versions. Times are Unix seconds UTC. Metric numbers are those of collector/metric.go and
// never change meaning. A node's number is its place in the dictionary. In the layouts below each line is a length in
// bytes and what lies there.
//
//	DIR/LOCK                            flock of the process that has the store open
//	DIR/nodes                           dictionary of node names
//	DIR/wal/NNNNNNNNNN.log              write-ahead log, segments in order
//	DIR/blocks/SSSSSSSSSSS.blk          sealed blocks of the hour that begins at SSSSSSSSSSS
//	DIR/tiers/T/FIGURE/BBBBBBBBBBB.blk  down-sampled tiers, where they are kept
//	DIR/tiers/late                      spans whose tiers are to be made again
//
// A row is applied to the open block of its 120-s span and to the pending log record, and durable with the next group
// fsync (then Append answers). A block that had no append for 15 s, or when too many are open, is sealed into a block
// file, not before it is durable in the log; log segments go when all their blocks are sealed and synced. A row that
// arrives later opens a further block of the same span.
//
// # nodes
//
// Replaced as a whole (written beside, synced, renamed) before any log record or block that needs it is synced.
//
//	4     "FWND"
//	2, 2  version 2, zero
//	      then per node:
//	4     CRC of the rest of this record
//	1     length L of the name
//	1     role (topology.Role)
//	4     the node's number; consecutive, one with an empty name is not in use
//	16    bit m set: metric m was seen; version 1 has 8
//	L     name
//
// Nodes of one role are numbered in groups of 64, so that a machine's forwarders share chunks of the index. A record
// with a wrong CRC costs that name.
//
// # wal/*.log
//
// A segment is written in pages of 4096 bytes, past the page cache where the file system allows that. A page that
// holds something is never written again: a torn write cannot hit what was acknowledged.
//
//	4     "FWLG"
//	2, 2  version 3, zero
//	8     number of the segment's first record
//	8     a block id: every row of it and of higher ids is in this segment or a newer one; every other block has a
//	      lower id
//	4     CRC of the 24 bytes before
//	      then per record, from the begin of the next page:
//	4     length L of the payload, at most 64 MiB
//	4     CRC of number and payload
//	8     the record's number, one more than the one before
//	L     payload: operations; zeros up to the page's end
//
// Behind the last record are zeros, up to 1 MiB at a time; a page of zeros where a record would begin is the end. A
// new segment begins when a block is opened and after a failed write: what was not known to be on the device is
// written again, so a number may occur twice and the reader skips what it has. The reader stops at the first record
// that is not intact. Of a log with more than 256 open blocks those with the newest spans are replayed, the others
// reported. After a missing number only rows by metric are taken from the blocks open then; the loss is reported.
//
// An operation begins with a uvarint; its two low bits are the kind, the rest the argument.
//
//	0 context    argument 0: uvarint block id, varint span number (start / 120), 1 byte second in the span; later
//	             rows belong there
//	1 same       argument n: the next n nodes repeat their newest row
//	2 row        argument zigzag(node - cursor): a row, the node's newest; one without columns repeats the one
//	             before
//	3 named row  argument zigzag(node - cursor): uvarint count, then per metric 1 byte number and a value: a
//	             node's first row in
//	             the block, one with a new metric, out of order or added to
//
// The cursor is one more than the node of the operation before, 0 at the start of a record. Columns are numbered in
// the order in which the node's named rows in this block first named their metrics. A row has all values of its
// second:
//
//	1            columns C, at most 64; columns from C on have no value
//	(C + 1) / 2  4 bits per column, low ones first: 0 to 7 an integer of so many bytes (0 none), 8 a float64, 15
//	             no value; the last half byte of an odd C is 0
//	per column   the value in so many bytes: an integer from 0 to below 2^53, or 8 bytes of float64
//
// A value of a named row is a uvarint u: even is zigzag(integer) << 1; 1 means that 8 bytes of float64 follow; 3
// means no value.
//
// # blocks/*.blk
//
// A header of 12 bytes (FWBF, version 1 in 2 bytes, 2 zero bytes, CRC of these 8; on the device before the first
// block), then blocks in the order of sealing. Each append is synced before the log lets go of its rows; an
// unfinished end is overwritten by the next block. A reader that meets a damaged header searches for the next intact
// one. A block is 120 seconds of every node and metric that had rows. Of several with the same start the values of
// the higher id win, second by second.
//
//	4        "FWBK"
//	2, 2     version 2, zero
//	8        start, a multiple of 120
//	8        id of the open block it was
//	8        length of the whole block
//	4        number C of chunks of 64 nodes
//	2        number of metrics
//	2        number of limits
//	8 each   limits: float64, bytes/s from which a second counted as occupied
//	21 each  metrics: 1 byte number, 8 offset of its directory in the block, 4 length of its index, 4 length of
//	         its data, 4 CRC of its directory
//	4        CRC of the header up to here
//
// The header's length follows from its counts in this way in every later version, so that a reader can distinguish
// damage from a newer version.
//
// Per metric follow, without a gap: the directory (C + 1 numbers of 4 bytes: where each chunk's record begins in the
// index; an empty record means that no node of the chunk has rows), the index, the data. A chunk's record in the
// index:
//
//	4        CRC of start (8), chunk number (4), metric (1) and the rest of the record
//	1        kind: 0 nodes without an entry have no rows; 1 they are 0 in all 120 seconds; 2 a mask says which
//	         are; 3 all 64 are 0 and nothing follows
//	8        kind 2 only: mask of the nodes that are 0
//	8        mask of the nodes with an entry
//	uvarint  where the data of the chunk's first entry begins in the metric's data
//	         entries, in order of node
//
// An entry is a byte of flags, then
//
//	0x10 constant  120 times one value: a varint, or with 0x08 a float64; nothing else follows
//	0x01 partial   1 byte: present seconds; else 120
//	0x04 single    one present second is not 0: uvarint value, which is maximum and sum
//	0x02 dense     no present second is 0; without dense and single 1 byte: seconds that are not 0
//	0x08 raw       minimum, maximum, sum as float64; else (dense only) uvarint minimum, uvarint maximum - minimum,
//	               uvarint sum
//	0x20 occupied  1 byte number of a limit, 1 byte seconds in which read_bytes + write_bytes reached it (on
//	               read_bytes, or on write_bytes of a node without)
//	               uvarint length of the column's bytes
//	0x40 inline    the column's bytes are here; else they are next in the data, followed by their CRC
//
// So figures are read from the index alone. A wrong CRC of a record costs the 64 nodes of one metric, of a column
// that column and those predicted from it.
//
// # A column
//
// Byte 0: bits 0-2 which seconds are coded, bits 3-4 the prediction, bits 5-6 the code, bit 7: byte 1 follows. Byte
// 1: bits 0-1 the unit, bit 2: the mask of present seconds (120 bits) follows. Bit fields are packed low bits first
// and padded to a byte. Present seconds that are not coded are 0. Related columns are the operations a metric belongs
// to (collector.Info.Of), of the same node and block, where those have an entry that is not constant.
//
//	coded seconds, with their bits
//	0 all present
//	1 listed: 7 for each second that is not 0
//	2 one run: 7, its first second; its length is the non-zero count
//	3 runs: 3, runs - 1; then 7 for the first second and 7 for the length of each
//	4 mask: 120
//	5 where the first related column is not 0
//	6 where the first or second related column is not 0
//
//	unit
//	0 integers are the values    1 value x 1e6    2 value x 1e9    3 fractions
//
//	prediction
//	0 mean      the sum divided by the coded seconds, rounded
//	1 previous  the coded value before; the first value's zigzag difference to the mean is a uvarint before the
//	            code
//	2 related   the first related column's value times the rounded quotient of both sums
//	3 least     the minimum (0 at least where zeros are left out); differences are then not zigzag
//
//	code
//	0  all differences are 0
//	1  1 byte k, then Rice codes: the number above bit k in ones ended by a zero, then k bits; 24 ones: the number
//	   follows in 64 bits
//	2  1 byte width, uvarint least difference, then each less that in width bits
//	3  fractions: a 0 where the float64 is the one before, else 6 bits of leading zeros, 6 of trailing zeros and
//	   the bits between of the exclusive or
//
// A decoder recomputes the figures and refuses a column whose figures differ from the index.
//
// # tiers/T/FIGURE/*.blk
//
// T is 10s or 300s, the length of a bucket. The files are block files in which the number of the bucket (its start
// divided by its length) takes the place of the second: a block is 120 buckets, a file 3600. A column holds, per
// bucket with at least one second:
//
//	sum, min, max  of the seconds' values
//	last           the newest second's value; v0.2 made none
//	absent         seconds without a value (the count is the length less that)
//	occupied       under read_bytes: seconds in which read_bytes + write_bytes reached the limit
//	unreported     under read_bytes: seconds with neither
//	limit          under read_bytes: that limit, bytes/s
//
// A span's block is made when its last second is a little more than an hour old, sum last; the 5-min tier from the
// 10-s one. Rows that come even later make another block with a higher id; before they are sealed, tiers/late names
// the span, replaced as a whole: a line FWLT 1, then per span T in seconds, a space, and the span's start. Rows of an
// hour whose seconds retention has removed are left out. Where a node's limit changed inside a 5-min block, the
// seconds near the older limit are not counted.
package engine
