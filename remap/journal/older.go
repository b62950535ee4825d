package journal

import (
	"encoding/json"

	"fairway/remap"
)

// UnmarshalJSON reads a record. Earlier journals end a plan that nobody answered as expired, or as rejected by a
// policy: both read as withdrawn.
func (r *Record) UnmarshalJSON(b []byte) error {
	type plain Record
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	switch {
	case r.Kind == "expire":
		r.Reason, r.Error = r.Error, ""
	case r.Kind != StepReject || r.Via != remap.ViaPolicy:
		return nil
	}
	r.Kind, r.State = StepWithdraw, remap.Withdrawn
	return nil
}
