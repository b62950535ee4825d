package endtoend

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/programs"
	"fairway/cmd/lab/testbed"
)

// patience bounds each wait for something to appear; it says that something hangs, not that it is slow.
const patience = 4 * time.Minute

// readingTime is what a person takes to read a question; an answer before that counts as a slip.
const readingTime = time.Second

// need skips the test when something is missing, and fails it where CI says that it must be there.
func need(t *testing.T, missing ...string) {
	t.Helper()
	if len(missing) == 0 {
		return
	}
	if os.Getenv("CI") == "true" && os.Geteuid() == 0 {
		t.Fatalf("CI=true, but not installed: %s", strings.Join(missing, " "))
	}
	t.Skipf("skipped: needs %s", strings.Join(missing, ", "))
}

// bin is where the programs are once need has asked for them.
var bin string

var release = sync.OnceValue(func() (err error) {
	bin, err = programs.Dir("fairway", "fairway-agent", "fairway-demo", "fairway-mount", "fairway-queue", "fairwayd")
	return err
})

// prepare has what a release holds at hand.
func prepare(t *testing.T) {
	t.Helper()
	if err := release(); err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

// demo is a running demo in a terminal of its own.
type demo struct {
	*terminal
	mark   string // in the environment of everything it starts
	tmp    string // its TMPDIR
	url    string // for browsers
	socket string // for commands
}

var (
	browserLine = regexp.MustCompile(`browser: (http://\S+?)/ `)
	socketLine  = regexp.MustCompile(`--addr unix:(\S+) `)
)

// startDemo starts the demo and waits for the console on its first second.
func startDemo(t *testing.T, flags ...string) *demo {
	t.Helper()
	prepare(t)
	d := &demo{mark: "FAIRWAY_TEST_MARK=" + rand.Text(), tmp: t.TempDir()}
	d.terminal = openTerminal(t, d.mark, "TMPDIR="+d.tmp)
	d.run(fmt.Sprintf("%s --http 127.0.0.1:0 --slow-after 0 %s; echo ended with $?",
		filepath.Join(bin, "fairway-demo"), strings.Join(flags, " ")))
	printed := d.log(browserLine)
	d.url = printed[1]
	d.socket = d.log(socketLine)[1]
	return d
}

// processes lists the living processes that carry the demo's mark.
func (d *demo) processes() (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, p := range all {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), d.mark) {
			pids = append(pids, filepath.Base(filepath.Dir(p)))
		}
	}
	return pids
}

// remains lists what there is of the demo on this machine: files, the link to its fabric, mounts.
func (d *demo) remains() (left []string) {
	dir := filepath.Dir(filepath.Dir(d.socket)) // the testbed's
	if filepath.Base(filepath.Dir(dir)) != "fairway-testbed" {
		dir = filepath.Dir(d.socket)
	}
	name := filepath.Base(dir)
	if _, err := os.Stat(dir); err == nil {
		left = append(left, dir)
	}
	files, _ := filepath.Glob(filepath.Join(d.tmp, "*"))
	left = append(left, files...)
	for _, spaces := range []string{"/run/netns", "/etc/netns"} {
		list, _ := filepath.Glob(filepath.Join(spaces, name+"*"))
		left = append(left, list...)
	}
	if _, err := net.InterfaceByName(name + ".up"); err == nil {
		left = append(left, "link "+name+".up")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, name) {
			left = append(left, "mount "+line)
		}
	}
	return left
}

// ends presses a key and checks that the demo ends well and that nothing of it stays.
func (d *demo) ends(key string, atLeast int) {
	d.t.Helper()
	if n := len(d.processes()); n < atLeast {
		d.t.Errorf("only %d processes seen of the demo: the test looks at the wrong thing", n)
	}
	if len(d.remains()) == 0 {
		d.t.Error("no file of the running demo seen: the test looks at the wrong thing")
	}
	d.keys(key)
	d.shows("ended with 0")
	d.close()
	if left := d.processes(); len(left) > 0 {
		d.t.Errorf("processes left: %v", left)
	}
	if left := d.remains(); len(left) > 0 {
		d.t.Errorf("left on the machine: %q", left)
	}
}

// TestOperatorMovesNodes is the first day of an operator: he sees eight forwarders at work, moves one
// forwarder's compute nodes to another by keys, and sees them there, in the terminal and the browser.
func TestOperatorMovesNodes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root for namespaces, mounts and Slurm")
	}
	need(t, append(testbed.Missing(testbed.Config{Slurm: true}), missingTools("tmux", "chromium")...)...)
	d := startDemo(t)
	d.shows("moved", "fwd007")
	d.seesBandwidth(8, "fwd000", "fwd001", "fwd002", "fwd003", "fwd004", "fwd006") // of the jobs that move data
	page := openBrowser(t, d.url+"/overview?view=fwd")
	page.seesBandwidth(8)

	d.keys(":")
	d.types("fwd000")
	d.keys("Enter")
	d.shows("fwd000", "serves 2 compute nodes", "cn000", "cn001")
	d.keys("p")
	d.shows("propose a remap from fwd000", "2 compute nodes leave fwd000")
	d.keys("Enter")
	to := d.match(regexp.MustCompile(`Why to (fwd\d+)`))[1]
	d.types("the disk array is being rebuilt")
	d.keys("Enter")
	d.shows("P-000001", "PROPOSED", "fwd000 -> "+to)
	page.open(d.url + "/plans/P-000001")
	page.says("proposed", "fwd000", to)
	d.keys("Tab")
	d.types("agreed with the storage team")
	d.keys("Enter", "A")
	d.shows("A again does it")
	time.Sleep(readingTime)
	d.keys("A")
	d.shows("VERIFIED", "verified 2 of 2")
	page.says("verified")

	d.keys(":")
	d.types(to)
	d.keys("Enter")
	d.shows("serves ", "compute nodes", "cn000", "cn001") // beside those that it had, which is as the jobs fell
	page.open(d.url + "/forwarders/" + to)
	page.says(" compute nodes", "cn000", "cn001")
	page.open(d.url + "/forwarders/fwd000")
	page.says("0 compute nodes")
	page.close()
	d.ends("C-c", 8+16)
}

// TestSimulatedMachine looks at the simulated machine of full size: both faces, and the word that it is
// no measurement.
func TestSimulatedMachine(t *testing.T) {
	need(t, missingTools("tmux", "chromium")...)
	d := startDemo(t, "--sim")
	d.shows("SIMULATED")
	page := openBrowser(t, d.url+"/overview?view=fwd")
	page.says("240 forwarders", "simulated")
	page.close()
	d.keys("q")
	d.shows("q again ends the demo")
	time.Sleep(readingTime)
	d.ends("q", 2)
}
