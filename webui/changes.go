package webui

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// patch is what makes a JSON value of an earlier one: an object lists the members that changed, with null for one that
// is gone (RFC 7396). An array of objects that has as many elements as before is an object with the one member "[]",
// which has the patches of the elements that changed by their place; every other value replaces the earlier one.
const patchedElements = "[]"

// shownDigits are the significant digits of a number that no screen shows more of.
const shownDigits = 5

// changes remembers a JSON value and says how the next one differs.
type changes struct {
	have any
	seq  uint64 // of the value; 0 before the first one
}

// next takes a value, and returns its patch; nil of the first one.
func (c *changes) next(encoded []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	v = rounded(v)
	before := c.have
	c.have = v
	c.seq++
	if before == nil {
		return nil, nil
	}
	p, changed := patchOf(before, v)
	if !changed {
		return []byte("{}"), nil
	}
	return json.Marshal(p)
}

// rounded shortens fractions, so that what nobody could see changing does not change.
func rounded(v any) any {
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return v
		}
		f, err := v.Float64()
		if err != nil {
			return v // unreachable: it was encoded from a float64
		}
		if f, err = strconv.ParseFloat(strconv.FormatFloat(f, 'g', shownDigits, 64), 64); err != nil {
			return v
		}
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
	case map[string]any:
		for k := range v {
			v[k] = rounded(v[k])
		}
	case []any:
		for i := range v {
			v[i] = rounded(v[i])
		}
	}
	return v
}

// patchOf is what makes b of a; false: they are the same.
func patchOf(a, b any) (patch any, changed bool) {
	switch b := b.(type) {
	case map[string]any:
		a, ok := a.(map[string]any)
		if !ok {
			return b, true
		}
		out := map[string]any{}
		for k, v := range b {
			if was, had := a[k]; !had {
				out[k] = v
			} else if p, changed := patchOf(was, v); changed {
				out[k] = p
			}
		}
		for k := range a {
			if _, still := b[k]; !still {
				out[k] = nil
			}
		}
		return out, len(out) > 0
	case []any:
		a, ok := a.([]any)
		if !ok || len(a) != len(b) || !objects(a) || !objects(b) {
			return b, !ok || !reflect.DeepEqual(a, b)
		}
		out := map[string]any{}
		for i := range b {
			if p, changed := patchOf(a[i], b[i]); changed {
				out[strconv.Itoa(i)] = p
			}
		}
		return map[string]any{patchedElements: out}, len(out) > 0
	}
	return b, a != b
}

func objects(list []any) bool {
	for _, v := range list {
		if _, ok := v.(map[string]any); !ok {
			return false
		}
	}
	return true
}
