package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/driver"
	"fairway/remap/journal"
)

const patience = time.Minute

// notes remembers what it took.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) Take(b []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, string(b))
	return nil
}

func (n *notes) Standing() [][]byte { return nil }

// daemon is a desk and its node, in a directory that outlives them.
type daemon struct {
	dir   string
	conf  Settings
	desk  *desk.Desk
	node  *Node
	notes *notes
}

// three lists daemons on free ports, each with its directory.
func three(t *testing.T) (all []*daemon) {
	t.Helper()
	var list []Daemon
	for _, name := range []string{"a", "b", "c"} {
		list = append(list, Daemon{Name: name, Addr: freePort(t)})
	}
	for _, d := range list {
		conf := Settings{Name: d.Name, SecretFile: "s", Daemons: list}
		if err := conf.Validate(); err != nil {
			t.Fatal(err)
		}
		all = append(all, &daemon{dir: t.TempDir(), conf: conf})
	}
	return all
}

// freePort is an address of this host that nobody listens at, below the ports that outgoing connections take: a daemon
// that is started again finds it free.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// ahead is by how much the daemon's clock is wrong: they are a minute apart.
func (d *daemon) ahead() time.Duration { return time.Duration(int(d.conf.Name[0])-'b') * time.Minute }

func (d *daemon) journal() string { return filepath.Join(d.dir, "journal") }

func testLog() *slog.Logger {
	if os.Getenv("FAIRWAY_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

func (d *daemon) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", d.conf.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if d.node, err = New(Config{Settings: d.conf, Dir: filepath.Join(d.dir, "cluster"), Secret: "secret", Listener: l,
		Log: testLog().With("daemon", d.conf.Name),
		Now: func() time.Time { return time.Now().Add(d.ahead()) }}); err != nil {
		t.Fatal(err)
	}
	if d.desk, err = openDesk(d.journal(), d.node); err != nil {
		t.Fatal(err)
	}
	d.notes = &notes{}
	if err := d.node.Start(d.desk, d.notes); err != nil {
		t.Fatal(err)
	}
}

func openDesk(path string, t desk.Together) (*desk.Desk, error) {
	s := &remap.Situation{Machine: &topology.Machine{}, Index: topology.NewIndex(&topology.Machine{})}
	d, _, err := desk.Open(desk.Config{Settings: desk.DefaultSettings(), Path: path, Driver: driver.Unassigned{},
		Situation: func() *remap.Situation { return s }, Together: t, Log: testLog()})
	return d, err
}

func (d *daemon) close(t *testing.T) {
	t.Helper()
	if d.node == nil {
		return
	}
	if err := errors.Join(d.node.Close(), d.desk.Close()); err != nil {
		t.Error(err)
	}
	d.node = nil
}

func finding(i int) []anomaly.Change {
	return []anomaly.Change{{At: time.Now().UTC(), Why: "test",
		Finding: anomaly.Finding{ID: fmt.Sprintf("F-%d", i), Node: "fwd1", State: anomaly.Confirmed}}}
}

// leader waits until one of the daemons leads.
func leader(t *testing.T, all []*daemon) *daemon {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, d := range all {
			if d.node != nil && d.node.Term() > 0 && d.desk.Leads() {
				return d
			}
		}
	}
	t.Fatal("no daemon leads")
	return nil
}

// record records finding i on whoever leads; one that may or may not have been taken is recorded again.
func record(t *testing.T, all []*daemon, i int) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		l := leader(t, all)
		f := finding(i)
		f[0].At = f[0].At.Add(l.ahead())
		if err := l.desk.RecordFindings(context.Background(), f); err == nil {
			return
		}
	}
	t.Fatal("nobody records")
}

// agree waits until every open daemon's journal ends alike, and compares the files.
func agree(t *testing.T, all []*daemon) journal.Head {
	t.Helper()
	want := leader(t, all).desk.Head()
	for _, d := range all {
		for end := time.Now().Add(patience); d.node != nil && d.desk.Head() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s ends at %+v, the leader at %+v; %+v", d.conf.Name, d.desk.Head(), want, d.node.Status())
			}
		}
	}
	var text string
	for _, d := range all {
		if d.node == nil {
			continue
		}
		b, err := os.ReadFile(d.journal())
		if err != nil {
			t.Fatal(err)
		}
		if text == "" {
			text = string(b)
		}
		if string(b) != text {
			t.Errorf("the journal of %s differs", d.conf.Name)
		}
		if _, err := journal.Verify(d.journal()); err != nil {
			t.Error(err)
		}
	}
	return want
}

// TestAJournalOfThree: the first daemon's journal becomes everybody's, each leader that goes is followed by another,
// and one that was away has everything afterwards.
func TestAJournalOfThree(t *testing.T) {
	t.Parallel()
	all := three(t)
	before, err := openDesk(all[0].journal(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := before.RecordFindings(t.Context(), finding(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		d.open(t)
		defer d.close(t)
	}
	n := 5
	for range 4 {
		record(t, all, n)
		record(t, all, n+1)
		n += 2
		gone := leader(t, all)
		gone.close(t)
		record(t, all, n)
		n++
		agree(t, all)
		gone.open(t)
		agree(t, all)
	}
	if got := agree(t, all).Records; got < uint64(n) {
		t.Errorf("%d records, want at least %d", got, n)
	}
	follower := all[0]
	if follower == leader(t, all) {
		follower = all[1]
	}
	if err := follower.desk.RecordFindings(t.Context(), finding(99)); !errors.Is(err, remap.ErrNotLeading) {
		t.Errorf("a follower records: %v", err)
	}
}

// TestAnotherHistoryIsRefusedByName: a daemon whose journal is not the cluster's takes no part, and both sides name it.
func TestAnotherHistoryIsRefusedByName(t *testing.T) {
	t.Parallel()
	all := three(t)
	other, err := openDesk(all[2].journal(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.RecordFindings(t.Context(), finding(77)); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		d.open(t)
		defer d.close(t)
	}
	for i := range 3 {
		record(t, all, i)
	}
	agree(t, all[:2])
	says := func(d *daemon) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			s := d.node.Status()
			text := s.Notice(time.Now())
			if strings.Contains(text, "another journal's history") && strings.Contains(text, "c has") {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s says only %q", d.conf.Name, text)
			}
		}
	}
	says(leader(t, all))
	if got := all[2].desk.Head().Records; got != 1 {
		t.Errorf("the other journal has %d records, want its 1", got)
	}
}

// TestAMinorityChangesNothing: a daemon that reaches no other records nothing and says so.
func TestAMinorityChangesNothing(t *testing.T) {
	t.Parallel()
	all := three(t)
	for _, d := range all {
		d.open(t)
		defer d.close(t)
	}
	record(t, all, 1)
	last := leader(t, all)
	for _, d := range all {
		if d != last {
			d.close(t)
		}
	}
	if err := last.desk.RecordFindings(t.Context(), finding(2)); !errors.Is(err, remap.ErrNotLeading) {
		t.Errorf("a minority records: %v", err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s := last.node.Status()
		if text := s.Notice(time.Now()); strings.Contains(text, "no leader") &&
			strings.Contains(text, "nothing can be changed") {
			break
		} else if time.Now().After(end) {
			t.Fatalf("it says %q", text)
		}
	}
}

// TestAStrangerIsNotADaemon: without the secret nobody gets in, no daemon speaks in another one's name, a caller speaks
// with none but whom it means to reach, and what a stranger says is shown nowhere.
func TestAStrangerIsNotADaemon(t *testing.T) {
	t.Parallel()
	all := three(t)
	all[0].open(t)
	defer all[0].close(t)
	addr, long := all[0].conf.Addr(), strings.Repeat("n", 64)
	for _, c := range []struct{ secret, proves, says, means, err string }{
		{"guessed", "b", "b", "a", "secret_file"},
		{"secret", "b", "b", "c", "secret_file"}, // another daemon than is meant answers
		{"secret", "b", "c", "a", "calls itself"},
		{"secret", long, long, "a", "not in the list"},
		{"secret", "a", "a", "a", "not in the list"}, // itself
		{"secret", "b", "b", "a", ""},
	} {
		id, err := newIdentity(c.secret, c.proves)
		if err != nil {
			t.Fatal(err)
		}
		d := &peers{identity: id, self: func() hello { return hello{Name: c.says} }, log: testLog(),
			nameAt: func(string) string { return c.means },
			known:  func(string) bool { return true }, fits: func(*hello) error { return nil },
			noted: func(string, error) {}}
		_, _, err = d.dial(t.Context(), addr, forHTTP)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v gets %v", c, err)
		}
	}
	if s := all[0].node.Status(); len(s.Refused) > 0 {
		t.Errorf("the screens say %q", s.Refused)
	}
}

// TestADaemonThatWasAwayGetsASnapshot: what the log keeps no more comes as a snapshot, onto a journal that has the
// beginning, onto one that has nothing, and after a restart onto one that has all.
func TestADaemonThatWasAwayGetsASnapshot(t *testing.T) {
	t.Parallel()
	all := three(t)
	for _, d := range all[:2] {
		d.open(t)
		defer d.close(t)
	}
	away := all[2]
	for round, lost := range []bool{false, false, true} {
		for i := range 20 {
			record(t, all, 100*round+i)
		}
		agree(t, all[:2])
		for _, d := range all[:2] {
			conf := d.node.raft.ReloadableConfig()
			conf.TrailingLogs = 0
			if err := d.node.raft.ReloadConfig(conf); err != nil {
				t.Fatal(err)
			}
			if err := d.node.raft.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
		}
		if lost {
			for _, path := range []string{away.journal(), filepath.Join(away.dir, "cluster")} {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		away.open(t)
		agree(t, all)
		away.close(t)
	}
	for _, d := range all[:2] { // they begin with their own snapshots
		d.close(t)
		d.open(t)
	}
	record(t, all, 999)
	agree(t, all[:2])
}

// TestClocksApartAreSeen: each daemon says by how much the others' clocks differ from its own.
func TestClocksApartAreSeen(t *testing.T) {
	all := three(t)
	for _, d := range all {
		d.open(t)
		defer d.close(t)
	}
	record(t, all, 1)
	agree(t, all)
	for _, d := range all {
		seen := map[string]time.Duration{}
		for end := time.Now().Add(patience); len(seen) < 2 && time.Now().Before(end); {
			for _, o := range d.node.Others(t.Context()) {
				if o.Err == nil {
					seen[o.Name] = o.Ahead
				}
			}
		}
		if len(seen) < 2 {
			t.Fatalf("%s reaches %v", d.conf.Name, seen)
		}
		for name, ahead := range seen {
			want := time.Duration(int(name[0])-int(d.conf.Name[0])) * time.Minute
			if (ahead - want).Abs() > 20*time.Second {
				t.Errorf("%s: the clock of %s is %s ahead, expected %s", d.conf.Name, name, ahead, want)
			}
		}
	}
}
