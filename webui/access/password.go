package access

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// The cost of argon2id: RFC 9106's second recommended option, with half its memory for login nodes and one lane, so
// that who tries passwords keeps one processor busy and leaves the others to people.
const (
	argonTime, argonMemoryKiB, argonThreads = 3, 32 << 10, 1
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

// hashOfNobody costs what the others cost, and no password that anybody knows matches it.
func hashOfNobody() passwordHash {
	return passwordHash{version: argon2.Version, memory: argonMemoryKiB, time: argonTime, threads: argonThreads,
		salt: make([]byte, argonSalt), key: make([]byte, argonKey)}
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
