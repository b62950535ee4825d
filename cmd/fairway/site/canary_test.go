package site

import (
	"strings"
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/cmd/program"
)

func TestCanaryAndDoctorOfADaemon(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	flags := s.Flags(simsite.OperatorSecret)
	for args, want := range map[string]string{"canary fwd001": "fwd001 ms", "canary": "fairway canary --help",
		"doctor": "next: "} {
		out, code := command(t, append(flags, strings.Fields(args)...)...)
		if !strings.Contains(out, want) || (code == program.Usage) != strings.Contains(want, "--help") {
			t.Errorf("fairway %s: %d, without %q:\n%s", args, code, want, out)
		}
	}
}
