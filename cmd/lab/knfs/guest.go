package knfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// role is what a guest does.
type role int

const (
	compute role = iota
	gateway
	backEnd
)

// guest is one node of the site, a user-mode-linux.
type guest struct {
	name    string
	role    role
	dir     string    // its folder on the machine
	log     string    // what it prints there
	addrs   [3]string // with lengths, on the machine's network, the front's, the back's; "" where it is on none
	source  string    // a client's: what it mounts at first, and how
	options string

	cmd   *exec.Cmd
	ended chan struct{}
}

// memory is a guest's, in megabytes: pages that it never touches cost nothing.
func (g *guest) memory() int {
	if g.role == backEnd {
		return 256
	}
	return 128
}

// start boots the guest. It is the first process of a namespace of its own: all that it starts dies with it.
func (s *Site) startGuest(g *guest) error {
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return err
	}
	boot := filepath.Join(g.dir, "boot.sh")
	if err := errors.Join(os.RemoveAll(filepath.Join(g.dir, "up")), os.WriteFile(boot, []byte(s.boot(g)), 0o755),
		os.WriteFile(filepath.Join(g.dir, "hosts"), []byte(s.hosts()), 0o644)); err != nil {
		return err
	}
	g.log = filepath.Join(s.inst.Dir, "log", g.name+".console.log")
	log, err := os.OpenFile(g.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	argv := []string{"linux.uml", fmt.Sprintf("mem=%dM", g.memory()), "rootfstype=hostfs", "rootflags=/", "ro",
		"init=" + boot, "umid=" + g.name, "uml_dir=" + g.dir + "/", "con=null", "con0=null,fd:1", "ssl=null", "quiet"}
	for i, addr := range g.addrs {
		if addr != "" {
			argv = append(argv, fmt.Sprintf("eth%d=tuntap,%s", i, tap(g.name, i)))
		}
	}
	g.cmd = exec.Command(argv[0], argv[1:]...)
	g.cmd.Stdout, g.cmd.Stderr = log, log
	g.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LD_PRELOAD=" + s.shim, "TMPDIR=/dev/shm", "HOME=" + g.dir}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := s.net.inside.Start(g.cmd); err != nil {
		return fmt.Errorf("start the guest %s: %w", g.name, err)
	}
	g.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { // ends with the guest
		_ = cmd.Wait()
		close(ended)
	}(g.cmd, g.ended)
	return nil
}

// kill ends the guest at once.
func (g *guest) kill() {
	if g.cmd != nil {
		_ = g.cmd.Process.Kill()
		<-g.ended
	}
}

// await waits until the guest has come up.
func (g *guest) await(ctx context.Context) error {
	for {
		if _, err := os.Stat(filepath.Join(g.dir, "up")); err == nil {
			return nil
		}
		select {
		case <-g.ended:
			return fmt.Errorf("the guest %s ended before it was up; its console:\n%s", g.name, g.console())
		case <-ctx.Done():
			return fmt.Errorf("the guest %s is not up: %w; its console:\n%s", g.name, ctx.Err(), g.console())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// console is the end of what the guest printed.
func (g *guest) console() string {
	text, err := os.ReadFile(g.log)
	if err != nil {
		return err.Error()
	}
	const shown = 1500
	return string(text[max(0, len(text)-shown):])
}

func (g *guest) post(ctx context.Context, path, body string) (string, error) {
	addr, _, _ := strings.Cut(g.addrs[0], "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s:%d%s", addr, commandPort, path),
		strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Close = true // the next site's guest has the same address, and knows nothing of this connection
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %q: %s: %s", g.name, body, resp.Status, bytes.TrimSpace(out))
	}
	return string(out), err
}

// pids are a guest's processes on this machine: its kernel, and one for each of its address spaces.
func (g *guest) pids() []int {
	pids := []int{g.cmd.Process.Pid}
	for i := 0; i < len(pids); i++ {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pids[i]))
		for word := range strings.FieldsSeq(string(text)) {
			pid := 0
			if _, err := fmt.Sscan(word, &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// signal sends a signal to the guest's kernel.
func (g *guest) signal(sig unix.Signal) error { return g.cmd.Process.Signal(sig) }
