package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// privateRoot gives the calling thread a mount namespace and a root directory of its own in it:
// everything of the machine's, plus the mount point, plus the file system at exportDir.
func (c *Config) privateRoot(at string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w (is the machine a container without CAP_SYS_ADMIN?)", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("mount a root at %s: %w", at, err)
	}
	if err := bindTopFolders(at); err != nil {
		return err
	}
	export := filepath.Join(at, exportDir)
	if err := errors.Join(mkdirAll(filepath.Join(at, MountPoint)), mkdirAll(export)); err != nil {
		return err
	}
	if err := c.mountFilesystem(export); err != nil {
		return err
	}
	// pivot_root(".", "."): the old root ends up above the new one and is let go.
	if err := unix.Chdir(at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root to %s: %w", at, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// bindTopFolders shows every folder of / below at, with what is mounted there; links are copied.
func bindTopFolders(at string) error {
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		from, to := filepath.Join("/", e.Name()), filepath.Join(at, e.Name())
		switch {
		case from == MountPoint || from == exportDir:
		case e.Type() == os.ModeSymlink:
			target, err := os.Readlink(from)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, to); err != nil {
				return err
			}
		case e.IsDir():
			if err := os.Mkdir(to, 0o755); err != nil {
				return err
			}
			if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
				return fmt.Errorf("show %s in the nodes' root: %w", from, err)
			}
		}
	}
	return nil
}

// mountFilesystem puts the configured directory, or memory, at the export.
func (c *Config) mountFilesystem(export string) error {
	if c.Dir != "" {
		if err := unix.Mount(c.Dir, export, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("use %s as the file system: %w", c.Dir, err)
		}
		return nil
	}
	if err := unix.Mount("tmpfs", export, "tmpfs", 0, fmt.Sprintf("mode=1777,size=%d", c.SizeBytes)); err != nil {
		return fmt.Errorf("mount a file system of %d bytes in memory: %w", c.SizeBytes, err)
	}
	return nil
}

func mkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }
