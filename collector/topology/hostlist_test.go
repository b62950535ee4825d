package topology

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseHostList(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"cn1":                    "cn1",
		"cn1,io2":                "cn1 io2",
		"cn[1-3]":                "cn1 cn2 cn3",
		"cn[001-003,7],io[9-11]": "cn001 cn002 cn003 cn7 io9 io10 io11",
		"r[1-2]n[0-1]":           "r1n0 r1n1 r2n0 r2n1",
		"cn[98-101]-ib":          "cn98-ib cn99-ib cn100-ib cn101-ib",
	} {
		got, err := ParseHostList(text)
		if s := strings.Trim(fmt.Sprint(got), "[]"); err != nil || s != want {
			t.Errorf("%q is %q, %v; want %q", text, s, err, want)
		}
	}
	for _, text := range []string{"cn[1-", "cn[3-1]", "cn[a-b]", "cn]", "a,,b", "cn[1-99999999]", "a b", "cn[]",
		"a[0-1023][0-1023][0-1023]",
		"a[" + strings.Repeat("0", 1000) + "-1]"} {
		if got, err := ParseHostList(text); !errors.Is(err, ErrHostList) {
			t.Errorf("%q is %d hosts, %v", text, len(got), err)
		}
	}
}

func FuzzParseHostList(f *testing.F) {
	f.Add("cn[001-003,7],io[9-11]")
	f.Add("r[1-2]n[0-1]")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseHostList(text)
		if err != nil {
			return
		}
		for _, n := range got {
			if n == "" || len(got) > MaxHosts {
				t.Fatalf("%q: %d hosts, one is %q", text, len(got), n)
			}
		}
	})
}

// A few bytes stand for as many names as the largest machine has, or for names as long as the list, and not for both.
func TestHostListsStandForBoundedNames(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for list, want := range map[string]string{
		long + "[1-1000]":                "",
		"cn[0-1000000]":                  "",
		long + "[0-1000000]":             "bytes",
		"cn[0-1000000]" + long:           "bytes",
		"cn[0-1000]" + long + "[0-1000]": "bytes",
		"cn[0-9999999]":                  "hosts",
	} {
		if _, err := ParseHostList(list); (err == nil) != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.30s...: %v, want %q", list, err, want)
		}
	}
}
