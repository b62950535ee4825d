package rootcause

import (
	"cmp"
	"fmt"
)

// mpiioRemedyOf is the hint or call of MPI-IO, or of a library above it, that helps against a cause; empty for none.
func mpiioRemedyOf(rule string) string {
	switch rule {
	case "small":
		return "MPI_File_write_all or read_all for write or read, with the hint romio_cb_write = enable; PnetCDF: " +
			"ncmpi_iput_var for each piece, then one ncmpi_wait_all"
	case "unaligned":
		return "collective calls, whose aggregators align, with the hint striping_unit; HDF5: H5Pset_alignment; " +
			"PnetCDF: " +
			"hint nc_var_align_size"
	case "random":
		return "collective calls, which sort the requests of all processes"
	case "nonconsec":
		return "one file view (MPI_File_set_view) and one collective call for all pieces"
	case "collective", "independent":
		return "MPI_File_write_all and MPI_File_read_all; HDF5: H5Pset_dxpl_mpio with H5FD_MPIO_COLLECTIVE"
	case "redundant":
		return "read once and MPI_Bcast, or MPI_File_read_all"
	case "metadata":
		return "one MPI_File_open by all; HDF5: H5Pset_all_coll_metadata_ops and H5Pset_coll_metadata_write"
	case "shared-file":
		return "collective calls with the hint cb_nodes = the stripe count; PnetCDF: subfiling, hint nc_num_subfiles"
	case "one-process", "imbalance":
		return "hints romio_cb_write = enable and cb_nodes, so that more than one process aggregates"
	case "serial":
		return "nonblocking calls (MPI_File_iwrite), so that files overlap"
	case "procs-per-ost":
		return "hint striping_factor, or lfs setstripe -c on the file's directory"
	}
	return ""
}

// remedyOf is what helps a program that does not use MPI-IO; empty for a cause that is not the job's own.
func remedyOf(rule string) string {
	switch rule {
	case "small":
		return "gather in a buffer of 1 MiB or more before each call (setvbuf; HDF5: H5Pset_chunk_cache)"
	case "unaligned":
		return "pad records to a multiple of the unit; HDF5: H5Pset_alignment"
	case "random":
		return "sort the requests by offset, or read the file whole and pick in memory"
	case "nonconsec":
		return "one readv, or one large read, for all pieces"
	case "collective", "independent", "shared-file":
		return "MPI-IO with collective calls, or a file a process"
	case "redundant":
		return "read once and keep it, or send it to the others"
	case "rewritten":
		return "no fill values (HDF5: H5Pset_fill_time with H5D_FILL_TIME_NEVER; NetCDF: NC_NOFILL), and keep in " +
			"memory what " +
			"changes again"
	case "metadata":
		return "fewer, larger files that stay open, and no stat before each open"
	case "open-close":
		return "open once, close at the end"
	case "one-process", "imbalance":
		return "let each process write an equal part by MPI-IO"
	case "one-file", "procs-per-ost":
		return "a wider stripe: lfs setstripe -c on the file's directory"
	case "serial":
		return "write several files at a time"
	}
	return ""
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
	usesMPIIO := false
	for i := range j.Files {
		c := j.Files[i].Calls
		usesMPIIO = usesMPIIO || c != nil && c.Independent.OK()
	}
	for i := range clauses {
		c := &clauses[i]
		if !c.Cause {
			continue
		}
		if c.Remedy = remedyOf(c.Rule); usesMPIIO {
			c.Remedy = cmp.Or(mpiioRemedyOf(c.Rule), c.Remedy)
		}
		switch {
		case c.GainSeconds > 0 || c.Value > 1 || c.Rule == "open-close":
		case c.Rule == "collective":
			c.GainSeconds = a.IOTime * (1 - float64(c.Value))
		default:
			c.GainSeconds = a.IOTime * float64(c.Value)
		}
	}
}
