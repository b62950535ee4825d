package leash

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Instance is the directory of one testbed. Its owner holds a lock on the file "lock" as long as
// it lives, so that others can distinguish a running testbed from the leavings of a dead one.
type Instance struct {
	Name string // unique on this machine; with a suffix of seven bytes still a link's name
	Dir  string
	lock *os.File
}

// NewInstance makes the state directory where needed and a new instance in it.
func NewInstance(stateDir string) (*Instance, error) {
	var i *Instance
	err := WithLock(stateDir, func() (err error) {
		name := fmt.Sprintf("fw%06x", rand.Uint32N(1<<24))
		i = &Instance{Name: name, Dir: filepath.Join(stateDir, name)}
		if err := os.Mkdir(i.Dir, 0o755); err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(i.Dir, "log"), 0o755); err != nil {
			return err
		}
		if i.lock, err = os.OpenFile(filepath.Join(i.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
			return err
		}
		return unix.Flock(int(i.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	})
	if err != nil {
		return nil, fmt.Errorf("make the testbed's directory: %w", err)
	}
	return i, nil
}

// WithLock runs f while no other process makes, sweeps or numbers instances in stateDir, and
// removes the directory if nothing is in it afterwards.
func WithLock(stateDir string, f func() error) error {
	for {
		if err := ensureStateDir(stateDir); err != nil {
			return err
		}
		dir, err := os.Open(stateDir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another one has just removed it
		}
		if err != nil {
			return err
		}
		defer dir.Close()
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
			return fmt.Errorf("lock %s: %w", stateDir, err)
		}
		mine, err := dir.Stat()
		if err != nil {
			return err
		}
		if now, err := os.Stat(stateDir); err != nil || !os.SameFile(mine, now) {
			continue // the lock is on a directory that has been removed
		}
		defer os.Remove(stateDir) // fails while an instance is in it
		return f()
	}
}

// ensureStateDir makes a directory nobody else can write to, or refuses one that is not ours.
func ensureStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the testbeds' state directory: %w", err)
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); !ok || !fi.IsDir() || int(st.Uid) != os.Geteuid() ||
		fi.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf(
			"state directory %s is not a directory that only user %d can write to: remove it or set another", dir,
			os.Geteuid())
	}
	return nil
}

// Remove deletes the directory and lets go of the instance's lock; the caller holds that of the
// state directory.
func (i *Instance) Remove() error {
	err := os.RemoveAll(i.Dir)
	i.lock.Close()
	return err
}

// Sweep removes what instances in stateDir left whose process died without removing them, and says how many there were.
// Namespaces, mounts and processes died with it; this removes links, control groups and files.
func Sweep(stateDir string) (removed int, err error) {
	if _, err := os.Stat(stateDir); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	err = WithLock(stateDir, func() error {
		entries, err := os.ReadDir(stateDir)
		if err != nil {
			return fmt.Errorf("read the testbeds' state directory: %w", err)
		}
		var errs []error
		for _, e := range entries {
			i := &Instance{Name: e.Name(), Dir: filepath.Join(stateDir, e.Name())}
			if i.lock, err = os.OpenFile(filepath.Join(i.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
				errs = append(errs, err)
				continue
			}
			if unix.Flock(int(i.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
				i.lock.Close() // its owner lives
				continue
			}
			errs = append(errs, RemoveLink(Uplink(i.Name)), RemoveGroups(i.Name), i.Remove())
			removed++
		}
		return errors.Join(errs...)
	})
	return removed, err
}
