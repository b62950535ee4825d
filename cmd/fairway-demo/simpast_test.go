package main

import (
	"bytes"
	"regexp"
	"slices"
	"testing"
	"time"

	"fairway/cmd/lab/simmachine"
)

// A simulated machine that runs for hours has several slow forwarders, each another one, and its log names them.
func TestForwardersBecomeSlowOneAfterTheOther(t *testing.T) {
	size := simmachine.WorkingDay(1)
	size.Compute, size.Forwarders, size.InService, size.Storage = 4096, 24, 8, 8
	m, err := simmachine.New(size)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	before := slowOnes(10*time.Second, newLog(&log))
	named := regexp.MustCompile(`msg="` + slowNow + `" node=(\S+)`)
	begun := time.Unix(1.8e9, 0)
	var slow []string
	var at []time.Duration
	for now := begun; now.Before(begun.Add(6 * time.Hour)); now = now.Add(time.Second) {
		before(m, now)
		m.Pass(now)
		if found := named.FindSubmatch(log.Bytes()); found != nil {
			slow, at = append(slow, string(found[1])), append(at, now.Sub(begun))
			log.Reset()
		}
	}
	t.Log(slow, at)
	if len(slow) != simSlowMost || at[0] < 10*time.Second {
		t.Fatalf("%s became slow after %s", slow, at)
	}
	for i := 1; i < len(at); i++ {
		if at[i]-at[i-1] < simSlowEvery || slices.Contains(slow[:i], slow[i]) {
			t.Errorf("%s became slow after %s", slow, at)
		}
	}
}
