package anomaly

import (
	"bytes"
	"encoding/gob"
)

// Entry is what a map has for a key, which begins as nothing.
func Entry[K comparable, V any](of map[K]*V, key K) *V {
	if of[key] == nil {
		of[key] = new(V)
	}
	return of[key]
}

// Save writes what outlives a detector's restart.
func Save(learnt any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(learnt)
	return b.Bytes(), err
}

// Load takes up what Save wrote, or nothing. On an error learnt is as it was.
func Load[T any](b []byte, learnt *T) error {
	if len(b) == 0 {
		return nil
	}
	var saved T
	err := gob.NewDecoder(bytes.NewReader(b)).Decode(&saved)
	if err == nil {
		*learnt = saved
	}
	return err
}
