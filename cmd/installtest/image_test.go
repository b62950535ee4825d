package installtest

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// makeImage builds the image on a base of Debian's own packages under the name that the file for images wants, writes
// settings in a container of it as the file says, prints the authority's certificate and runs what the image starts,
// until its input ends: none of buildah's programs has that input, they leave it in a state in which a read fails. All
// of it is in a mount namespace of its own, where buildah leaves what it has mounted.
const makeImage = `set -e
work=$1 packages=$2 base=$3 port=$4
b="buildah --root $work/store --runroot $work/run"
export BUILDAH_ISOLATION=chroot TMPDIR=$work
exec 3>&1 4<&0 >$work/log 2>&1 </dev/null
# mmdebstrap gives its shell the number of the next free file, which must have one digit.
mmdebstrap --mode=root --variant=minbase bookworm $work/base.tar 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
c=$($b from scratch)
$b add $c $work/base.tar /
$b commit $c $base
$b build --pull-never -t fairwayd -f $packages/Containerfile $packages
c=$($b from --pull-never localhost/fairwayd)
start=$($b inspect --type image --format '{{index .OCIv1.Config.Entrypoint 0}}' localhost/fairwayd)
with=$($b inspect --type image --format '{{index .OCIv1.Config.Cmd 0}}' localhost/fairwayd)
$b run --user root $c -- $start init --layer diod --forwarders fwd0 --compute 'cn[0-1]' --port $port
$b run $c -- cat /etc/fairway/tls/ca.pem >&3
exec 3>&- # before the daemon has it, too
$b run $c -- $start $with 4<&- &
read until_the_test_ends <&4 || true
$b run --user root $c -- fairway doctor || true
kill $!
wait $! || true # a signal ended it
`

// TestImage builds the image and asks a daemon that runs in it. It fetches some 100 MB of Debian's packages.
func TestImage(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: builds everything once more and fetches a system: make prove")
	}
	need(t, "buildah", "mmdebstrap", "dpkg", "make", "unshare")
	packages(t, "deb")
	text, err := os.ReadFile("../../packaging/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, base, _ := strings.Cut(string(text), "\nFROM ")
	base, _, _ = strings.Cut(base, "\n")
	work, port := t.TempDir(), freePort(t)
	c := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", makeImage, "sh", work,
		filepath.Join(made, "packages"), base, port)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pem, err := io.ReadAll(bufio.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	go func() {
		defer end()
		err = c.Wait()
	}()
	trusted := x509.NewCertPool()
	answer := "the image's daemon was not started"
	if trusted.AppendCertsFromPEM(pem) {
		answer = askUntil(ended, "https://127.0.0.1:"+port+"/readyz", trusted)
	}
	in.Close()
	<-ended.Done()
	log, _ := os.ReadFile(filepath.Join(work, "log"))
	if !strings.Contains(answer, `"ready":true`) || err != nil {
		t.Errorf("the daemon answers %s; the script ended with %v:\n%s", answer, err, log[max(0, len(log)-4000):])
	}
	if !strings.Contains(string(log), "daemon      answers at unix:/run/fairway/fairwayd.sock") {
		t.Errorf("'fairway doctor' in the container does not find the daemon:\n%s", log[max(0, len(log)-4000):])
	}
}

// freePort is a port of this host that nobody has now.
func freePort(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	_, port, _ := net.SplitHostPort(free.Addr().String())
	return port
}

// askUntil asks a page until it answers or who answers has ended, for as long as a busy machine may take, and returns
// the answer or what was wrong at last.
func askUntil(ctx context.Context, url string, trusted *x509.CertPool) (answer string) {
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	for end := time.Now().Add(5 * time.Minute); ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		res, err := client.Get(url)
		if err != nil {
			answer = err.Error()
			continue
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if answer = fmt.Sprintf("%s %s (%v)", res.Status, text, err); res.StatusCode == http.StatusOK {
			return answer
		}
	}
	return answer
}

// TestContainerFile: what the file for images copies, starts and names is what the packages bring.
func TestContainerFile(t *testing.T) {
	need(t, "dpkg", "make")
	debs := packages(t, "deb")
	text, err := os.ReadFile(filepath.Join(made, "packages", "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		if word, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok && word != "#" {
			steps[word] = rest
		}
	}
	copied := strings.Fields(steps["COPY"])
	for _, pattern := range copied[:len(copied)-1] {
		found, err := filepath.Glob(filepath.Join(made, "packages", pattern))
		if err != nil || len(found) != 1 || !slices.Contains(debs, found[0]) {
			t.Errorf("COPY %s takes %v, want one package", pattern, found)
		}
		if !strings.Contains(steps["RUN"], "/tmp/"+pattern) {
			t.Errorf("RUN does not install %s: %s", pattern, steps["RUN"])
		}
	}
	unit, err := os.ReadFile("../../packaging/fairwayd.service")
	if err != nil {
		t.Fatal(err)
	}
	program, argument := strings.Trim(steps["ENTRYPOINT"], `["]`), strings.Trim(steps["CMD"], `["]`)
	for what, want := range map[string]string{"ExecStart": program + " " + argument, "User": steps["USER"]} {
		if !strings.Contains(string(unit), "\n"+what+"="+want) {
			t.Errorf("the image has %s %q, the unit not", what, want)
		}
	}
	if installed[program] != 0o755 {
		t.Errorf("ENTRYPOINT %s is in no package", program)
	}
	for _, dir := range []string{"/etc/fairway", "/var/lib/fairway"} {
		if !strings.Contains(steps["VOLUME"], `"`+dir+`"`) {
			t.Errorf("VOLUME lacks %s: %s", dir, steps["VOLUME"])
		}
	}
	if help := run(t, "../../bin/fairwayd", "init", "--help"); !strings.Contains(help, steps["EXPOSE"]) {
		t.Errorf("EXPOSE %s is not the port of init:\n%s", steps["EXPOSE"], help)
	}
}
