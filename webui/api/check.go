package api

// CheckLevel is how one look at the installation went.
type CheckLevel string

// The levels of a check.
const (
	CheckOK      CheckLevel = "ok"
	CheckWarned  CheckLevel = "warning" // it works, with less than it could
	CheckFailed  CheckLevel = "failed"
	CheckUnknown CheckLevel = "unknown" // could not be looked at, because another check failed
)

// Check is one look at the installation: what was found and, unless all is well, what to do.
type Check struct {
	Name  string     `json:"name"`
	Level CheckLevel `json:"level"`
	Text  string     `json:"text"`
	Fix   string     `json:"fix,omitempty"`
}
