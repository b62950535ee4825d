package hook

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"fairway/collector/logs/slurm"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/webui/access/hostuser"
)

// batchSystem reads a job from the environment that a batch system gives its prologue and epilogue.
type batchSystem struct {
	name string
	id   string // the variable with the job's ID
	job  func(env func(string) string) topology.JobID
	// about fills in all but the job's ID and nodes; nodes returns the host names, and which variable has them.
	about func(env func(string) string, r *dispatch.Request)
	nodes func(env func(string) string) (nodes []topology.NodeID, from string, err error)
}

// batchSystems are those whose environment is understood.
var batchSystems = []batchSystem{
	{"flux", "FLUX_JOB_ID", jobOf("FLUX_JOB_ID"), aboutFlux, noNodes},
	{"slurm", "SLURM_JOB_ID", jobOf("SLURM_JOB_ID"), aboutSlurm, func(env func(string) string) ([]topology.NodeID,
		string, error) {
		nodes, err := topology.ParseHostList(env("SLURM_JOB_NODELIST"))
		return nodes, "SLURM_JOB_NODELIST", err
	}},
	{"pbs", "PBS_JOBID", jobOf("PBS_JOBID"), aboutPBS, pbsNodes},
	{"lsf", "LSB_JOBID", lsfJob, aboutLSF, lsfNodes},
}

// jobOf names a job as everything else does: 12 of PBS's 12.server.
func jobOf(name string) func(func(string) string) topology.JobID {
	return func(env func(string) string) topology.JobID {
		return cmp.Or(topology.JobOf(env(name)), topology.JobID(env(name)))
	}
}

// given are the parts of a job that the command line says, for batch systems that pass arguments instead.
type given struct {
	system, job, user, name, account, nodes, envDir, caFile string
	hints                                                   bool
}

// jobOfHook reads a job from the command line and the environment; what the command line says comes first.
func jobOfHook(env func(string) string, g *given) (r dispatch.Request, err error) {
	r, b, err := knownJob(env, g)
	if err != nil {
		return r, err
	}
	if b != nil {
		b.about(env, &r)
	}
	for _, over := range []struct {
		to   *string
		from string
	}{{&r.User, g.user}, {&r.Project, g.account}} {
		if over.from != "" {
			*over.to = over.from
		}
	}
	if g.name != "" {
		r.App = slurm.Application(g.name, "")
	}
	r.Hints = r.Hints || g.hints
	from := "--nodes"
	switch {
	case g.nodes != "":
		r.Nodes, err = topology.ParseHostList(g.nodes)
	case b != nil:
		r.Nodes, from, err = b.nodes(env)
	default:
		err = errors.New("is required without --system")
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", from, err)
	}
	return r, nil
}

// knownJob is the job's ID and the batch system whose environment is read; nil: none is. A job's own environment may
// say anything: which batch system it is follows from the command line alone, and nothing else of it is read.
func knownJob(env func(string) string, g *given) (r dispatch.Request, b *batchSystem, err error) {
	r.Job = topology.JobID(g.job)
	if g.system != "" {
		i := slices.IndexFunc(batchSystems, func(b batchSystem) bool { return b.name == g.system })
		if i < 0 {
			return r, nil, fmt.Errorf("--system %q: want slurm, pbs, lsf or flux", g.system)
		}
		if b = &batchSystems[i]; g.job == "" {
			r.Job = b.job(env)
		}
		if r.Job == "" {
			err = fmt.Errorf("%s is not set: this is not an environment of %s; --job, --user and --nodes say the same",
				b.id, b.name)
		}
	} else if r.Job == "" {
		err = errors.New("which batch system calls is not known: give --system slurm, pbs, lsf or flux, or --job, " +
			"--user and --nodes")
	}
	return r, b, err
}

// aboutSlurm reads what Slurm's controller puts into the environment of its prolog. The application is the job's
// name, or what "app=..." in its comment says; "hints=romio" there asks for ROMIO hints.
func aboutSlurm(env func(string) string, r *dispatch.Request) {
	r.User, r.App = env("SLURM_JOB_USER"), slurm.Application(env("SLURM_JOB_NAME"), env("SLURM_JOB_COMMENT"))
	r.Hints = slices.Contains(strings.FieldsFunc(env("SLURM_JOB_COMMENT"), slurm.BetweenWords), "hints=romio")
	if r.Project = env("SLURM_JOB_ACCOUNT"); r.Project == "(null)" { // as Slurm writes a job without an account
		r.Project = ""
	}
}

// aboutPBS leaves the user out: PBS_O_LOGNAME is what the user's qsub says, the prologue's second argument is PBS's.
func aboutPBS(env func(string) string, r *dispatch.Request) {
	r.App, r.Project = slurm.Application(env("PBS_JOBNAME"), ""), env("PBS_ACCOUNT")
}

// maxNodeFile bounds a node file: a name of 16 bytes for each of 16 slots on 41,488 nodes is 11 MB.
const maxNodeFile = 32 << 20

// pbsNodes reads the node file, which has a line for each slot.
func pbsNodes(env func(string) string) ([]topology.NodeID, string, error) {
	path := env("PBS_NODEFILE")
	if path == "" {
		return nil, "PBS_NODEFILE", errors.New("is not set: give --nodes")
	}
	names, err := nodeFile(path)
	return names, "PBS_NODEFILE", err
}

func nodeFile(path string) ([]topology.NodeID, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxNodeFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxNodeFile {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxNodeFile)
	}
	return once(strings.Fields(string(b))), nil
}

// lsfJob is a job's number, with its index in an array: 12 or 12[3].
func lsfJob(env func(string) string) topology.JobID {
	id := env("LSB_JOBID")
	if index := env("LSB_JOBINDEX"); index != "" && index != "0" {
		id += "[" + index + "]"
	}
	return topology.JobID(id)
}

func aboutLSF(env func(string) string, r *dispatch.Request) {
	r.User, r.App = env("LSFUSER"), slurm.Application(env("LSB_JOBNAME"), "")
	r.Project = env("LSB_PROJECT_NAME")
}

// lsfNodes reads "host slots host slots ...", the host file, or the plain list, whichever there is. LSF leaves the
// lists out of the environment of the largest jobs, where the file remains.
func lsfNodes(env func(string) string) ([]topology.NodeID, string, error) {
	if path := env("LSB_DJOB_HOSTFILE"); path != "" {
		names, err := nodeFile(path)
		return names, "LSB_DJOB_HOSTFILE", err
	}
	if f := strings.Fields(env("LSB_MCPU_HOSTS")); len(f) > 0 {
		if len(f)%2 != 0 {
			return nil, "LSB_MCPU_HOSTS", fmt.Errorf("%d words: want pairs of a host and its slots", len(f))
		}
		var names []string
		for pair := range slices.Chunk(f, 2) {
			names = append(names, pair[0])
		}
		return once(names), "LSB_MCPU_HOSTS", nil
	}
	names := once(strings.Fields(env("LSB_HOSTS")))
	if len(names) == 0 {
		return nil, "LSB_HOSTS", errors.New("is not set, neither is LSB_DJOB_HOSTFILE: give --nodes")
	}
	return names, "LSB_HOSTS", nil
}

// aboutFlux resolves the user: Flux's prolog has the number alone.
func aboutFlux(env func(string) string, r *dispatch.Request) {
	id := env("FLUX_JOB_USERID")
	if uid, err := strconv.ParseUint(id, 10, 32); err == nil {
		if u, err := hostuser.UserOf(uint32(uid)); err == nil {
			r.User = u.Username
			return
		}
	}
	r.User = id
}

func noNodes(func(string) string) ([]topology.NodeID, string, error) {
	return nil, "--nodes",
		errors.New(`is required: Flux's prolog has no host list; --nodes "$(flux jobs -no {nodelist} ` +
			`$FLUX_JOB_ID)"`)
}

// once leaves out names that are there already, and domains, which some sites' PBS and LSF have and no node. An address
// stays whole.
func once(names []string) (out []topology.NodeID) {
	for _, n := range names {
		if _, err := netip.ParseAddr(n); err != nil {
			n, _, _ = strings.Cut(n, ".")
		}
		out = append(out, topology.NodeID(n))
	}
	return topology.Distinct(out)
}
