package queue

import (
	"math"
	"math/rand/v2"
	"testing"

	"fairway/remap/policy/share"
)

// filled is a queue of the big job's two clients and the small job's one; top keeps burst requests of each waiting.
type filled struct {
	*laneQueue
	clients []*conn
	size    []int // bytes that a client's requests move
	burst   []int
	held    map[*conn]int
}

func newFilled(t testing.TB, policy string, size, burst []int) *filled {
	s, err := twoJobs(policy).compile()
	if err != nil {
		t.Fatal(err)
	}
	return &filled{laneQueue: newQueue(s, DefaultWindow, rand.New(rand.NewPCG(1, 2))),
		clients: []*conn{{lane: 0}, {lane: 0}, {lane: 1}},
		size:    size, burst: burst, held: map[*conn]int{}}
}

func (f *filled) top() {
	for i, c := range f.clients {
		if f.held[c] == 0 {
			for range f.burst[i] {
				f.push(c.lane, request{conn: c, cost: requestCost + f.size[i]})
			}
			f.held[c] = f.burst[i]
		}
	}
}

func (f *filled) next(t testing.TB) request {
	f.top()
	r, found := f.pop()
	if !found {
		t.Fatal("nothing waits though every client asks")
	}
	f.held[r.conn]--
	return r
}

// Requests that go together are paid for: whatever their sizes and however many come at once, what jobs spend is
// the policy's share.
func TestWhatGoesTogetherIsPaidFor(t *testing.T) {
	for _, c := range []struct{ size, burst []int }{
		{[]int{0, 0, 0}, []int{1, 1, 1}},
		{[]int{0, 0, 0}, []int{40, 40, 40}},
		{[]int{0, 0, 0}, []int{1, 1, 40}}, // the small job alone comes in long runs
		{[]int{0, 0, 0}, []int{40, 40, 2}},
		{[]int{65536, 4096, 65536}, []int{16, 3, 40}},
		{[]int{1 << 20, 0, 4096}, []int{2, 30, 30}},
	} {
		f := newFilled(t, "size-fair", c.size, c.burst)
		spent := [2]float64{}
		for range 200_000 {
			r := f.next(t)
			spent[r.conn.lane] += float64(r.cost)
		}
		if got := spent[0] / (spent[0] + spent[1]); math.Abs(got-.8) > .01 {
			t.Errorf("sizes %v, %v at once: the big job spends %.4f of all, want 0.8", c.size, c.burst, got)
		}
	}
}

// As many requests of a connection leave one after the other as in the order of arrival, so that they cost as few
// writes.
func TestRequestsThatCameTogetherGoTogether(t *testing.T) {
	runs := func(policy string) float64 {
		f := newFilled(t, policy, []int{0, 0, 0}, []int{8, 8, 8})
		n, changes := 24_000, 0
		var last *conn
		for range n {
			r := f.next(t)
			if r.conn != last {
				changes++
			}
			last = r.conn
		}
		return float64(n) / float64(changes)
	}
	if fifo, fair := runs(""), runs("job-fair"); fair < .9*fifo {
		t.Errorf("%.2f requests go together, %.2f in the order of arrival", fair, fifo)
	}
}

// A job that owes when it goes idle is served when it comes back, also alone.
func TestWhoOwesIsServed(t *testing.T) {
	f := newFilled(t, "job-fair", nil, nil)
	big := f.clients[0]
	for range 3 {
		for range 8 {
			f.push(0, request{conn: big, cost: maxFrame})
		}
		for range 8 {
			if r, found := f.pop(); !found || r.conn != big {
				t.Fatalf("popped %+v, %v", r, found)
			}
		}
		if _, found := f.pop(); found {
			t.Fatal("the queue is not empty")
		}
	}
}

// A request that waits and is chosen allocates nothing.
func BenchmarkQueue(b *testing.B) {
	for _, policy := range []string{"", "size-fair", string(share.User) + "-then-job-fair"} {
		b.Run("policy-"+policy, func(b *testing.B) {
			f := newFilled(b, policy, []int{0, 0, 65536}, []int{8, 8, 8})
			b.ReportAllocs()
			for b.Loop() {
				f.next(b)
			}
		})
	}
}
