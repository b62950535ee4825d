package installtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
)

// head is the testbed's node that is the daemon's host.
const head topology.NodeID = "cn4"

// walkEnv names the folder that the test and the programs that stand in for ssh, the mail server and curl share.
const walkEnv = "FAIRWAY_WALK"

// helper runs this program as what stands in for another one on a node: by the name that it is called by.
func helper() (ran bool) {
	dir := os.Getenv(walkEnv)
	if dir == "" {
		return false
	}
	var err error
	code := 0
	switch filepath.Base(os.Args[0]) {
	case "ssh":
		code, err = sshClient(dir, os.Args[1], strings.Join(os.Args[2:], " "))
	case "smtpd":
		err = smtpServer(dir)
	case "get":
		var res *http.Response
		if res, err = http.Get(os.Args[1]); err == nil {
			_, err = io.Copy(os.Stdout, res.Body)
		}
	default:
		return false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 255
	}
	os.Exit(code)
	return true
}

// sshClient has the test run a command on another node, with this one's standard input.
func sshClient(dir, node, command string) (code int, err error) {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "ssh.sock"))
	}}}
	req, err := http.NewRequest(http.MethodPost, "http://unix/"+node, os.Stdin)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Command", command)
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(os.Stdout, res.Body); err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK {
		return 1, nil
	}
	return 0, nil
}

// smtpServer is a mail server that keeps each mail in a file.
func smtpServer(dir string) error {
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return mailbox(dir), nil }))
	s.Addr, s.Domain, s.ReadTimeout = "127.0.0.1:25", "fairway.site", time.Minute
	return s.ListenAndServe()
}

type mailbox string

func (mailbox) Mail(string, *smtp.MailOptions) error { return nil }
func (mailbox) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (mailbox) Reset()                               {}
func (mailbox) Logout() error                        { return nil }
func (m mailbox) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(string(m), "mail"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(text)
	return err
}

// systemctl does what systemd would with a unit: its user, its directories, none of root's power.
const systemctl = `#!/bin/sh
for unit; do :; done
unit=${unit%.service}
file=/usr/lib/systemd/system/$unit.service
of() { sed -n "s/^$1=//p" "$file" | tail -n 1; }
case "$1" in
stop)
	kill "$(cat /run/$unit.pid)"
	exit ;;
enable) ;;
*) exit 0 ;;
esac
[ -e "$(of ConditionPathExists)" ] || { echo "$unit: its condition does not hold" >&2; exit 1; }
user=$(of User)
state=$(of StateDirectory) run=$(of RuntimeDirectory)
[ -z "$state" ] || install -d -o "${user:-root}" -g "${user:-root}" -m 700 "/var/lib/$state"
[ -z "$run" ] || install -d -o "${user:-root}" -g "${user:-root}" -m 755 "/run/$run"
caps=-all
setsid setpriv ${user:+--reuid="$user" --regid="$user" --clear-groups} \
	--bounding-set=$caps --inh-caps=$caps --no-new-privs \
	$(of ExecStart) >"$FAIRWAY_WALK/$unit.$(hostname).log" 2>&1 </dev/null &
echo $! >/run/$unit.pid
[ -z "$run" ] || for i in $(seq 1200); do [ ! -S "/run/$run/$unit.sock" ] || break; sleep 0.1; done
`

// ownRoot gives a node a system of its own: what is written below /usr, /etc and /var is that node's, and goes with it.
const ownRoot = `set -e
mount -t tmpfs none /mnt
cp /etc/hosts /etc/nsswitch.conf /mnt
for d in usr etc var; do
	mkdir /mnt/$d /mnt/work-$d
	mount -t overlay overlay -o lowerdir=/$d,upperdir=/mnt/$d,workdir=/mnt/work-$d /$d
done
cp /mnt/hosts /mnt/nsswitch.conf /etc
mkdir /mnt/testbed
mount --bind /run/fairway-testbed /mnt/testbed
mount -t tmpfs none /run
mkdir /run/fairway-testbed /run/fairway-mount
mount --bind /mnt/testbed /run/fairway-testbed
rm -rf /etc/fairway /var/lib/fairway /var/lib/fairway-agent
`

// site is a testbed whose nodes have systems of their own.
type site struct {
	t   *testing.T
	tb  *testbed.Testbed
	dir string
}

// startSite starts two forwarders, four compute nodes and the daemon's host, with an Alertmanager and a mail server
// there.
func startSite(t *testing.T, layer testbed.Layer) *site {
	t.Helper()
	cfg := testbed.Config{Layer: layer, Forwarders: 2, ComputeNodes: 5, ForwarderName: "fwd%d", ComputeName: "cn%d",
		MountProgram: "../../bin/fairway-mount",
		Mapping:      topology.Mapping{"cn0": "fwd0", "cn1": "fwd0", "cn2": "fwd1", "cn3": "fwd1", head: "fwd0"}}
	var err error
	if cfg.MountProgram, err = filepath.Abs(cfg.MountProgram); err != nil {
		t.Fatal(err)
	}
	if missing := testbed.Missing(cfg); len(missing) > 0 {
		t.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	s := &site{t: t}
	if s.dir, err = os.MkdirTemp("", "walk"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(s.dir) })
	s.programs()
	if s.tb, err = testbed.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.tb.Close(); err != nil {
			t.Error(err)
		}
	})
	hosts := filepath.Join(filepath.Dir(s.tb.LogDir()), "etc", "hosts")
	text, err := os.ReadFile(hosts)
	if err != nil {
		t.Fatal(err)
	}
	more := bytes.ReplaceAll(text, []byte(" "+string(head)), []byte(" "+string(head)+" fairway.site"))
	if err := os.WriteFile(hosts, more, 0o644); err != nil {
		t.Fatal(err)
	}
	const overlays = `mkdir /mnt/t && mount -t tmpfs none /mnt/t && mkdir /mnt/t/up /mnt/t/work &&
		mount -t overlay overlay -o lowerdir=/usr,upperdir=/mnt/t/up,workdir=/mnt/t/work /mnt/t/up; code=$?
		umount /mnt/t/up /mnt/t; rmdir /mnt/t; exit $code`
	if out, err := s.try(t.Context(), head, overlays); err != nil {
		t.Skipf("skipped: this system has no overlay mounts over /usr: %v: %s", err, out)
	}
	// The daemon's host is a client of no forwarder.
	s.on(head, "umount /pfs")
	for _, n := range s.tb.Machine().Nodes {
		s.on(n.ID, ownRoot)
		if n.Role == topology.Compute {
			s.on(n.ID, "ln -s "+s.tb.MountSocket(n.ID)+" /run/fairway-mount/control")
		} else if layer == testbed.NFS {
			s.on(n.ID, "mkdir /run/dbus && ln -s "+s.tb.BusSocket(n.ID)+" /run/dbus/system_bus_socket")
		}
	}
	s.serveSSH()
	s.on(head, "hostname fairway.site; setsid smtpd >/dev/null 2>$"+walkEnv+"/smtpd.log </dev/null &")
	s.on(head, `cat >/run/am.yml <<END
route: {receiver: none, group_wait: 0s}
receivers: [{name: none}]
END
setsid prometheus-alertmanager --config.file=/run/am.yml --storage.path=/run/am --cluster.listen-address= \
	--web.listen-address=127.0.0.1:9093 >$`+walkEnv+`/am.log 2>&1 </dev/null &`)
	return s
}

// programs puts what stands in for the site's own programs into a folder.
func (s *site) programs() {
	bin := filepath.Join(s.dir, "bin")
	self, err := os.Executable()
	if err == nil {
		err = os.Mkdir(bin, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(bin, "systemctl"), []byte(systemctl), 0o755)
	}
	for _, name := range []string{"ssh", "smtpd", "get"} {
		if err == nil {
			err = os.Symlink(self, filepath.Join(bin, name))
		}
	}
	if err == nil {
		err = os.Chmod(s.dir, 0o755)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// try runs a shell's command on a node.
func (s *site) try(ctx context.Context, node topology.NodeID, command string) (string, error) {
	out, err := s.tb.Exec(ctx, node, "env", walkEnv+"="+s.dir, "PATH="+filepath.Join(s.dir, "bin")+
		":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", command)
	return string(out), err
}

// on is try where it must not fail.
func (s *site) on(node topology.NodeID, command string) string {
	s.t.Helper()
	out, err := s.try(s.t.Context(), node, command)
	if err != nil {
		s.logs()
		s.t.Fatalf("%s# %s\n%v\n%s", node, command, err, out)
	}
	return out
}

// until repeats a command on a node until its output has a text: something hangs when it never does.
func (s *site) until(node topology.NodeID, command, want string) string {
	s.t.Helper()
	var out string
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if out, _ = s.try(s.t.Context(), node, command); strings.Contains(out, want) {
			return out
		}
	}
	s.logs()
	s.t.Fatalf("%s# %s\nnever says %q:\n%s", node, command, want, out)
	return ""
}

func (s *site) logs() {
	found, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
	for _, path := range found {
		text, _ := os.ReadFile(path)
		s.t.Logf("%s ends:\n%s", filepath.Base(path), text[max(0, len(text)-3000):])
	}
}

// serveSSH runs commands for the nodes' ssh.
func (s *site) serveSSH() {
	l, err := net.Listen("unix", filepath.Join(s.dir, "ssh.sock"))
	if err != nil {
		s.t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := os.CreateTemp(s.dir, "stdin")
		if err == nil {
			_, err = io.Copy(in, r.Body)
			in.Close()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer os.Remove(in.Name())
		out, err := s.try(r.Context(), topology.NodeID(strings.Trim(r.URL.Path, "/")),
			"exec <"+in.Name()+"; "+r.Header.Get("Command"))
		if err != nil {
			http.Error(w, out+err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, out)
	})}
	go server.Serve(l)
	s.t.Cleanup(func() { server.Close() })
}

// tool says whether a program is installed.
func tool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("skipped: %s is not installed", name)
	}
}
