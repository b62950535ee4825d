package desk

import (
	"fmt"
	"time"

	"fairway/remap"
	"fairway/remap/journal"
)

// keyTable remembers what idempotency keys were used for.
type keyTable map[string]keyUse

type keyUse struct {
	body, plan string
	at         time.Time
}

// keyLife is how long a used idempotency key is remembered.
const keyLife = 24 * time.Hour

func (t keyTable) take(r *journal.Record) {
	if r.Key != "" {
		t[r.Actor+"\x00"+r.Key] = keyUse{body: r.Body, plan: r.Plan, at: r.At}
	}
}

// used looks an idempotency key up: the plan it acted on, or ErrConflict.
func (t keyTable) used(by remap.Person, key, body string) (plan string, ok bool, err error) {
	u, ok := t[by.Name+"\x00"+key]
	if key == "" || !ok {
		return "", false, nil
	}
	if u.body != body {
		return "", false, fmt.Errorf("%w: key %q of %s belongs to plan %s", remap.ErrConflict, key, by.Name, u.plan)
	}
	return u.plan, true, nil
}

// forget drops idempotency keys older than their life.
func (t keyTable) forget(now time.Time) {
	for k, u := range t {
		if now.Sub(u.at) > keyLife {
			delete(t, k)
		}
	}
}
