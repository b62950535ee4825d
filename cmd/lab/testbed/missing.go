package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// MissingError lists the Debian packages a testbed needs and the machine lacks.
type MissingError struct{ Packages []string }

func (e *MissingError) Error() string {
	return "the testbed needs programs that are not installed; apt-get install " + strings.Join(e.Packages, " ")
}

// Missing returns the Debian packages that a testbed of this configuration needs and that are not
// installed, sorted.
func Missing(cfg Config) []string {
	programs := [][2]string{{"env", "coreutils"}}
	if cfg.Layer == NFS {
		programs = append(programs, [2]string{"ganesha.nfsd", "nfs-ganesha"}, [2]string{"dbus-daemon", "dbus-daemon"})
		for fsal, pack := range map[string]string{"libfsalvfs.so": "nfs-ganesha-vfs",
			"libfsalproxy_v4.so": "nfs-ganesha-proxy-v4"} {
			if found, _ := filepath.Glob(filepath.Join("/usr/lib/*/ganesha", fsal)); len(found) == 0 {
				programs = append(programs, [2]string{fsal, pack}) // on no path: it is missing
			}
		}
	} else {
		programs = append(programs, [2]string{"diod", "diod"})
	}
	if os.Geteuid() == 0 && !cfg.Loopback {
		programs = append(programs, [2]string{"ip", "iproute2"}, [2]string{"tc", "iproute2"})
	}
	if cfg.Slurm {
		programs = append(programs, [2]string{"slurmctld", "slurmctld"}, [2]string{"slurmd", "slurmd"},
			[2]string{"sbatch", "slurm-client"}, [2]string{"munged", "munge"}, [2]string{"setpriv", "util-linux"})
	}
	return missingOf(programs)
}

// missingOf returns the packages of those (program, package) pairs whose program is not found.
func missingOf(programs [][2]string) []string {
	var out []string
	for _, p := range programs {
		if _, err := lookProgram(p[0]); err != nil {
			out = append(out, p[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lookProgram finds a program on PATH or in the administrator's folders, which a user's PATH may lack.
func lookProgram(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if p, err := exec.LookPath(dir + "/" + name); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("program %s not found", name)
}
