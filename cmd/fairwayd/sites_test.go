package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fairway/webui/api"
)

// TestConsolesOfOtherMachines: those of the file that a browser reaches, without their tokens.
func TestConsolesOfOtherMachines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sites.toml")
	t.Setenv("FAIRWAY_SITES", path)
	log := slog.New(slog.DiscardHandler)
	if got := consoles(log); got != nil {
		t.Errorf("without a file: %+v", got)
	}
	const text = "[site.b]\naddr = \"https://b.site:7117/,https://b2.site:7117\"\n[site.a]\naddr = " +
		"\"http://a.site\"\n" +
		"token_file = \"/t\"\n[site.c]\naddr = \"unix:/run/s\"\n"
	for content, want := range map[string][]api.Site{
		text: {{Name: "a", Addr: "http://a.site"}, {Name: "b", Addr: "https://b.site:7117"}}, "[site.b]\n": nil} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := consoles(log); !slices.Equal(got, want) {
			t.Errorf("%q: %+v, want %+v", content, got, want)
		}
	}
}
