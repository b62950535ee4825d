package topology

import (
	"fmt"
	"slices"
	"testing"
)

func TestFoldHostList(t *testing.T) {
	for want, names := range map[string][]NodeID{
		"":                         nil,
		"cn1":                      {"cn1"},
		"login":                    {"login"},
		"cn[1-3]":                  {"cn3", "cn1", "cn2", "cn2"},
		"cn[7,001-003]":            {"cn001", "cn003", "cn7", "cn002"},
		"c[57856-58367,58400]":     append(numbered("c", 57856, 58367), "c58400"),
		"a,cn[08-11],cn-x,io[1,3]": {"io3", "io1", "a", "cn-x", "cn08", "cn09", "cn10", "cn11"},
		"n[0,00]":                  {"n0", "n00"},
		"r1n[0-1],r2n0":            {"r1n0", "r1n1", "r2n0"},
		"x12345678901234":          {"x12345678901234"},
	} {
		if got := FoldHostList(names); got != want {
			t.Errorf("%v is %q, want %q", names, got, want)
		}
	}
}

func numbered(prefix string, from, to int) (out []NodeID) {
	for i := from; i <= to; i++ {
		out = append(out, NodeID(fmt.Sprint(prefix, i)))
	}
	return out
}

// What is folded reads back as the same names.
func FuzzFoldHostList(f *testing.F) {
	f.Add("cn[001-003,7],io[9-11]")
	f.Add("r[1-2]n[0-1],a")
	f.Fuzz(func(t *testing.T, text string) {
		names, err := ParseHostList(text)
		if err != nil || len(names) > 5000 {
			return
		}
		again, err := ParseHostList(FoldHostList(names))
		if err != nil {
			t.Fatalf("%q folds to %q: %v", text, FoldHostList(names), err)
		}
		slices.Sort(names)
		slices.Sort(again)
		if names = slices.Compact(names); !slices.Equal(names, again) {
			t.Fatalf("%q folds to %q: %v", text, FoldHostList(names), again)
		}
	})
}

// Sentences name a few nodes and say how many more there are.
func TestFoldShort(t *testing.T) {
	for want, in := range map[string][]NodeID{
		"cn[002-003]":            {"cn003", "cn002"},
		"cn[002-003,007]":        {"cn002", "cn003", "cn007"},
		"login":                  {"login"},
		"c[9,10]":                {"c10", "c9"},
		"a1,b1,c1,+1":            {"a1", "b1", "c1", "d1"},
		"n[1,3,5,7,+1]":          {"n1", "n3", "n5", "n7", "n9"},
		"c[00099-00101],io[1-2]": {"c00099", "c00100", "c00101", "io1", "io2"},
	} {
		if got := FoldShort(in); got != want {
			t.Errorf("%v: %s, want %s", in, got, want)
		}
	}
}
