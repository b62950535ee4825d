package anomaly

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
)

// ErrState says that a detector's saved state cannot be taken up.
var ErrState = errors.New("saved state of a detector")

// Save writes what outlives a detector's restart.
func Save(state any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(state)
	return b.Bytes(), err
}

// Load reads into state what Save wrote; version is the state's own, which must be the wanted one.
func Load(b []byte, state any, version *int, want int) error {
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(state); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if *version != want {
		return fmt.Errorf("%w: version %d, want %d", ErrState, *version, want)
	}
	return nil
}
