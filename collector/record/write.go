// Package record keeps what a site's agents read, second by second, so that it can be read again: a folder with a log
// for each node, labels of what was done when, and a page about the site.
//
// A log is a row of frames: "@ SECONDS NAME BYTES", a line feed, that many bytes, a line feed. NAME is a file's path or
// a command with _ for its blanks; bytes that begin with "!" are the error of the read.
package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"time"
)

// Files are those that agents read of a node, as patterns below its root.
func Files() []string {
	out := []string{"proc/net/dev", "proc/net/snmp", "proc/net/rpc/nfsd", "proc/diskstats", "proc/loadavg", "proc/stat",
		"proc/meminfo",
		"proc/self/mountstats", "proc/self/mounts", "proc/self/mountinfo", "proc/fs/nfsd/pool_stats",
		"proc/fs/nfsd/threads", "proc/pressure/*", "proc/sys/lnet/*"}
	for _, name := range []string{"stats", "peers", "nis", "buffers", "routes", "routers"} {
		out = append(out, "sys/kernel/debug/lnet/"+name)
	}
	for _, root := range []string{"proc/fs/lustre/", "sys/fs/lustre/", "sys/kernel/debug/lustre/"} {
		for _, name := range []string{"llite/*/stats", "llite/*/read_ahead_stats", "osc/*/stats", "osc/*/import",
			"osc/*/rpc_stats", "mdc/*/stats", "mdc/*/import", "mdc/*/rpc_stats", "ldlm/services/*/stats",
			"obdfilter/*/stats", "obdfilter/*/job_stats", "obdfilter/*/num_exports", "ost/OSS/*/stats",
			"ost/OSS/*/threads_started", "ost/OSS/ost_io/nrs_*", "mdt/*/md_stats", "mdt/*/job_stats", "mds/MDS/*/stats",
			"mds/MDS/*/threads_started"} {
			out = append(out, root+name)
		}
	}
	return out
}

// Commands are those that are asked every ten seconds on a node with LNet.
func Commands() [][]string {
	var out [][]string
	for _, words := range []string{"stats show", "net show -v 4", "peer show -v 4", "route show -v", "global show"} {
		out = append(out, append([]string{"lnetctl"}, strings.Fields(words)...))
	}
	return out
}

// commandsEvery is how many seconds lie between two rounds of commands.
const commandsEvery = 10

// Node is what is recorded of one node.
type Node struct {
	Root fs.FS
	Log  io.Writer
	// Run runs a command; nil: none is.
	Run func(ctx context.Context, argv ...string) ([]byte, error)
	// Hide puts stand-ins in the place of names; nil: none are.
	Hide func([]byte) []byte
}

// Write records a node once a second until ctx ends.
func Write(ctx context.Context, n Node) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for second := 0; ; second++ {
		if err := n.second(ctx, second); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// second writes all files, and each ten seconds the commands.
func (n *Node) second(ctx context.Context, second int) error {
	lnet := false
	for _, pattern := range Files() {
		names, _ := fs.Glob(n.Root, pattern) // the patterns are good
		for _, name := range names {
			text, err := fs.ReadFile(n.Root, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			lnet = lnet || strings.HasSuffix(name, "lnet/stats")
			if err := n.frame("/"+name, text, err); err != nil {
				return err
			}
		}
	}
	if !lnet || n.Run == nil || second%commandsEvery != 0 {
		return nil
	}
	for _, argv := range Commands() {
		text, err := n.Run(ctx, argv...)
		if ctx.Err() != nil {
			return nil
		}
		if err := n.frame(strings.Join(argv, "_"), text, err); err != nil {
			return err
		}
	}
	return nil
}

// frame writes one file or command's output, or why it was not read.
func (n *Node) frame(name string, text []byte, failed error) error {
	if failed != nil {
		text = []byte("!" + failed.Error())
	}
	if n.Hide != nil {
		name, text = string(n.Hide([]byte(name))), n.Hide(text)
	}
	now := time.Now()
	head := fmt.Sprintf("@ %d.%03d %s %d\n", now.Unix(), now.Nanosecond()/1e6, name, len(text))
	_, err := n.Log.Write(bytes.Join([][]byte{[]byte(head), text, []byte("\n")}, nil))
	return err
}

// address is an IPv4 address, as it stands in network ids, mounts and options.
var address = regexp.MustCompile(`\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b`)

// StandIns puts another address in the place of each IPv4 address, and another name in that of each of these names, the
// same on every node that is given the same word.
func StandIns(word string, names []string) func([]byte) []byte {
	of := func(name string) [sha256.Size]byte { return sha256.Sum256([]byte(word + "\x00" + name)) }
	var words *regexp.Regexp
	if len(names) > 0 {
		quoted := make([]string, len(names))
		for i, name := range names {
			quoted[i] = regexp.QuoteMeta(name)
		}
		words = regexp.MustCompile(`\b(?:` + strings.Join(quoted, "|") + `)\b`)
	}
	return func(text []byte) []byte {
		text = address.ReplaceAllFunc(text, func(a []byte) []byte {
			if string(a) == "0.0.0.0" || bytes.HasPrefix(a, []byte("127.")) {
				return a
			}
			sum := of(string(a))
			return fmt.Appendf(nil, "10.%d.%d.%d", sum[0], sum[1], sum[2])
		})
		if words == nil {
			return text
		}
		return words.ReplaceAllFunc(text, func(name []byte) []byte {
			sum := of(string(name))
			return fmt.Appendf(nil, "n%x", sum[:4])
		})
	}
}
