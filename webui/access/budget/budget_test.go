package budget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/webui/api"
)

// TestACrowdLeavesPlaces fills what others may take: one caller gets its share, operators and the socket still come in.
func TestACrowdLeavesPlaces(t *testing.T) {
	s := Defaults()
	s.Feeds, s.FeedsEach, s.FeedsKept = 100, 20, 10
	b := New(s, 4)
	take := func(key string, rank Rank) error {
		_, _, err := b.Take(context.Background(), Feeds, Who{key, rank})
		return err
	}
	for i := range 20 {
		if err := take("127.0.0.1", Others); err != nil {
			t.Fatal(i, err)
		}
	}
	var later api.Later
	if err := take("127.0.0.1", Others); !errors.As(err, &later) || later.After <= 0 || api.Status(err) != 429 {
		t.Errorf("a 21st feed of one caller: %v", err)
	}
	n := 20
	for i := 0; take(fmt.Sprint("10.0.0.", i), Others) == nil; i++ {
		n++
	}
	if n != 90 {
		t.Errorf("others have %d feeds, want 90", n)
	}
	for n = 0; take(fmt.Sprint("user", n), Socket) == nil; n++ {
	}
	if n != 5 {
		t.Errorf("the socket's users have %d more, want 5", n)
	}
	for n = 0; take(fmt.Sprint("olga", n), Operators) == nil; n++ {
	}
	if n != 5 {
		t.Errorf("operators have %d more, want 5", n)
	}
	var out bytes.Buffer
	b.WriteMetrics(&out)
	for _, want := range []string{`fairway_limit_in_use{limit="feeds"} 100`,
		`fairway_limit_refusals_total{limit="feeds"} 4`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

// TestQueriesWaitTheirTurn lets queries wait, an operator's come first, and refuses what waits too long.
func TestQueriesWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Defaults(), 4)
		bg := context.Background()
		hold := func(who Who) func() {
			_, release, err := b.Take(bg, Queries, who)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		first, _, _ := hold(Who{"a", Others}), hold(Who{"a", Others}), hold(Who{"b", Others})
		last := hold(Who{"root", Operators}) // the kept place
		var order []string
		for _, w := range []Who{{"c", Others}, {"olga", Operators}} {
			go func() {
				_, release, err := b.Take(bg, Queries, w)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, w.Key)
				release()
			}()
			synctest.Wait()
		}
		last()
		synctest.Wait()
		first()
		synctest.Wait()
		if got := strings.Join(order, " "); got != "olga c" {
			t.Errorf("the order is %q", got)
		}
		hold(Who{"d", Others})
		begun := time.Now()
		if _, _, err := b.Take(bg, Queries, Who{"e", Others}); !errors.Is(err, api.ErrTooOften) ||
			time.Since(begun) != 10*time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_, _, _ = b.Take(ctx, Queries, Who{"e", Others})
		if n := len(b.pools[Queries].waiting); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

// TestCallersTakeTurns: one who has as many queries waiting as may, each as long as it may be, does not keep the only
// place from others.
func TestCallersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Defaults(), 2)
		long := func() {
			held, release, err := b.Take(t.Context(), Queries, Who{"evil", Others})
			if err != nil {
				return
			}
			select {
			case <-time.After(30 * time.Second):
			case <-held.Done():
				if !errors.Is(context.Cause(held), ErrGaveWay) {
					t.Error(context.Cause(held))
				}
			}
			release()
		}
		for range 20 {
			go func() {
				for range 10 {
					long()
				}
			}()
		}
		synctest.Wait()
		for i := range 5 {
			begun := time.Now()
			held, release, err := b.Take(t.Context(), Queries, Who{"dashboard", Others})
			if took := time.Since(begun); err != nil || took > 6*time.Second {
				t.Fatalf("query %d: after %s: %v", i, took, err)
			}
			time.Sleep(100 * time.Millisecond)
			if held.Err() != nil {
				t.Error("a short query gave way")
			}
			release()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		b.mu.Lock()
		defer b.mu.Unlock()
		if p := &b.pools[Queries]; len(p.served)+len(p.holders)+len(p.waiting)+p.taken > 0 {
			t.Errorf("left: %+v", p)
		}
	})
}

// On two processors one query of people runs at a time, so that everybody else has the other one.
func TestQueriesLeaveAProcessor(t *testing.T) {
	for processors, want := range map[int]int{1: 1, 2: 1, 3: 2, 64: 3} {
		b := New(Defaults(), processors)
		b.settings.Wait = 0
		n := 0
		for i := range 10 {
			if _, _, err := b.Take(t.Context(), Queries, Who{fmt.Sprint(i), Others}); err == nil {
				n++
			}
		}
		if n != want {
			t.Errorf("%d processors: %d queries, expected %d", processors, n, want)
		}
	}
}
