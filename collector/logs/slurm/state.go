package slurm

import (
	"encoding/json"
	"slices"
)

// state is a job's state: text, a base state with its flags, or an object with these in it.
type state string

// flagsFirst are the flags in the order in which Slurm's programs print one of them instead of the base state.
var flagsFirst = [...]string{"COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUE_FED",
	"REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED", "REVOKED", "RESV_DEL_HOLD", "SIGNALING"}

func (s *state) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '{':
		var o struct{ Current state }
		err := json.Unmarshal(b, &o)
		*s = o.Current
		return err
	case '[':
		var all []string
		if err := json.Unmarshal(b, &all); err != nil || len(all) == 0 {
			return err
		}
		i := slices.IndexFunc(flagsFirst[:], func(flag string) bool { return slices.Contains(all, flag) })
		switch *s = state(all[0]); {
		case slices.Contains(all, "PENDING"): // requeued or held: it has not begun
			*s = "PENDING"
		case i >= 0:
			*s = state(flagsFirst[i])
		}
		return nil
	}
	return (*first)(s).UnmarshalJSON(b)
}
