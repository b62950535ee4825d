package rootcause

// remedies are the hints and calls that help against a cause of the job's own, by rule: of the first kind that the log
// says the program used.
func remedies() map[string]struct{ mpiio, plain string } {
	return map[string]struct{ mpiio, plain string }{
		"small": {"MPI_File_write_all or read_all instead of write and read (PnetCDF: ncmpi_iput_var, then ncmpi_wait_all); " +
			"hints romio_cb_write = enable, romio_ds_write = disable", "gather in a buffer of 1 MiB or more (setvbuf, HDF5 " +
			"H5Pset_chunk_cache) before each call"},
		"unaligned": {"hint striping_unit, and collective calls, whose aggregators align; HDF5: H5Pset_alignment; PnetCDF: hint " +
			"nc_var_align_size", "pad records to a multiple of the unit, or HDF5: H5Pset_alignment"},
		"random": {"collective calls, which sort the requests of all processes", "sort the requests by offset, or read the file " +
			"whole and pick in memory"},
		"nonconsec":   {"one file view (MPI_File_set_view) and one collective call for all pieces", "one readv or preadv for all pieces"},
		"collective":  {"MPI_File_write_all and MPI_File_read_all", "MPI-IO with collective calls"},
		"independent": {"MPI_File_write_all and MPI_File_read_all; HDF5: H5Pset_dxpl_mpio with H5FD_MPIO_COLLECTIVE", ""},
		"redundant":   {"read once and MPI_Bcast, or MPI_File_read_all", "read once and keep it, or send it to the others"},
		"metadata": {"open by all at once (MPI_File_open); HDF5: H5Pset_coll_metadata_write and H5Pset_all_coll_metadata_ops",
			"fewer, larger files; keep them open; no stat before each open"},
		"open-close": {"open once, close at the end", "open once, close at the end"},
		"shared-file": {"collective calls with cb_nodes = the stripe count, or subfiling (PnetCDF: hint nc_num_subfiles)",
			"a file a process, or collective MPI-IO"},
		"one-process": {"hints cb_nodes and romio_cb_write = enable, so that more than one aggregates", "let each process write its " +
			"part by MPI-IO"},
		"one-file": {"a wider stripe (lfs setstripe -c), or a file a group", "a wider stripe (lfs setstripe -c), or a file a group"},
		"imbalance": {"hints cb_nodes and romio_cb_write = enable, or give each process the same share",
			"give each process the same share"},
		"serial":        {"nonblocking calls (MPI_File_iwrite), so that files overlap", "write several files at a time"},
		"procs-per-ost": {"lfs setstripe -c on the file's directory; hint striping_factor", "lfs setstripe -c on the file's directory"},
	}
}

// advise gives the causes of the job's own their remedy, and the time that it may save at most: the part of the I/O time
// that has the cause.
func advise(j *Job, a *Answer, clauses []Clause) {
	all := remedies()
	usesMPIIO := false
	for i := range j.Files {
		c := j.Files[i].Calls
		usesMPIIO = usesMPIIO || c != nil && c.Independent.OK()
	}
	for i := range clauses {
		c := &clauses[i]
		r, ok := all[c.Rule]
		if !ok || !c.Cause {
			continue
		}
		if c.Remedy = r.plain; usesMPIIO {
			c.Remedy = r.mpiio
		}
		if c.GainSeconds == 0 && c.Value <= 1 && c.Rule != "open-close" {
			c.GainSeconds = a.IOTime * float64(c.Value)
		}
	}
}
