package fwdmount

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attach mounts a file system that this process answers for. It returns the device its requests come
// from. Without root fusermount3 does it.
func attach(mountPoint, source string) (device int, err error) {
	options := fmt.Sprintf("default_permissions,max_read=%d", maxIO)
	if os.Getuid() != 0 {
		return attachAsUser(mountPoint, options+",subtype=fairway,fsname="+optionEscape.Replace(source))
	}
	var st unix.Stat_t
	if err := unix.Stat(mountPoint, &st); err != nil {
		return -1, err
	}
	device, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("/dev/fuse: %w", err)
	}
	options += fmt.Sprintf(",allow_other,fd=%d,rootmode=%o,user_id=0,group_id=%d", device, st.Mode&unix.S_IFMT, os.Getgid())
	if err := unix.Mount(source, mountPoint, "fuse.fairway", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		unix.Close(device)
		return -1, err
	}
	return device, nil
}

// optionEscape protects what separates mount options.
var optionEscape = strings.NewReplacer(`\`, `\\`, `,`, `\,`)

// attachAsUser has fusermount3 mount; it sends the device over a socket.
func attachAsUser(mountPoint, options string) (device int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("a pair of sockets: %w", err)
	}
	mine, its := os.NewFile(uintptr(pair[0]), "from fusermount3"), os.NewFile(uintptr(pair[1]), "to fairway-mount")
	defer mine.Close()
	cmd := exec.Command("fusermount3", "-o", options, "--", mountPoint)
	cmd.Env = append(os.Environ(), "_FUSE_COMMFD=3")
	cmd.ExtraFiles = []*os.File{its}
	out, err := cmd.CombinedOutput()
	its.Close()
	if err != nil {
		return -1, fmt.Errorf("fusermount3: %w: %s", err, strings.TrimSpace(string(out)))
	}
	conn, err := net.FileConn(mine)
	if err != nil {
		return -1, err
	}
	defer conn.Close()
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return -1, fmt.Errorf("fusermount3's answer: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(errors.New("fusermount3 sent no device"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errors.New("fusermount3 sent no device"), err)
	}
	unix.CloseOnExec(fds[0])
	return fds[0], nil
}

// detach unmounts what attach has mounted. The kernel may hold a file that has just been closed for
// some milliseconds more: it is tried again.
func detach(mountPoint string) (err error) {
	for pause := 5 * time.Millisecond; pause < 200*time.Millisecond; pause *= 2 {
		if err = detachOnce(mountPoint); !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(pause)
	}
	return err
}

func detachOnce(mountPoint string) error {
	if os.Getuid() == 0 {
		return unix.Unmount(mountPoint, 0)
	}
	out, err := exec.Command("fusermount3", "-u", "--", mountPoint).CombinedOutput()
	switch {
	case err == nil:
		return nil
	case strings.Contains(string(out), "busy"):
		return fmt.Errorf("fusermount3: %w", syscall.EBUSY)
	}
	return fmt.Errorf("fusermount3: %w: %s", err, strings.TrimSpace(string(out)))
}
