package filedomain

import (
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// region is a file of whole stripes of ten bytes.
func region(stripes, servers, aggregators int, m Method) Case {
	return Case{End: int64(stripes) * 10, StripeSize: 10, Servers: servers, Aggregators: aggregators, Method: m}
}

// owner lists who owns each stripe of an answer, by its first byte.
func owner(c Case, a Answer) []int {
	out := make([]int, c.stripes())
	for p, d := range a.Domains {
		for _, e := range d {
			for k := e[0] / c.StripeSize; k*c.StripeSize < e[0]+e[1]; k++ {
				out[k-c.first()] = p
			}
		}
	}
	return out
}

func TestOwners(t *testing.T) {
	for _, tc := range []struct {
		name      string
		c         Case
		want      []int
		conflicts []int64
	}{
		{"aligned", region(8, 2, 4, Aligned), []int{0, 0, 1, 1, 2, 2, 3, 3}, []int64{3, 3}},
		{"static-cyclic, aggregators a multiple of servers", region(12, 2, 4, StaticCyclic),
			[]int{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, []int64{5, 5}},
		{"static-cyclic, aggregators a divisor", region(8, 4, 2, StaticCyclic), []int{0, 1, 0, 1, 0, 1, 0, 1},
			[]int64{0, 0, 0, 0}},
		{"group-cyclic, two groups of three", region(24, 3, 6, GroupCyclic),
			[]int{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5}, []int64{1, 1, 1}},
		{"group-cyclic, fewer aggregators than servers", region(8, 4, 3, GroupCyclic), []int{0, 1, 0, 1, 0, 1, 0, 1},
			[]int64{0, 0, 0, 0}},
		{"transpose", region(12, 3, 4, Transpose), []int{0, 1, 2, 0, 1, 3, 0, 2, 3, 1, 2, 3}, []int64{1, 1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := Divide(tc.c)
			if got := owner(tc.c, a); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("owners %v, want %v", got, tc.want)
			}
			if !slices.Equal(a.Conflicts, tc.conflicts) {
				t.Errorf("conflicts %v, want %v", a.Conflicts, tc.conflicts)
			}
		})
	}
}

func TestTransposeFirstFourStripesOfServerZero(t *testing.T) {
	c := region(20, 5, 6, Transpose) // four rows, 20 stripes for 6: two get four, four get three
	got := owner(c, Divide(c))
	if want := []int{0, 0, 0, 0}; !slices.Equal([]int{got[0], got[5], got[10], got[15]}, want) {
		t.Errorf("server 0 belongs to %v", []int{got[0], got[5], got[10], got[15]})
	}
	c = region(16, 4, 5, Transpose) // 16 for 5: one gets four, four get three
	got = owner(c, Divide(c))
	if want := []int{0, 0, 0, 0, 1, 1, 1, 2}; !slices.Equal([]int{got[0], got[4], got[8], got[12], got[1], got[5],
		got[9], got[13]}, want) {
		t.Errorf("servers 0 and 1 belong to %v, want %v", got, want)
	}
}

func TestUnalignedEvenSharesStripes(t *testing.T) {
	c := Case{Start: 0, End: 30, StripeSize: 10, Servers: 1, Aggregators: 2, Method: Even}
	a := Divide(c)
	if a.Conflicts[0] != 1 || a.LockRequests != 4 {
		t.Errorf("conflicts %v and %d locks, want one change inside stripe 1 and 4 locks", a.Conflicts, a.LockRequests)
	}
	c.Method = Aligned
	if a = Divide(c); a.LockRequests != 3 {
		t.Errorf("aligned takes %d locks, want 3", a.LockRequests)
	}
	c.Method = StripeSize
	if a = Divide(c); len(a.Domains[0])+len(a.Domains[1]) != 3 {
		t.Errorf("stripe-size makes %v, want one request a stripe", a.Domains)
	}
}

// TestEveryByteOnce checks that each method gives every byte of the region to exactly one aggregator,
// and that group-cyclic and transpose change owner on a server as seldom as its owners allow.
func TestEveryByteOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		c := Case{Start: r.Int64N(500), StripeSize: 1 + r.Int64N(40), Servers: 1 + r.IntN(9),
			Aggregators: 1 + r.IntN(20)}
		c.End = c.Start + 1 + r.Int64N(2000)
		for _, c.Method = range methods {
			a := Divide(c)
			var all []Extent
			for _, d := range a.Domains {
				all = append(all, d...)
			}
			slices.SortFunc(all, func(x, y Extent) int { return int(x[0] - y[0]) })
			at := c.Start
			for _, e := range all {
				if e[0] != at || e[1] < 1 {
					t.Fatalf("%+v: the byte at %d is followed by extent %v", c, at, e)
				}
				at += e[1]
			}
			if at != c.End {
				t.Fatalf("%+v: ends at %d", c, at)
			}
			if c.Method == GroupCyclic || c.Method == Transpose {
				checkFewestChanges(t, c, a)
			}
		}
	}
}

func checkFewestChanges(t *testing.T, c Case, a Answer) {
	t.Helper()
	owners := make([]map[int]bool, c.Servers)
	for i, o := range owner(c, a) {
		s := (c.first() + int64(i)) % int64(c.Servers)
		if owners[s] == nil {
			owners[s] = map[int]bool{}
		}
		owners[s][o] = true
	}
	for s, set := range owners {
		if want := int64(max(len(set)-1, 0)); a.Conflicts[s] != want {
			t.Fatalf("%+v: server %d changes owner %d times between %d owners", c, s, a.Conflicts[s], len(set))
		}
	}
}

func TestMatched(t *testing.T) {
	for _, tc := range [][3]int{{10, 4, 8}, {4, 4, 4}, {3, 4, 2}, {5, 12, 4}, {1, 7, 1}, {6, 7, 1}} {
		if got := Matched(tc[0], tc[1]); got != tc[2] {
			t.Errorf("Matched(%d, %d) = %d, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}

func TestCheckNamesTheField(t *testing.T) {
	ok := region(4, 2, 2, Even)
	for want, change := range map[string]func(*Case){
		"start": func(c *Case) { c.Start = -1 }, "end": func(c *Case) { c.End = 0 },
		"stripe_size": func(c *Case) { c.StripeSize = 0 }, "servers": func(c *Case) { c.Servers = 0 },
		"aggregators": func(c *Case) { c.Aggregators = maxAggregators + 1 },
		"method":      func(c *Case) { c.Method = "odd" },
		"stripes":     func(c *Case) { c.End, c.StripeSize = 1<<60, 1 },
	} {
		c := ok
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := ok.Check(); err != nil {
		t.Error(err)
	}
}

func TestAdviceMatchesAggregatorsToServers(t *testing.T) {
	a := Advise(Case{End: 1 << 30, StripeSize: 1 << 20, Servers: 6, Aggregators: 16, Method: Even})
	if a.Hints["cb_nodes"] != "12" || a.Hints["striping_unit"] != "1048576" ||
		(a.Method != GroupCyclic && a.Method != Transpose) {
		t.Errorf("advice %+v", a)
	}
	// 16 aggregators deal 1024 stripes of 6 servers in turn: every server meets another one each time but
	// for its first stripe. 12 of them meet two each, in turn.
	want := "stripes dealt in turn: 1018 conflicts with 16 aggregators, 1018 with 12"
	if a.Effects["cb_nodes"] != want {
		t.Errorf("cb_nodes: %s", a.Effects["cb_nodes"])
	}
	for hint := range a.Hints {
		if a.Effects[hint] == "" {
			t.Errorf("hint %s says no effect", hint)
		}
	}
	// With as many as servers each server has one owner: no conflict at all.
	a = Advise(Case{End: 1 << 30, StripeSize: 1 << 20, Servers: 6, Aggregators: 8, Method: Even})
	if want := "stripes dealt in turn: 1018 conflicts with 8 aggregators, 0 with 6"; a.Effects["cb_nodes"] != want {
		t.Errorf("cb_nodes: %s", a.Effects["cb_nodes"])
	}
	// What fits already is not compared with itself.
	a = Advise(Case{End: 1 << 30, StripeSize: 1 << 20, Servers: 6, Aggregators: 6, Method: Even})
	if want := "stripes dealt in turn: 0 conflicts with 6 aggregators"; a.Effects["cb_nodes"] != want ||
		!strings.Contains(a.Why, "its 6 aggregators fit") {
		t.Errorf("cb_nodes: %s; why: %s", a.Effects["cb_nodes"], a.Why)
	}
}

func TestAdviceCountsOneAsOne(t *testing.T) {
	a := Advise(Case{End: 3 << 20, StripeSize: 2 << 20, Servers: 1, Aggregators: 2, Method: Even})
	words := a.Why
	for _, e := range a.Effects {
		words += "; " + e
	}
	if want := "stripes dealt in turn: 1 conflict with 2 aggregators"; !strings.HasPrefix(a.Effects["cb_nodes"], want) {
		t.Errorf("cb_nodes: %s", a.Effects["cb_nodes"])
	}
	if wrong := regexp.MustCompile(`\b1 (lock )?(conflicts|aggregators|servers|whole stripes)`).FindString(
		words); wrong != "" {
		t.Errorf("%q in %s", wrong, words)
	}
}

func BenchmarkMillionStripes(b *testing.B) {
	for _, m := range methods {
		b.Run(string(m), func(b *testing.B) {
			c := Case{End: 1e6 << 20, StripeSize: 1 << 20, Servers: 288, Aggregators: 10_000, Method: m}
			for b.Loop() {
				Divide(c)
			}
		})
	}
}

func TestWindowLiesAroundTheFirstCut(t *testing.T) {
	for _, tc := range []struct {
		c       Case
		stripes int
		want    Window
	}{
		{region(100, 4, 4, Even), 10, Window{First: 20, Stripes: 10, Cut: 5}},
		{region(100, 4, 50, Even), 10, Window{First: 0, Stripes: 10, Cut: 2}},
		{region(100, 4, 1, Even), 10, Window{First: 90, Stripes: 10, Cut: 9}},
		{region(3, 4, 2, Even), 10, Window{First: 0, Stripes: 3, Cut: 1}},
	} {
		if got := tc.c.Window(tc.stripes); got != tc.want {
			t.Errorf("%+v: %+v, want %+v", tc.c, got, tc.want)
		}
	}
	c := region(100, 4, 4, Even)
	for _, m := range Compare(c, c.Window(10)) {
		c.Method = m.Method
		want := owner(c, Divide(c))[20:30]
		for i, own := range m.Owners {
			if len(own) != 1 || int(own[0]) != want[i] {
				t.Errorf("%s: stripe %d belongs to %v, want %d", m.Method, 20+i, own, want[i])
			}
		}
	}
}

func TestCompareKeepsTheFirstOwners(t *testing.T) {
	c := Case{Start: 5, End: 40, StripeSize: 10, Servers: 2, Aggregators: 2} // even cuts at 23, aligned at 20
	all := Compare(c, Window{Stripes: 3})
	if len(all) != len(methods) {
		t.Fatalf("%d methods", len(all))
	}
	want := map[Method][][]int32{Even: {{0}, {0}, {0, 1}}, Aligned: {{0}, {0}, {1}}, StripeSize: {{0}, {0}, {1}},
		StaticCyclic: {{0}, {1}, {0}}, GroupCyclic: {{0}, {1}, {0}}, Transpose: {{0}, {1}, {0}}}
	for _, m := range all {
		if !reflect.DeepEqual(m.Owners, want[m.Method]) {
			t.Errorf("%s: owners %v, want %v", m.Method, m.Owners, want[m.Method])
		}
		c.Method = m.Method
		if a := Divide(c); !slices.Equal(a.Conflicts, m.Conflicts) || m.TotalLocks() != a.LockRequests {
			t.Errorf("%s: %+v, want %+v", m.Method, m, a)
		}
	}
	if got, want := Choose(c, all), Advise(c); !reflect.DeepEqual(got, want) {
		t.Errorf("chosen %+v, advised %+v", got, want)
	}
	if all[2].Requests != 4 || all[4].Requests != 4 || all[1].Requests != 2 {
		t.Errorf("requests %d, %d, %d", all[2].Requests, all[4].Requests, all[1].Requests)
	}
}
