package api

import "fairway/remap/alert"

// Alerts is who is called when something needs a person, and how delivery goes.
type Alerts struct {
	Receivers []alert.Status `json:"receivers"`
	Open      int            `json:"open"` // alerts that have not ended
}
