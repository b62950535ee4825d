package access

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"

	"fairway/remap"
	"fairway/webui/api"
)

// Account is a person who signs in with a password.
type Account struct {
	Name string
	Role remap.Role
	// Hash is what HashPassword returned.
	Hash string
}

const (
	CookieName   = "fairway_session"
	sessionLife  = 12 * time.Hour
	codeLife     = 10 * time.Minute
	maxSessions  = 4096
	maxName      = 255
	signInWindow = time.Minute
	// Within it, of one name and of everybody together.
	signInTries, allSignInTries = 5, 100
)

// The cost of argon2id: RFC 9106's second recommended option, with half its memory for login nodes.
const (
	argonTime, argonMemoryKiB, argonThreads = 3, 32 << 10, 4
	argonSalt, argonKey                     = 16, 32
)

// HashPassword makes the line that an account is configured with.
func HashPassword(password string) string {
	salt := make([]byte, argonSalt)
	rand.Read(salt) // never fails (crypto/rand)
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemoryKiB, argonThreads, argonKey)
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemoryKiB, argonTime, argonThreads,
		b.EncodeToString(salt), b.EncodeToString(key))
}

var errHash = errors.New("not an argon2id hash as made by fairwayd hash-password")

type passwordHash struct {
	version, memory, time int
	threads               uint8
	salt, key             []byte
}

func parseHash(text string) (h passwordHash, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return h, errHash
	}
	if _, err := fmt.Sscanf(parts[2], "v=%d", &h.version); err != nil || h.version != argon2.Version {
		return h, errHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.threads); err != nil ||
		h.memory < 8 || h.memory > 1<<20 || h.time < 1 || h.time > 64 || h.threads < 1 {
		return h, errHash
	}
	var err1, err2 error
	h.salt, err1 = base64.RawStdEncoding.DecodeString(parts[4])
	h.key, err2 = base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(h.key) < 16 || len(h.salt) < 8 {
		return h, errHash
	}
	return h, nil
}

func (h *passwordHash) matches(password string) bool {
	key := argon2.IDKey([]byte(password), h.salt, uint32(h.time), uint32(h.memory), h.threads, uint32(len(h.key)))
	return subtle.ConstantTimeCompare(key, h.key) == 1
}

// session is one signed-in browser.
type session struct {
	name    string
	role    remap.Role
	expires time.Time
}

// sessions are the signed-in browsers, the one-time codes, and the tries to sign in. They live in
// memory: a restart signs everybody out.
type sessions struct {
	accounts map[string]account
	nobody   passwordHash // checked for unknown names, so that they take as long
	hashing  sync.Mutex   // one at a time: each takes 32 MiB and every core

	mu    sync.Mutex // guards everything that follows
	open  map[string]session
	codes map[string]session
	tries map[string][]time.Time
}

type account struct {
	role remap.Role
	hash passwordHash
}

func newSessions(accounts []Account) (*sessions, error) {
	s := &sessions{accounts: map[string]account{}, open: map[string]session{}, codes: map[string]session{},
		tries: map[string][]time.Time{}}
	for _, a := range accounts {
		h, err := parseHash(a.Hash)
		if err != nil {
			return nil, fmt.Errorf("account %q: hash: %w", a.Name, err)
		}
		if a.Name == "" || !a.Role.Includes(remap.Viewer) {
			return nil, fmt.Errorf("account %q with role %q: want a name, and viewer, operator or admin", a.Name,
				a.Role)
		}
		s.accounts[a.Name] = account{a.Role, h}
	}
	s.nobody,
		_ = parseHash(
		"$argon2id$v=19$m=32768,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	return s, nil
}

func (s *sessions) find(cookie string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.open[cookie]
	if ok && time.Now().After(found.expires) {
		delete(s.open, cookie)
		return session{}, false
	}
	return found, ok
}

// signIn checks a password and opens a session. Errors wrap problem.ErrSignIn or ErrTooOften.
func (s *sessions) signIn(name, password string) (cookie string, err error) {
	if err := s.mayTry(name); err != nil {
		return "", err
	}
	a, known := s.accounts[name]
	if !known {
		a.hash = s.nobody
	}
	s.hashing.Lock()
	right := a.hash.matches(password)
	s.hashing.Unlock()
	if !known || !right {
		return "", fmt.Errorf("%w: the name or the password is wrong", api.ErrSignIn)
	}
	return s.start(session{name: name, role: a.role})
}

// mayTry bounds the tries of everybody together, which also bounds what argon2id may cost, and those
// per name. Only a try that the first lets through is remembered, so that no flood of names can make
// the table large or push out what is known of another name.
func (s *sessions) mayTry(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("%w: the name or the password is wrong", api.ErrSignIn)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, all := time.Now(), 0
	for n, tries := range s.tries {
		recent := slices.DeleteFunc(tries, func(t time.Time) bool { return now.Sub(t) >= signInWindow })
		all += len(recent)
		if s.tries[n] = recent; len(recent) == 0 {
			delete(s.tries, n)
		}
	}
	if of := len(s.tries[name]); of >= signInTries || all >= allSignInTries {
		return fmt.Errorf("%w: %d tries to sign in within a minute, %d of them as %q; wait one", api.ErrTooOften,
			all, of, name)
	}
	s.tries[name] = append(s.tries[name], now)
	return nil
}

func (s *sessions) start(n session) (cookie string, err error) {
	n.expires = time.Now().Add(sessionLife)
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.open, func(_ string, old session) bool { return time.Now().After(old.expires) })
	if len(s.open) >= maxSessions {
		return "", fmt.Errorf("%w: %d people are signed in", api.ErrTooOften, len(s.open))
	}
	cookie = rand.Text() + rand.Text()
	s.open[cookie] = n
	return cookie, nil
}

func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, cookie)
}

// oneTimeCode makes a code that opens one session. It ends the one that name had before, so that there
// are never more than people with a role.
func (s *sessions) oneTimeCode(name string, role remap.Role) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.codes, func(_ string, c session) bool { return c.name == name || time.Now().After(c.expires) })
	code := rand.Text() + rand.Text()
	s.codes[code] = session{name: name, role: role, expires: time.Now().Add(codeLife)}
	return code
}

func (s *sessions) redeem(code string) (cookie string, err error) {
	s.mu.Lock()
	n, ok := s.codes[code]
	delete(s.codes, code)
	s.mu.Unlock()
	if !ok || time.Now().After(n.expires) {
		return "", fmt.Errorf("%w: this link was used already or is older than %s; ask for a new one",
			api.ErrSignIn, codeLife)
	}
	return s.start(n)
}
