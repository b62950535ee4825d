package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"fairway/cmd/lab/darshanlog"
	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
)

// logs is the folder of the jobs' Darshan logs, and of what their ranks leave for them.
func (d *demo) logs() string { return filepath.Join(d.dir, "darshan") }

// importing keeps imports apart: an archive takes one at a time.
var importing sync.Mutex

// keepLog makes the Darshan log of a job that has ended and has the daemon's archive read it, as a site's cron job
// does with the folder that Darshan's runtime writes to.
func (d *demo) keepLog(ctx context.Context, id topology.JobID, j testbed.Job) error {
	file, err := darshanlog.Collect(d.logs(), darshanlog.Job{ID: id, UID: os.Geteuid(), Exe: j.Name, FS: "fuse",
		MountPoint: testbed.MountPoint})
	if err != nil || file == "" {
		return err
	}
	importing.Lock()
	defer importing.Unlock()
	out, err := exec.CommandContext(ctx, d.program("fairwayd"), "import", "--dir",
		filepath.Join(d.dir, "state", "archive"), file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fairwayd import: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
