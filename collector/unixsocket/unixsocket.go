// Package unixsocket opens the Unix sockets on which fairway's programs answer. All of them use it, so it
// is in collector.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// ErrAnswers says that another process answers on a socket.
var ErrAnswers = errors.New("another process answers there")

// Listen takes the socket at path for those whom mode lets in. A socket that nobody answers on any more is replaced;
// any other file is left alone. The mode holds from the socket's first moment on.
func Listen(path string, mode fs.FileMode) (net.Listener, error) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return nil, ErrAnswers
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s is not a socket; it is left as it is", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	conf := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var inner error
		err := c.Control(func(fd uintptr) { inner = syscall.Fchmod(int(fd), uint32(mode.Perm())) })
		return errors.Join(err, inner)
	}}
	l, err := conf.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	// The umask may have taken more than it should.
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
