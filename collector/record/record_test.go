package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/recorded"
)

// TestWhatIsWrittenIsRead: a node's seconds come back as they were, with stand-ins for its names where they are asked
// for, the same ones each time.
func TestWhatIsWrittenIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
		tree := fstest.MapFS{"proc/loadavg": file("1 2 3\n"),
			"sys/kernel/debug/lnet/stats": file("5 28\n"),
			"sys/kernel/debug/lnet/peers": file("nid\n10.7.0.1@tcp1 up\n\n"),
			"proc/self/mounts":            file("gw1.site:/p /p nfs rw,addr=10.7.0.1 0 0\n"),
			"etc/passwd":                  file("no\n")}
		for _, hide := range []func([]byte) []byte{nil, StandIns("word", []string{"gw1"})} {
			var log bytes.Buffer
			ctx, stop := context.WithTimeout(t.Context(), 10500*time.Millisecond)
			err := Write(ctx, Node{Root: tree, Log: &log, Hide: hide,
				Run: func(_ context.Context, argv ...string) ([]byte, error) {
					if argv[1] == "peer" {
						return nil, errors.New("exit status 234")
					}
					return []byte("global:\n"), nil
				}})
			stop()
			if err != nil {
				t.Fatal(err)
			}
			count, bad := map[string]int{}, 0
			for f, err := range recorded.Frames(&log) {
				if err != nil {
					t.Fatal(err)
				}
				if count[f.Name]++; f.Err == "exit status 234" {
					bad++
				}
				if f.Name == "proc/loadavg" && string(f.Text) != "1 2 3\n" || f.Name == "lnetctl_global_show" &&
					!slices.Equal(f.Command(), []string{"lnetctl", "global", "show"}) {
					t.Errorf("%+v", f)
				}
				named := strings.Contains(string(f.Text), "10.7.0.1") || strings.Contains(string(f.Text), "gw1")
				if asked := f.Name == "proc/self/mounts" || strings.HasSuffix(f.Name, "peers"); asked &&
					named != (hide == nil) {
					t.Errorf("%s: %s", f.Name, f.Text)
				}
			}
			if count["proc/loadavg"] != 11 || count["lnetctl_net_show_-v_4"] != 2 || bad != 2 ||
				count["etc/passwd"] != 0 {
				t.Errorf("%v, %d errors", count, bad)
			}
		}
		a, b := StandIns("w", nil)([]byte("1.2.3.4 127.0.0.1")), StandIns("w", nil)([]byte("1.2.3.4 127.0.0.1"))
		if !bytes.Equal(a, b) || !bytes.HasSuffix(a, []byte(" 127.0.0.1")) {
			t.Errorf("%s, %s", a, b)
		}
	})
}

// TestTimesOfLines: a line of a second has the moment, or how long the node had been up.
func TestTimesOfLines(t *testing.T) {
	var at []string
	for f, err := range recorded.Frames(strings.NewReader("@T 1795767157 244.62\n@F /x\na\n" +
		"@T 1795767158 1795767158.5\n@F /x\na\n")) {
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, fmt.Sprint(f.At.UnixMilli()))
	}
	if want := []string{"1795767157000", "1795767158500"}; !slices.Equal(at, want) {
		t.Errorf("at %v, want %v", at, want)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add("@ 1795764335.331 /proc/x 3\nabc\n@ 1795764336 y 5\n!gone\n")
	f.Add("@T 1 1.5\n@F /proc/x\nabc\n@SLOW /proc/x 0.2\n")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		for _, err := range recorded.Frames(strings.NewReader(text)) {
			if n++; err != nil && n > len(text)+1 {
				t.Error("more frames than bytes")
			}
		}
	})
}
