package leash

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/prometheus/procfs"
)

// cpuPeriodMicros is the length over which a processor quota is counted.
const cpuPeriodMicros = 100_000

// cpuController is where a machine's cpu control groups are: version 1 (a tree of its own) or 2.
type cpuController struct {
	root string
	v2   bool
}

// cpuControllers are the usual places of both versions.
var cpuControllers = []cpuController{{"/sys/fs/cgroup/cpu", false}, {"/sys/fs/cgroup", true}}

// usable says whether the machine has this controller.
func (c cpuController) usable() bool {
	if !c.v2 {
		_, err := os.Stat(filepath.Join(c.root, "cpu.cfs_quota_us"))
		return err == nil
	}
	b, err := os.ReadFile(filepath.Join(c.root, "cgroup.controllers"))
	return err == nil && bytes.Contains(b, []byte("cpu"))
}

// limit writes what gives group, a child of parent, a share of one processor.
func (c cpuController) limit(parent, group string, share float64) error {
	quota := fmt.Sprintf("%.0f", share*cpuPeriodMicros)
	if !c.v2 {
		return errors.Join(put(group, "cpu.cfs_period_us", strconv.Itoa(cpuPeriodMicros)),
			put(group, "cpu.cfs_quota_us", quota))
	}
	return errors.Join(put(c.root, "cgroup.subtree_control", "+cpu"), put(parent, "cgroup.subtree_control", "+cpu"),
		put(group, "cpu.max", fmt.Sprintf("%s %d", quota, cpuPeriodMicros)))
}

// of returns the control group that a process is in.
func (c cpuController) of(pid int) (string, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return "", err
	}
	groups, err := p.Cgroups()
	if err != nil {
		return "", err
	}
	for _, g := range groups {
		if c.v2 && g.HierarchyID == 0 || !c.v2 && slices.Contains(g.Controllers, "cpu") {
			return filepath.Join(c.root, g.Path), nil
		}
	}
	return "", fmt.Errorf("process %d is in no control group below %s", pid, c.root)
}

// put writes one control file.
func put(dir, file, value string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0)
}

// Starve gives processes, in a control group of their own below the instance's, a share of one processor, until off is
// called. Where the machine cannot, the error is errors.ErrUnsupported.
func Starve(instance, name string, share float64, pids ...int) (off func() error, err error) {
	for _, c := range cpuControllers {
		if c.usable() {
			if off, err = c.starve(instance, name, share, pids); err != nil {
				err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
			}
			return off, err
		}
	}
	return nil, fmt.Errorf("%w: the machine has no cpu control groups", errors.ErrUnsupported)
}

func (c cpuController) starve(instance, name string, share float64, pids []int) (off func() error, err error) {
	before, err := c.of(pids[0])
	if err != nil {
		return nil, err
	}
	parent := filepath.Join(c.root, instance)
	group := filepath.Join(parent, name)
	if err := os.MkdirAll(group, 0o755); err != nil {
		return nil, err
	}
	put := func(group string) (err error) {
		for _, pid := range pids {
			if e := put(group, "cgroup.procs", strconv.Itoa(pid)); !errors.Is(e, syscall.ESRCH) { // else it has ended
				err = errors.Join(err, e)
			}
		}
		return err
	}
	off = func() error { return errors.Join(put(before), removeGroup(group), removeGroup(parent)) }
	if err := errors.Join(c.limit(parent, group, share), put(group)); err != nil {
		return nil, errors.Join(err, removeGroup(group), removeGroup(parent))
	}
	return off, nil
}

// removeGroup removes a control group, unless it is gone or has other groups in it.
func removeGroup(dir string) error {
	if sub, err := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs")); err != nil || len(sub) > 0 {
		return err
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove control group %s: %w", dir, err)
	}
	return nil
}

// RemoveGroups removes the control groups of an instance.
func RemoveGroups(instance string) error {
	var errs []error
	for _, c := range cpuControllers {
		groups, err := filepath.Glob(filepath.Join(c.root, instance, "*", "cgroup.procs"))
		errs = append(errs, err)
		for _, g := range groups {
			errs = append(errs, removeGroup(filepath.Dir(g)))
		}
		errs = append(errs, removeGroup(filepath.Join(c.root, instance)))
	}
	return errors.Join(errs...)
}
