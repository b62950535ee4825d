package program

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

type printed struct {
	Name  string `toml:"name" help:"The name."`
	Inner struct {
		Wait  time.Duration     `toml:"wait" help:"How long."`
		Words map[string]string `toml:"words" help:"The site's words."`
	} `toml:"inner" help:"What is inside."`
	Hidden int
	Entry  []struct {
		ID    string `toml:"id" help:"Its ID."`
		Limit *struct {
			Most int `toml:"most"`
		} `toml:"limit,omitempty" help:"Limits."`
	} `toml:"entry" help:"Entries."`
	Share float64 `toml:"share" help:"0..1."`
}

func TestPrintSettings(t *testing.T) {
	def := printed{Name: "a", Share: 1}
	c := def
	text := []byte("name = \"b\"\n[inner]\nwait = \"2s\"\n")
	meta, err := ParseSettings("x.toml", text, &c, KnownSettings(&c), "x config")
	if err != nil {
		t.Fatal(err)
	}
	if got := KnownSettings(&c); !slices.Equal(got, []string{"name", "share", "inner.wait", "inner.words", "entry"}) {
		t.Errorf("known: %q", got)
	}
	var b bytes.Buffer
	if err := PrintSettings(&b, &c, &def, text, meta); err != nil {
		t.Fatal(err)
	}
	want := `
# The name.
name = "b" # line 1; default "a"

# 0..1.
share = 1.0

# What is inside.
[inner]
# How long.
wait = "2s" # line 3; default "0s"

# The site's words.
# [inner.words] has no entry

# Entries.
#   id: Its ID.
#   limit: Limits. Keys: most.
# [entry] has no entry
`
	if b.String() != want {
		t.Errorf("got %s\nwant %s", &b, want)
	}
	c.Inner.Words = map[string]string{"x": "y"}
	b.Reset()
	if err := PrintSettings(&b, &c, &def, nil, meta); err != nil ||
		!strings.Contains(b.String(), "[inner.words]\nx = \"y\"\n") {
		t.Errorf("%v, %s", err, &b)
	}
}
