package journal

import (
	"encoding/json"

	"fairway/remap"
)

// UnmarshalJSON reads a record. Earlier journals have an expired plan's reason as its error, and end one that was of no
// use any more as rejected by a policy.
func (r *Record) UnmarshalJSON(b []byte) error {
	type plain Record
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	switch {
	case r.Kind == StepExpire && r.Reason == "":
		r.Reason, r.Error = r.Error, ""
	case r.Kind == StepReject && r.Via == remap.ViaPolicy:
		r.Kind, r.State = StepWithdraw, remap.Withdrawn
	}
	return nil
}
