package rootcause

import (
	"cmp"
	"fmt"
)

// remedy is what helps against a cause: in the calls of a program, by hints or calls of MPI-IO, and by calls of the
// libraries above that, as far as each has its own. PnetCDF always uses MPI-IO, HDF5 may.
type remedy struct{ calls, mpiio, hdf5, parallelHDF5, pnetcdf string }

// remedyOf is empty for a cause that is not the job's own.
func remedyOf(rule string) remedy {
	const collective = "MPI_File_write_all and MPI_File_read_all"
	const transfers = "H5Pset_dxpl_mpio with H5FD_MPIO_COLLECTIVE on every transfer; H5Pget_mpio_no_collective_cause " +
		"says why one was not"
	const allCalls = "the calls that end in _all, such as ncmpi_put_vara_all"
	switch rule {
	case "small":
		return remedy{"gather in a buffer of 1 MiB or more before each call (setvbuf)",
			"MPI_File_write_all or read_all for write or read, with the hint romio_cb_write = enable",
			"larger selections for each H5Dwrite and H5Dread, and H5Pset_chunk_cache", "larger selections for each " +
				"H5Dwrite and H5Dread, and H5Pset_dxpl_mpio with H5FD_MPIO_COLLECTIVE",
			"ncmpi_iput_vara for each piece, then one ncmpi_wait_all"}
	case "unaligned":
		return remedy{"pad records to a multiple of the unit",
			"collective calls, whose aggregators align, with the hint striping_unit",
			"H5Pset_alignment with the unit", "", "the hints nc_header_align_size and nc_var_align_size"}
	case "random":
		return remedy{"sort the requests by offset, or read the file whole and pick in memory",
			"collective calls, which sort the requests of all processes", "", transfers, allCalls}
	case "nonconsec":
		return remedy{"one readv, or one large read, for all pieces",
			"one file view (MPI_File_set_view) and one collective call for all pieces", "", "",
			"ncmpi_iput_varn for all pieces, then one ncmpi_wait_all"}
	case "collective", "independent":
		return remedy{"MPI-IO with collective calls, or a file a process", collective, "", transfers, allCalls}
	case "shared-file":
		return remedy{"MPI-IO with collective calls, or a file a process",
			"collective calls with the hint cb_nodes = the stripe count", "", transfers,
			"calls that end in _all, or subfiling (hint nc_num_subfiles)"}
	case "split":
		return remedy{hdf5: "collective transfers (H5Pset_dxpl_mpio), H5Pset_chunk in the shape of the accesses and " +
			"an H5Pset_chunk_cache that holds them", pnetcdf: "ncmpi_iput_vara for each piece, then one ncmpi_wait_all"}
	case "blocking":
		return remedy{pnetcdf: "ncmpi_iput_vara and ncmpi_iget_vara, then one ncmpi_wait_all"}
	case "sieving":
		return remedy{mpiio: "the hints romio_ds_write = disable and romio_ds_read = disable, or collective calls " +
			"over a region without holes"}
	case "inflated":
		return remedy{hdf5: "H5Pset_fill_time with H5D_FILL_TIME_NEVER, and H5Pset_chunk_cache for chunks that are " +
			"used in parts", pnetcdf: "ncmpi_set_fill with NC_NOFILL"}
	case "redundant":
		return remedy{"read once and keep it, or send it to the others",
			"read once and MPI_Bcast, or MPI_File_read_all", "", "", ""}
	case "rewritten":
		return remedy{"keep in memory what changes again", "",
			"H5Pset_fill_time with H5D_FILL_TIME_NEVER, and keep in memory what changes again", "",
			"NC_NOFILL, and keep in memory what changes again"}
	case "metadata":
		return remedy{"fewer, larger files that stay open, and no stat before each open", "one MPI_File_open by all",
			"", "H5Pset_all_coll_metadata_ops and H5Pset_coll_metadata_write", ""}
	case "open-close":
		return remedy{calls: "open once, close at the end"}
	case "one-process", "imbalance":
		return remedy{"let each process write an equal part by MPI-IO",
			"hints romio_cb_write = enable and cb_nodes, so that more than one process aggregates", "", "", ""}
	case "one-file":
		return remedy{calls: "a wider stripe: lfs setstripe -c on the file's directory"}
	case "procs-per-ost":
		return remedy{"a wider stripe: lfs setstripe -c on the file's directory",
			"hint striping_factor, or lfs setstripe -c on the file's directory", "", "", ""}
	case "serial":
		return remedy{"write several files at a time", "nonblocking calls (MPI_File_iwrite), so that files overlap",
			"", "", ""}
	}
	return remedy{}
}

// text is what helps a program that uses a library, or MPI-IO. A log without the library's own module does not say
// that it was not used.
func (r remedy) text(library string, usesMPIIO bool) string {
	out, hdf5 := r.calls, r.hdf5
	if usesMPIIO {
		out, hdf5 = cmp.Or(r.mpiio, r.calls), cmp.Or(r.parallelHDF5, r.hdf5)
	}
	switch library {
	case "HDF5":
		return cmp.Or(hdf5, out)
	case "PnetCDF":
		return cmp.Or(r.pnetcdf, out)
	}
	if hdf5 != "" {
		out += "; HDF5: " + hdf5
	}
	if r.pnetcdf != "" && usesMPIIO {
		out += "; PnetCDF: " + r.pnetcdf
	}
	return out
}

// Advice is what helps against a cause and how much at most, in words; empty where nothing is known.
func (c *Clause) Advice() string {
	switch {
	case c.Remedy == "":
		return ""
	case c.GainSeconds > 0:
		return fmt.Sprintf("Try %s (saves at most %s).", c.Remedy, secs(c.GainSeconds))
	}
	return "Try " + c.Remedy + "."
}

// advise gives the causes of the job's own their remedy, and the time that it may save at most: the part of the I/O
// time that has the cause.
func advise(j *Job, a *Answer, clauses []Clause) {
	usesMPIIO, library, most := false, "", -1.
	for i := range j.Files {
		c := j.Files[i].Calls
		usesMPIIO = usesMPIIO || c != nil && c.Independent.OK()
	}
	for _, c := range a.Critical {
		if calls := j.Files[c.File].Calls; c.Exclusive > most && calls != nil {
			most, library = c.Exclusive, calls.Above.Library
		}
	}
	for i := range clauses {
		c := &clauses[i]
		if !c.Cause {
			continue
		}
		c.Remedy = remedyOf(c.Rule).text(library, usesMPIIO)
		switch {
		case c.GainSeconds > 0 || c.Value > 1 || c.Rule == "open-close" || c.Rule == "serial":
		case c.Rule == "collective":
			c.GainSeconds = a.IOTime * (1 - float64(c.Value))
		default:
			c.GainSeconds = a.IOTime * float64(c.Value)
		}
	}
}
