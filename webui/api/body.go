package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxBody fits a manual remap of every compute node of the largest machine.
const maxBody = 8 << 20

// WriteJSON answers a request with a value.
func WriteJSON(w http.ResponseWriter, v any) error {
	b, err := Encode(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b) // the reader is gone when this fails
	return nil
}

// ReadJSON reads a body of one JSON object without unknown fields.
func ReadJSON(w http.ResponseWriter, r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, large.Limit)
		}
		return fmt.Errorf("%w: body: %w", ErrInvalid, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: body: more than one JSON value", ErrInvalid)
	}
	return nil
}
