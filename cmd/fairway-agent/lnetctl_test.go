package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// refusingLnetctl stands in for the program: without CAP_NET_ADMIN it prints nothing and exits with 234, as 2.18 does.
const refusingLnetctl = `#!/bin/sh
eff=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
if [ $((0x$eff >> 12 & 1)) = 0 ]; then echo refused >"${0%/*}/answer"; exit 234; fi
echo answered >"${0%/*}/answer"
printf 'peer:\n-     primary nid: 10.7.0.1@tcp1\n      peer ni:\n      -     nid: 10.7.0.1@tcp1\n'
printf '            statistics:\n                  send_count: 3\n                  recv_count: 4\n'
`

// TestLnetctlAnswersTheAgent runs the shipped agent of an LNet node with the capabilities that it keeps.
func TestLnetctlAnswersTheAgent(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, which has something to give up")
	}
	tools, root := t.TempDir(), t.TempDir()
	table, answer := filepath.Join(root, "sys", "kernel", "debug", "lnet", "routes"), filepath.Join(tools, "answer")
	const routes = "Routing disabled\nnet hops priority state router\ntcp2 -1 0 up 10.7.0.1@tcp1\n"
	if err := errors.Join(os.WriteFile(filepath.Join(tools, "lnetctl"), []byte(refusingLnetctl), 0o755),
		os.MkdirAll(filepath.Dir(table), 0o755), syscall.Mkfifo(answer, 0o600),
		os.WriteFile(table, []byte(routes), 0o644)); err != nil {
		t.Fatal(err)
	}
	file := writeConfig(t, "ws://127.0.0.1:1", strings.Repeat("x", 32), fmt.Sprintf(
		"[routes]\nby = \"lnet\"\nnet = \"tcp2\"\nroot = %q\nforwarders = {r1 = \"10.7.0.1@tcp1\"}\n", root))
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	agent := exec.CommandContext(ctx, binary(t), "-c", file)
	agent.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = agent.Wait()
		if pipe, err := os.OpenFile(answer, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = pipe.Close() // the reader below need not wait any longer
		}
	}()
	got, err := os.ReadFile(answer)
	stop()
	<-ended
	if strings.TrimSpace(string(got)) != "answered" || err != nil {
		t.Errorf("lnetctl: %q, %v", got, err)
	}
}
