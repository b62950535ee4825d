package p9

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// Why a connection ended is reported without the names of Go's calls, whichever of them failed.
func TestWordsOfALostConnection(t *testing.T) {
	opened := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for want, cause := range map[string]error{
		"connection refused":   opened,
		"no such host":         &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host"}},
		"the server ended it":  io.EOF,
		"it was closed here":   &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed},
		"no answer in time":    fmt.Errorf("dial: %w", context.DeadlineExceeded),
		"broken pipe":          syscall.EPIPE,
		"what the server sent": errors.New("what the server sent"),
	} {
		err := &TransportError{"fwd7:564", cause}
		if got := err.Error(); got != "9P connection to fwd7:564: "+want {
			t.Errorf("%v: %q", cause, got)
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v looks like a server's answer", err)
		}
	}
}
