package darshan

import "slices"

// layout is one version of a module's fixed-size record: after id and rank, some skipped bytes, then
// integers, then floats, each a subset of the newest version's counters.
type layout struct {
	skip int
	// ints and floats give for each value of the record its place among the newest version's counters,
	// or -1 where that no longer exists.
	ints, floats []int
	// dropIf is the value of a record that, when above 0, drops the record; -1 for none.
	dropIf int
}

func (l *layout) size() int { return 16 + l.skip + 8*(len(l.ints)+len(l.floats)) }

// counters are the names of a module's counters in its newest version.
type counters struct {
	ints, floats []string
	versions     []layout // index is version-1
}

var sizeBins = []string{"0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G",
	"1G_PLUS"}

// named puts a module's prefix before the names of its counters; a name ending in * stands for the ten
// request-size bins.
func named(prefix string, names ...string) []string {
	var out []string
	for _, n := range names {
		if n[len(n)-1] == '*' {
			for _, bin := range sizeBins {
				out = append(out, prefix+n[:len(n)-1]+bin)
			}
			continue
		}
		out = append(out, prefix+n)
	}
	return out
}

// places returns the places of all names but the missing ones.
func places(names, missing []string) []int {
	var out []int
	for i, n := range names {
		if !slices.Contains(missing, n) {
			out = append(out, i)
		}
	}
	return out
}

// oldFloats are those of POSIX and MPI-IO before both ends of opening and closing were recorded.
func oldFloats(c *counters) []int {
	return slices.Delete(places(c.floats, nil), 3, 5)
}

var fileFloats = []string{"OPEN_START_TIMESTAMP", "READ_START_TIMESTAMP", "WRITE_START_TIMESTAMP",
	"CLOSE_START_TIMESTAMP",
	"OPEN_END_TIMESTAMP", "READ_END_TIMESTAMP", "WRITE_END_TIMESTAMP", "CLOSE_END_TIMESTAMP",
	"READ_TIME", "WRITE_TIME", "META_TIME", "MAX_READ_TIME", "MAX_WRITE_TIME",
	"FASTEST_RANK_TIME", "SLOWEST_RANK_TIME", "VARIANCE_RANK_TIME", "VARIANCE_RANK_BYTES"}

var rankNames = []string{"FASTEST_RANK", "FASTEST_RANK_BYTES", "SLOWEST_RANK", "SLOWEST_RANK_BYTES"}

var accessNames = []string{"ACCESS1_ACCESS", "ACCESS2_ACCESS", "ACCESS3_ACCESS", "ACCESS4_ACCESS",
	"ACCESS1_COUNT", "ACCESS2_COUNT", "ACCESS3_COUNT", "ACCESS4_COUNT"}

func posixCounters() *counters {
	names := []string{"OPENS", "FILENOS", "DUPS", "READS", "WRITES", "SEEKS", "STATS", "MMAPS", "FSYNCS", "FDSYNCS",
		"RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM", "MODE", "BYTES_READ", "BYTES_WRITTEN", "MAX_BYTE_READ",
		"MAX_BYTE_WRITTEN", "CONSEC_READS", "CONSEC_WRITES", "SEQ_READS", "SEQ_WRITES", "RW_SWITCHES",
		"MEM_NOT_ALIGNED",
		"MEM_ALIGNMENT", "FILE_NOT_ALIGNED", "FILE_ALIGNMENT", "MAX_READ_TIME_SIZE", "MAX_WRITE_TIME_SIZE",
		"SIZE_READ_*",
		"SIZE_WRITE_*", "STRIDE1_STRIDE", "STRIDE2_STRIDE", "STRIDE3_STRIDE", "STRIDE4_STRIDE",
		"STRIDE1_COUNT", "STRIDE2_COUNT", "STRIDE3_COUNT", "STRIDE4_COUNT"}
	c := &counters{ints: named("POSIX_", slices.Concat(names, accessNames, rankNames)...),
		floats: named("POSIX_F_", fileFloats...)}
	all := places(c.ints, nil)
	floats := places(c.floats, nil)
	v3 := places(c.ints, named("POSIX_", "FILENOS", "DUPS", "RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM"))
	// Version 1 has four counters of stdio after MMAPS.
	stdio := slices.Index(v3, slices.Index(c.ints, "POSIX_MMAPS")) + 1
	v1 := slices.Insert(slices.Clone(v3), stdio, -1, -1, -1, -1)
	old := oldFloats(c)
	c.versions = []layout{
		{ints: v1, floats: old, dropIf: stdio},
		{ints: v3, floats: old, dropIf: -1},
		{ints: v3, floats: floats, dropIf: -1},
		{ints: all, floats: floats, dropIf: -1},
	}
	return c
}

func mpiioCounters() *counters {
	names := []string{"INDEP_OPENS", "COLL_OPENS", "INDEP_READS", "INDEP_WRITES", "COLL_READS", "COLL_WRITES",
		"SPLIT_READS",
		"SPLIT_WRITES", "NB_READS", "NB_WRITES", "SYNCS", "HINTS", "VIEWS", "MODE", "BYTES_READ", "BYTES_WRITTEN",
		"RW_SWITCHES", "MAX_READ_TIME_SIZE", "MAX_WRITE_TIME_SIZE", "SIZE_READ_AGG_*", "SIZE_WRITE_AGG_*"}
	c := &counters{ints: named("MPIIO_", slices.Concat(names, accessNames, rankNames)...),
		floats: named("MPIIO_F_", fileFloats...)}
	ints := places(c.ints, nil)
	old := layout{ints: ints, floats: oldFloats(c), dropIf: -1}
	c.versions = []layout{old, old, {ints: ints, floats: places(c.floats, nil), dropIf: -1}}
	return c
}

func stdioCounters() *counters {
	names := []string{"OPENS", "FDOPENS", "READS", "WRITES", "SEEKS", "FLUSHES", "BYTES_WRITTEN", "BYTES_READ",
		"MAX_BYTE_READ", "MAX_BYTE_WRITTEN"}
	c := &counters{ints: named("STDIO_", slices.Concat(names, rankNames)...), floats: named("STDIO_F_",
		"META_TIME", "WRITE_TIME", "READ_TIME", "OPEN_START_TIMESTAMP", "CLOSE_START_TIMESTAMP",
		"WRITE_START_TIMESTAMP",
		"READ_START_TIMESTAMP", "OPEN_END_TIMESTAMP", "CLOSE_END_TIMESTAMP", "WRITE_END_TIMESTAMP",
		"READ_END_TIMESTAMP",
		"FASTEST_RANK_TIME", "SLOWEST_RANK_TIME", "VARIANCE_RANK_TIME", "VARIANCE_RANK_BYTES")}
	floats := places(c.floats, nil)
	c.versions = []layout{
		{ints: places(c.ints, []string{"STDIO_FDOPENS"}), floats: floats, dropIf: -1},
		{ints: places(c.ints, nil), floats: floats, dropIf: -1},
	}
	return c
}

func bgqCounters() *counters {
	c := &counters{ints: named("BGQ_", "CSJOBID", "NNODES", "RANKSPERNODE", "DDRPERNODE", "INODES", "ANODES", "BNODES",
		"CNODES", "DNODES", "ENODES", "TORUSENABLED"), floats: named("BGQ_F_", "TIMESTAMP")}
	newest := layout{ints: places(c.ints, nil), floats: []int{0}, dropIf: -1}
	first := newest
	first.skip = 8
	c.versions = []layout{first, newest}
	return c
}

func h5fCounters() *counters {
	c := &counters{ints: named("H5F_", "OPENS", "FLUSHES", "USE_MPIIO"), floats: named("H5F_F_", "OPEN_START_TIMESTAMP",
		"CLOSE_START_TIMESTAMP", "OPEN_END_TIMESTAMP", "CLOSE_END_TIMESTAMP", "META_TIME")}
	c.versions = []layout{
		{ints: []int{0}, floats: []int{0, 3}, dropIf: -1},
		{ints: []int{0}, floats: []int{0, 1, 2, 3}, dropIf: -1},
		{ints: places(c.ints, nil), floats: places(c.floats, nil), dropIf: -1},
	}
	return c
}

func h5dCounters() *counters {
	names := []string{"OPENS", "READS", "WRITES", "FLUSHES", "BYTES_READ", "BYTES_WRITTEN", "RW_SWITCHES",
		"REGULAR_HYPERSLAB_SELECTS", "IRREGULAR_HYPERSLAB_SELECTS", "POINT_SELECTS", "MAX_READ_TIME_SIZE",
		"MAX_WRITE_TIME_SIZE", "SIZE_READ_AGG_*", "SIZE_WRITE_AGG_*"}
	names = append(names, slabNames()...)
	names = append(names, "DATASPACE_NDIMS", "DATASPACE_NPOINTS", "DATATYPE_SIZE", "CHUNK_SIZE_D1", "CHUNK_SIZE_D2",
		"CHUNK_SIZE_D3", "CHUNK_SIZE_D4", "CHUNK_SIZE_D5", "USE_MPIIO_COLLECTIVE", "USE_DEPRECATED")
	// The id of the dataset's file comes first in the record and last in what is printed.
	names = append(append(names, rankNames...), fileID)
	c := &counters{ints: named("H5D_", names...), floats: named("H5D_F_", fileFloats...)}
	last := len(c.ints) - 1
	first, floats := places(c.ints[:last], nil), places(c.floats, nil)
	c.versions = []layout{
		{ints: first, floats: floats, dropIf: -1},
		{ints: append([]int{last}, first...), floats: floats, dropIf: -1},
	}
	return c
}

// fileID names the counter with the file of a dataset or variable; it is the last of its module.
const fileID = "FILE_REC_ID"

// slabNames are the counters of the commonest accesses to hyperslabs.
func slabNames() (names []string) {
	for _, a := range []string{"ACCESS1_", "ACCESS2_", "ACCESS3_", "ACCESS4_"} {
		names = append(names, a+"ACCESS", a+"LENGTH_D1", a+"LENGTH_D2", a+"LENGTH_D3", a+"LENGTH_D4", a+"LENGTH_D5",
			a+"STRIDE_D1", a+"STRIDE_D2", a+"STRIDE_D3", a+"STRIDE_D4", a+"STRIDE_D5")
	}
	return append(names, accessNames[4:]...)
}

func pnetcdfFileCounters() *counters {
	c := &counters{ints: named("PNETCDF_FILE_", "CREATES", "OPENS", "REDEFS", "INDEP_WAITS", "COLL_WAITS", "SYNCS",
		"BYTES_READ", "BYTES_WRITTEN", "WAIT_FAILURES"), floats: named("PNETCDF_FILE_F_", "OPEN_START_TIMESTAMP",
		"CLOSE_START_TIMESTAMP", "WAIT_START_TIMESTAMP", "OPEN_END_TIMESTAMP", "CLOSE_END_TIMESTAMP",
		"WAIT_END_TIMESTAMP", "META_TIME", "WAIT_TIME")}
	c.versions = []layout{ // the first two count independent and collective opens
		{ints: []int{1, 1}, floats: []int{0, 4}, dropIf: -1},
		{ints: []int{1, 1}, floats: []int{0, 1, 3, 4}, dropIf: -1},
		{ints: places(c.ints, nil), floats: places(c.floats, nil), dropIf: -1},
	}
	return c
}

func pnetcdfVarCounters() *counters {
	names := []string{"OPENS", "INDEP_READS", "INDEP_WRITES", "COLL_READS", "COLL_WRITES", "NB_READS", "NB_WRITES",
		"BYTES_READ", "BYTES_WRITTEN", "RW_SWITCHES"}
	for _, call := range []string{"PUT_", "GET_", "IPUT_", "IGET_", "BPUT_"} {
		for _, of := range []string{"VAR", "VAR1", "VARA", "VARS", "VARM", "VARN"} {
			names = append(names, call+of)
		}
		if len(call) == len("PUT_") {
			names = append(names, call+"VARD")
		}
	}
	names = append(names, "MAX_READ_TIME_SIZE", "MAX_WRITE_TIME_SIZE", "SIZE_READ_AGG_*", "SIZE_WRITE_AGG_*")
	names = append(append(names, slabNames()...), "NDIMS", "NPOINTS", "DATATYPE_SIZE", "IS_RECORD_VAR")
	names = append(append(names, rankNames...), fileID)
	c := &counters{ints: named("PNETCDF_VAR_", names...), floats: named("PNETCDF_VAR_F_", fileFloats...)}
	last := len(c.ints) - 1
	c.versions = []layout{{ints: append([]int{last}, places(c.ints[:last], nil)...), floats: places(c.floats, nil),
		dropIf: -1}}
	return c
}

// fixed are the modules whose records all have one size.
var fixed = map[Module]*counters{
	POSIX: posixCounters(), MPIIO: mpiioCounters(), STDIO: stdioCounters(), BGQ: bgqCounters(), H5F: h5fCounters(),
	H5D: h5dCounters(), PnetCDFFile: pnetcdfFileCounters(), PnetCDFVar: pnetcdfVarCounters(),
	Combined: combinedCounters(),
}

// CounterNames returns the names of Record.Counters and Record.FCounters for a module; both are empty
// for Lustre, Heatmap and the DXT modules, whose records have their own types.
func CounterNames(m Module) (ints, floats []string) {
	if c := fixed[m]; c != nil {
		return c.ints, c.floats
	}
	return nil, nil
}

// isID says of counters that are record ids, which are unsigned.
func isID(m Module, i int) bool {
	return m == POSIX && fixed[m].ints[i] == "POSIX_RENAMED_FROM" || namesFile(m) && i == len(fixed[m].ints)-1
}

// namesFile says of a module that its records are of parts of files, whose id is the last counter.
func namesFile(m Module) bool { return m == H5D || m == PnetCDFVar }
