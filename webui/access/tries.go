package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/webui/access/budget"
)

const (
	triesWindow = time.Minute
	// nameTries is how many times the tries of one address a name has from all unknown devices: whoever guesses from
	// many addresses is slowed, and its owner signs in from a known device.
	nameTries = 10
	maxTried  = 10_000 // names and addresses that are remembered
)

// tries bounds how often somebody tries to sign in. It remembers the last minute.
type tries struct {
	limits *budget.Budget

	mu     sync.Mutex // guards everything that follows
	recent map[string][]time.Time
	swept  time.Time
}

func newTries(limits *budget.Budget) *tries {
	return &tries{limits: limits, recent: map[string][]time.Time{}}
}

// bound is the most tries under a key.
type bound struct {
	key  string
	most int
}

// password lets one try of a password through, or refuses it. A device that its person has signed in from before has
// tries of its own, which nobody else can use up.
func (t *tries) password(name, from, device string) error {
	s := t.limits.Settings()
	if device != "" {
		return t.take(true, bound{"device " + device, s.SignIns})
	}
	return t.take(false, bound{"name " + name + " from " + from, s.SignIns}, bound{"address " + from, s.SignInsFrom},
		bound{"name " + name, nameTries * s.SignIns})
}

// provider lets one answer of the OpenID Connect provider be checked; what is tried with passwords does not count.
func (t *tries) provider(from string) error {
	return t.take(false, bound{"provider " + from, t.limits.Settings().SignInsFrom})
}

// link lets a name make one more link that signs in.
func (t *tries) link(name string) error {
	return t.take(true, bound{"link of " + name, 2 * t.limits.Settings().SignIns})
}

// take notes a try under some keys. A flood of keys that nobody vouches for is only remembered up to a number.
func (t *tries) take(known bool, bounds ...bound) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	old := func(at time.Time) bool { return now.Sub(at) >= triesWindow }
	if now.Sub(t.swept) >= triesWindow {
		t.swept = now
		maps.DeleteFunc(t.recent, func(_ string, tried []time.Time) bool { return old(tried[len(tried)-1]) })
	}
	for _, b := range bounds {
		tried := slices.DeleteFunc(t.recent[b.key], old)
		if len(tried) == 0 {
			delete(t.recent, b.key)
			continue
		}
		t.recent[b.key] = tried
		if len(tried) >= b.most {
			return t.limits.Refuse(budget.SignIns, fmt.Sprintf("%d tries to sign in within a minute (%s)", len(tried),
				b.key),
				triesWindow-now.Sub(tried[0]))
		}
	}
	if !known && len(t.recent)+len(bounds) > maxTried {
		return t.limits.Refuse(budget.SignIns, "too many names and addresses were tried within a minute", triesWindow)
	}
	for _, b := range bounds {
		t.recent[b.key] = append(t.recent[b.key], now)
	}
	return nil
}

// lanes are places to check passwords in, which takes 32 MiB and some cores each: one that known devices have for
// themselves, and one for all others, so that guessing keeps nobody waiting.
type lanes struct{ known, others chan struct{} }

// maxChecking is how long a password waits for its check.
const maxChecking = 5 * time.Second

func newLanes() lanes { return lanes{make(chan struct{}, 1), make(chan struct{}, 1)} }

func (l lanes) enter(ctx context.Context, known bool) (leave func(), err error) {
	lane := l.others
	if known {
		lane = l.known
	}
	ctx, cancel := context.WithTimeout(ctx, maxChecking)
	defer cancel()
	select {
	case lane <- struct{}{}:
		return func() { <-lane }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Devices that somebody has signed in from carry a cookie that proves it, for that name alone. It opens nothing.
const (
	deviceCookie = "fairway_device"
	deviceLife   = 90 * 24 * time.Hour
)

// deviceKey signs those cookies; a restart makes all devices unknown again.
var deviceKey = func() (k [32]byte) { rand.Read(k[:]); return k }()

func deviceSum(name, id string) string {
	m := hmac.New(sha256.New, deviceKey[:])
	fmt.Fprintf(m, "%d %s%s", len(name), name, id)
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// newDevice is the cookie of a device that name has just signed in from.
func newDevice(name string) string {
	id := rand.Text()
	return id + "." + deviceSum(name, id)
}

// knownDevice is the device that a request of name comes from; "" for one that is not known.
func knownDevice(r *http.Request, name string) string {
	c, err := r.Cookie(deviceCookie)
	if err != nil {
		return ""
	}
	id, sum, ok := strings.Cut(c.Value, ".")
	if !ok || !hmac.Equal([]byte(sum), []byte(deviceSum(name, id))) {
		return ""
	}
	return id
}
