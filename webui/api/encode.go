package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
)

// unknownNumber stands for null while a value is encoded: the least number above 0, which nothing measures.
const unknownNumber = math.SmallestNonzeroFloat64

// Encode writes a value as JSON, and is the only way by which webui's numbers get there. JSON has no word for what is
// not a number or has no end: both are not known, so null.
func Encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if not := (*json.UnsupportedValueError)(nil); !errors.As(err, &not) {
		return b, err
	}
	if b, err = json.Marshal(finite(reflect.ValueOf(v)).Interface()); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b, []byte("5e-324"), []byte("null")), nil
}

// finite copies a value with unknownNumber for each float that is not finite.
func finite(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			out := reflect.New(v.Type()).Elem()
			out.SetFloat(unknownNumber)
			return out
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		inner := finite(v.Elem())
		out := reflect.New(v.Type()).Elem()
		if v.Kind() == reflect.Interface {
			out.Set(inner)
			return out
		}
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(inner)
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(finite(v.Field(i)))
			}
		}
		return out
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		if v.Kind() == reflect.Slice {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(finite(v.Index(i)))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for k, x := range v.Seq2() {
			out.SetMapIndex(k, finite(x))
		}
		return out
	}
	return v
}
