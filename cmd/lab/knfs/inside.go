package knfs

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Inside is what runs in a guest: "serve ADDR" takes the machine's commands, "load DIR NAME GAP" does I/O; and on the
// machine "ask URL SCRIPT", which has a guest run a script and prints what that printed.
func Inside(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		return takeCommands(args[1])
	case len(args) == 4 && args[0] == "load":
		gap, err := time.ParseDuration(args[3])
		if err != nil {
			return err
		}
		return load(ctx, args[1], args[2], gap)
	}
	if len(args) == 3 && args[0] == "ask" {
		resp, err := http.Post(args[1], "text/plain", strings.NewReader(args[2]))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(os.Stdout, resp.Body)
		return err
	}
	return fmt.Errorf("inside %q: want serve ADDR, or load DIR NAME GAP", args)
}

func takeCommands(addr string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run", func(w http.ResponseWriter, r *http.Request) {
		script, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		c := exec.CommandContext(r.Context(), "/bin/sh", "-c", string(script))
		c.WaitDelay = time.Second
		out, err := c.CombinedOutput()
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			out = append(out, err.Error()...)
		}
		_, _ = w.Write(out)
	})
	// A guest's clock runs away from the machine's: the body is the time, in nanoseconds of Unix.
	mux.HandleFunc("POST /clock", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		ns, err := strconv.ParseInt(string(text), 10, 64)
		if err == nil {
			now := unix.NsecToTimeval(ns)
			err = unix.Settimeofday(&now)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	return (&http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: time.Minute}).ListenAndServe()
}

// blockBytes is the size of one read or write of the load, fileBlocks how many a file has.
const blockBytes, fileBlocks = 32 << 10, 16

// tally is what the load's processes saw in one second.
type tally struct {
	mu    sync.Mutex // guards everything that follows
	kinds map[string]seen
}

type seen struct {
	n        int
	sum, max time.Duration
	failed   int
}

func (t *tally) add(kind string, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.kinds[kind]
	if err != nil {
		s.failed++
	} else {
		s.n, s.sum, s.max = s.n+1, s.sum+took, max(s.max, took)
	}
	t.kinds[kind] = s
}

// load writes, reads and makes files below dir until ctx ends, with gap between two operations, and prints each second
// of each kind: Unix time, kind, operations, mean and longest milliseconds, failures. It opens by name each time, as
// programs do that a move must not harm.
func load(ctx context.Context, dir, name string, gap time.Duration) error {
	t := &tally{kinds: map[string]seen{}}
	block := make([]byte, blockBytes)
	var group sync.WaitGroup
	work := func(kind string, one func(i int) error) {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				begun := time.Now()
				err := one(i)
				t.add(kind, time.Since(begun), err)
				if err != nil {
					fmt.Printf("%d %s: %v\n", begun.UnixMilli(), kind, err)
				}
				time.Sleep(time.Duration(float64(gap) * (0.5 + rand.Float64())))
			}
		})
	}
	for w := range 2 {
		work("write", func(i int) error {
			return touch(filepath.Join(dir, fmt.Sprintf("%s.%d", name, w)), i, os.O_CREATE|os.O_WRONLY|os.O_SYNC,
				func(f *os.File, at int64) error { _, err := f.WriteAt(block, at); return err })
		})
	}
	into := make([]byte, blockBytes)
	work("read", func(i int) error {
		return touch(filepath.Join(dir, name+".0"), i, os.O_RDONLY|unix.O_DIRECT, func(f *os.File, at int64) error {
			_, err := f.ReadAt(into, at)
			if err == io.EOF {
				err = nil // not yet written so far
			}
			return err
		})
	})
	work("meta", func(int) error {
		path := filepath.Join(dir, name+".m")
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		return os.Remove(path)
	})
	for tick := time.NewTicker(time.Second); ctx.Err() == nil; {
		select {
		case at := <-tick.C:
			t.print(at)
		case <-ctx.Done():
		}
	}
	group.Wait()
	return nil
}

func touch(path string, i, flags int, do func(*os.File, int64) error) error {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return err
	}
	err = do(f, int64(i%fileBlocks)*blockBytes)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func (t *tally) print(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, kind := range []string{"write", "read", "meta"} {
		s := t.kinds[kind]
		mean := s.sum / time.Duration(max(s.n, 1))
		fmt.Fprintf(&b, "%d %s %d %.1f %.1f %d\n", at.Unix(), kind, s.n, mean.Seconds()*1e3, s.max.Seconds()*1e3,
			s.failed)
	}
	clear(t.kinds)
	fmt.Print(b.String())
}
