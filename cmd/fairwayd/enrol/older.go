package enrol

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/webui/client"
)

// olderRevoked is where earlier versions kept whose tokens are refused: a node's name and Unix seconds a line.
const olderRevoked = "revoked-nodes"

// Older is whose tokens are refused by a file of an earlier version that the journal has not taken yet.
type Older struct {
	path  string
	until atomic.Pointer[map[topology.NodeID]time.Time]
}

// Read reads the file of a state directory; without one nobody is in it. A bad line is an error: a revocation that is
// passed over lets somebody in.
func (o *Older) Read(stateDir string) error {
	o.path = filepath.Join(stateDir, olderRevoked)
	b, err := os.ReadFile(o.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	out := map[topology.NodeID]time.Time{}
	if err == nil {
		err = parseRevoked(b, o.path, out)
	}
	if len(out) > 0 {
		o.until.Store(&out)
	}
	return err
}

// Until is up to when a node's tokens are refused, the zero time if they are not.
func (o *Older) Until(n topology.NodeID) time.Time {
	if nodes := o.until.Load(); nodes != nil {
		return (*nodes)[n]
	}
	return time.Time{}
}

// Record has the journal take what the file says, by the daemon that answers at a socket, and removes it. Until that is
// done its nodes are refused here.
func (o *Older) Record(ctx context.Context, socket string, log *slog.Logger) {
	for wait := time.Second; o.until.Load() != nil; wait = min(2*wait, time.Minute) {
		c, err := client.New("unix:"+socket, "")
		if err == nil {
			_, err = c.RevokeNodes(ctx, *o.until.Load())
			c.Close()
		}
		if err == nil {
			err = os.Remove(o.path)
		}
		if err == nil {
			o.until.Store(nil)
			return
		}
		log.Warn("revoked nodes are not in the journal yet, and refused at this daemon alone", "file", o.path,
			"err", err)
		if !pace.Wait(ctx, wait) {
			return
		}
	}
}

func parseRevoked(b []byte, path string, out map[topology.NodeID]time.Time) error {
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		if len(f) == 0 {
			continue
		}
		unix, err := int64(0), error(nil)
		if len(f) == 2 {
			unix, err = strconv.ParseInt(f[1], 10, 64)
		}
		if len(f) != 2 || err != nil {
			return fmt.Errorf("%s:%d: %q: want a node's name and Unix seconds", path, n, lines.Text())
		}
		if at := time.Unix(unix, 0); at.After(out[topology.NodeID(f[0])]) {
			out[topology.NodeID(f[0])] = at
		}
	}
	return lines.Err()
}
