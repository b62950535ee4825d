package mount

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

// attach mounts a file system that this process answers for. It returns the device its requests come from, and whether
// it is on top of a mount that was killed. Without root fusermount3 does it.
func attach(mountPoint, source string) (device int, onDead bool, err error) {
	options := fmt.Sprintf("max_read=%d", maxIO)
	var st unix.Stat_t
	if err = unix.Stat(mountPoint, &st); errors.Is(err, unix.ENOTCONN) {
		// What is below a mount that was killed must take no writes: the next one goes on top of it. fusermount3 mounts
		// on nothing that it cannot look at.
		onDead, st.Mode, err = true, unix.S_IFDIR, nil
		if os.Getuid() != 0 {
			err = detachNow(mountPoint)
		}
	}
	if err != nil {
		return -1, onDead, err
	}
	if os.Getuid() != 0 {
		device, err = attachAsUser(mountPoint, options+",subtype=fairway,fsname="+optionEscape.Replace(source))
		return device, onDead, err
	}
	device, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, onDead, fmt.Errorf("/dev/fuse: %w", err)
	}
	options += fmt.Sprintf(",allow_other,fd=%d,rootmode=%o,user_id=0,group_id=%d", device, st.Mode&unix.S_IFMT,
		os.Getgid())
	if err := unix.Mount(source, mountPoint, "fuse.fairway", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		unix.Close(device)
		return -1, onDead, err
	}
	return device, onDead, nil
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

// detachTries and detachPause are how often detach tries and for how long it waits first; each pause is twice as long
// as the one before.
const (
	detachTries = 6
	detachPause = 5 * time.Millisecond
)

// detach unmounts what attach has mounted; used says that files are open. The kernel may hold a file that has just been
// closed for some milliseconds more, and reports it later: it is tried again. Files that stay open may be those of
// another mount name space, of which the kernel takes no notice here: it is busy all the same, unless despite says that
// they do not count.
func detach(mountPoint string, used func() bool, despite bool) (err error) {
	pause := detachPause
	for try := 1; ; try++ {
		if err = syscall.EBUSY; !used() || despite && try == detachTries {
			err = detachOnce(mountPoint)
		}
		if !errors.Is(err, syscall.EBUSY) || try == detachTries {
			return err
		}
		time.Sleep(pause)
		pause *= 2
	}
}

// detachNow takes the mount out of the name space while programs use it, and ends what they wait for.
func detachNow(mountPoint string) error {
	if os.Getuid() == 0 {
		return unix.Unmount(mountPoint, unix.MNT_DETACH|unix.MNT_FORCE)
	}
	return fusermount("-u", "-z", "--", mountPoint)
}

// dropDead takes the mounts that were killed, and that a later one was put on top of, out of the name space.
func dropDead(mountPoint string) {
	for errors.Is(unix.Access(mountPoint, unix.F_OK), unix.ENOTCONN) && detachNow(mountPoint) == nil {
	}
}

func detachOnce(mountPoint string) error {
	if os.Getuid() == 0 {
		return unix.Unmount(mountPoint, 0)
	}
	return fusermount("-u", "--", mountPoint)
}

func fusermount(args ...string) error {
	out, err := exec.Command("fusermount3", args...).CombinedOutput()
	switch {
	case err == nil:
		return nil
	case strings.Contains(string(out), "busy"):
		return fmt.Errorf("fusermount3: %w", syscall.EBUSY)
	}
	return fmt.Errorf("fusermount3: %w: %s", err, strings.TrimSpace(string(out)))
}
