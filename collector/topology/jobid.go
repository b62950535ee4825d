package topology

import (
	"regexp"
	"strings"
)

// jobNumber is a job's number with its task of an array or its part of a heterogeneous job, and PBS's server behind it.
var jobNumber = regexp.MustCompile(`^([0-9]+(?:_[0-9]+|_?\[[^\]]*\]|\+[0-9]+)?)(\.[A-Za-z][A-Za-z0-9_.-]*)?$`)

// JobOf is the job that a batch system, a server's job statistics or a program's environment names; "" where the text
// names none. It knows
//
//	24, 24_7, 24+1                                Slurm, arrays and heterogeneous jobs
//	SLURM_JOB10, SLURM_JOB_host_10                Slurm, as sites put it into Lustre's jobid_name
//	1234.pbs01, 1234[7].pbs01.example.org         PBS: its hooks leave the server out
//	12[3]                                         LSF
//	f2PTYP4HzE5                                   Flux
//
// each with more behind a colon (jobid_name=%j:%u:%h). A program and its user (dd.1000, jobid_var=procname_uid) are no
// job, also where the program's name begins with digits.
func JobOf(text string) JobID {
	text, _, _ = strings.Cut(strings.Trim(text, `"`), ":")
	if f, isFlux := strings.CutPrefix(text, "ƒ"); isFlux {
		text = "f" + f
	}
	if isFluxID(text) {
		return JobID(text)
	}
	slurms, isSlurms := strings.CutPrefix(text, "SLURM_JOB")
	text = strings.TrimPrefix(slurms, "_")
	if isSlurms && (text == "" || text[0] < '0' || text[0] > '9') {
		text = text[strings.LastIndexByte(text, '_')+1:]
	}
	m := jobNumber.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	last := m[2][strings.LastIndexByte(m[2], '.')+1:]
	if m[2] != "" && strings.Trim(last, "0123456789") == "" {
		return "" // a program's name and its user's number
	}
	return JobID(m[1])
}

// fluxID is an f and a number to the base 58, which has no 0, O, I and l.
var fluxID = regexp.MustCompile(`^f[1-9A-HJ-NP-Za-km-z]{5,11}$`)

// isFluxID says whether a text is one of Flux's identifiers. Nearly all of them have a capital, and few programs whose
// names begin with f do.
func isFluxID(text string) bool {
	return fluxID.MatchString(text) && strings.ContainsAny(text, "ABCDEFGHJKLMNPQRSTUVWXYZ")
}
