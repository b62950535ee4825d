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

	"fairway/cmd/lab/leash"
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
	addrs   [3]string // with lengths, on the machine's network, the front's, the back's; "" where it is on none
	source  string    // a client's: what it mounts at first, and how
	options string

	kernel *leash.Process // nil: not started yet
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
	argv := []string{"linux.uml", fmt.Sprintf("mem=%dM", g.memory()), "rootfstype=hostfs", "rootflags=/", "ro",
		"init=" + boot, "umid=" + g.name, "uml_dir=" + g.dir + "/", "con=null", "con0=null,fd:1", "ssl=null", "quiet"}
	for i, addr := range g.addrs {
		if addr != "" {
			argv = append(argv, fmt.Sprintf("eth%d=tuntap,%s", i, tap(g.name, i)))
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LD_PRELOAD=" + s.shim, "TMPDIR=/dev/shm", "HOME=" + g.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	var err error
	g.kernel, err = leash.Launch("the guest "+g.name, filepath.Join(s.inst.Dir, "log", g.name+".console.log"), cmd,
		func() error { return s.net.inside.Start(cmd) })
	return err
}

// kill ends the guest at once.
func (g *guest) kill() {
	if g.kernel != nil {
		g.kernel.Kill()
	}
}

// upWithin is how long a guest may take to come up on a machine with much other work; else a quarter of it.
const upWithin = 4 * time.Minute

// await waits until the guest has come up.
func (g *guest) await(ctx context.Context) error {
	return g.kernel.AwaitReady(ctx, upWithin, func(context.Context) error {
		_, err := os.Stat(filepath.Join(g.dir, "up"))
		return err
	})
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
	pids := []int{g.kernel.PID()}
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
