package api

import "errors"

// What a Backend refuses, and why. Errors of a Backend wrap one of these or are failures of the
// server; webui/problem gives each its HTTP status and fairway its exit code.
var (
	ErrInvalid     = errors.New("invalid request")
	ErrNotAllowed  = errors.New("not allowed")
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("conflict")
	ErrChanged     = errors.New("changed under you")
	ErrUnreachable = errors.New("unreachable")
	ErrPartial     = errors.New("partly applied")
)
