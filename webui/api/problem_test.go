package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
)

func TestEachRefusalSurvivesTheWire(t *testing.T) {
	for _, kind := range []error{
		ErrInvalid, ErrNotAllowed, ErrNotFound, ErrConflict,
		ErrChanged, ErrUnreachable,
	} {
		w := httptest.NewRecorder()
		sent := fmt.Errorf("plan P-7: %w: fwd3 went stale", kind)
		WriteProblem(w, httptest.NewRequest("POST", "/api/v1/plans/P-7/approve", nil), sent)
		var d Problem
		if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		got := d.Error()
		if !errors.Is(got, kind) || got.Error() != sent.Error() {
			t.Errorf("%v arrived as %v", sent, got)
		}
		if w.Header().Get("Content-Type") != ProblemType || d.Instance != "/api/v1/plans/P-7/approve" {
			t.Errorf("header %v, document %+v", w.Header(), d)
		}
	}
}

// TestWhatTakesTooLongIsNoFault: a deadline is 504, which a client takes for a daemon that does not answer.
func TestWhatTakesTooLongIsNoFault(t *testing.T) {
	if s := Status(fmt.Errorf("archive: %w", context.DeadlineExceeded)); s != 504 {
		t.Errorf("status %d", s)
	}
	if err := (Problem{Status: 504, Detail: "x"}).Error(); !errors.Is(err, ErrUnreachable) {
		t.Errorf("it arrives as %v", err)
	}
}

func TestAServerFailureIsNoRefusal(t *testing.T) {
	err := Problem{Status: 500, Detail: "disk full"}.Error()
	for _, e := range table {
		if errors.Is(err, e.err) {
			t.Errorf("a 500 became %v", e.err)
		}
	}
	if Status(errors.New("disk full")) != 500 {
		t.Error("an unknown error must answer 500")
	}
}
