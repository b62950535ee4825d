package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fairway/cmd/program"
)

// TestSettingsThatWentAreSaidAndWork: an old file with each of them is read as one without, and each is named with its
// reason and line.
func TestSettingsThatWentAreSaidAndWork(t *testing.T) {
	plain, _, err := settings.Parse("new.toml", []byte("node = \"cn1\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	known := program.KnownSettings(&plain)
	for key, why := range plain.Retired() {
		t.Run(key, func(t *testing.T) {
			if slices.Contains(known, key) {
				t.Errorf("%s went and is still a setting", key)
			}
			text := []byte("node = \"cn1\"\n" + key + ".any = 7\n")
			if strings.Contains(key, ".") {
				text = []byte("node = \"cn1\"\n" + key + " = 7\n")
			}
			c, _, err := settings.Parse("old.toml", text)
			if got, want := fmt.Sprintf("%+v", c), fmt.Sprintf("%+v", plain); err != nil || got != want {
				t.Errorf("it is\n%s, %v, want\n%s", got, err, want)
			}
			lines := program.Retirements("old.toml", text, &c)
			if len(lines) != 1 || !strings.Contains(lines[0], "the setting "+key+" went") || why == "" ||
				!strings.Contains(lines[0], why) || !strings.HasPrefix(lines[0], "old.toml:2:") {
				t.Errorf("the line is %q", lines)
			}
		})
	}
}
