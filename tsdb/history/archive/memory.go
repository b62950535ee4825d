package archive

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// memory is which logs were read before, by content and, so that nothing needs to be read to see it, by
// path, size and time of change.
type memory struct {
	mu   sync.Mutex
	keys map[[16]byte]struct{} // Protected by mu
}

// statKey stands for a file that was not touched since.
func statKey(f found) [16]byte {
	// Parquet keeps microseconds.
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", f.size, f.modified.UnixMicro(), f.path))
	return keyOf(sum)
}

// readMemory loads the table read; with retry, logs that could not be read are not remembered.
func readMemory(ctx context.Context, dir string, retry bool) (*memory, error) {
	m := &memory{keys: map[[16]byte]struct{}{}}
	query := "SELECT unhex(hash), path, size, modified FROM read"
	if retry {
		query += " WHERE NOT bad"
	}
	err := Each(ctx, dir, query, nil, func(row []any) error {
		hash, path, size, modified := row[0].([]byte), row[1].(string), row[2].(int64), row[3].(time.Time)
		m.keys[[16]byte(hash[:16])] = struct{}{}
		m.keys[statKey(found{path, size, modified})] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("archive: read what was imported before: %w", err)
	}
	return m, nil
}

func (m *memory) isNew(key [16]byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.keys[key]
	return !found
}

// claim remembers a key; it is false where the key was known, also from earlier in the same import.
func (m *memory) claim(key [16]byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.keys[key]
	m.keys[key] = struct{}{}
	return !found
}
