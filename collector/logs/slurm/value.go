package slurm

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
)

// unknown says that a field's text stands for no value.
func unknown(s string) bool {
	switch s {
	case "", "Unknown", "None", "N/A", "(null)", "INVALID":
		return true
	}
	return false
}

// parseTime reads "2006-01-02T15:04:05", in the zone unless it has one of its own, or seconds
// since 1970 (SLURM_TIME_FORMAT=%s).
func parseTime(s string, zone *time.Location) (time.Time, error) {
	if unknown(s) {
		return time.Time{}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return epoch(n)
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05-0700"} {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time (want 2006-01-02T15:04:05)", collector.Clip(s))
}

// epoch reads seconds since 1970; 0 is unknown.
func epoch(n int64) (time.Time, error) {
	if n < 0 || n > 253402300799 {
		return time.Time{}, fmt.Errorf("%d is not a time in seconds", n)
	}
	if n == 0 {
		return time.Time{}, nil
	}
	return time.Unix(n, 0).UTC(), nil
}

// parseDuration reads [D-]HH:MM:SS[.mmm] or MM:SS; nil for a limit that is not a number.
func parseDuration(s string) (*int64, error) {
	if unknown(s) || s == "UNLIMITED" || s == "Partition_Limit" {
		return nil, nil
	}
	bad := fmt.Errorf("%q is not a duration (want [D-]HH:MM:SS)", collector.Clip(s))
	clock, days := s, int64(0)
	if d, rest, ok := strings.Cut(s, "-"); ok {
		n, err := strconv.ParseUint(d, 10, 20)
		if err != nil {
			return nil, bad
		}
		clock, days = rest, int64(n)
	}
	clock, _, _ = strings.Cut(clock, ".")
	parts := strings.Split(clock, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return nil, bad
	}
	sum := int64(0)
	for _, p := range parts {
		n, err := strconv.ParseUint(p, 10, 30)
		if err != nil {
			return nil, bad
		}
		sum = 60*sum + int64(n)
	}
	sum += days * 86400
	return &sum, nil
}

// parseCount reads a number, with the K, M, G of sacct's --units.
func parseCount(s string) (*int64, error) {
	if unknown(s) {
		return nil, nil
	}
	v, err := scaled(s, 1000)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// scaled reads a number with a decimal point and a unit.
func scaled(s string, kilo float64) (int64, error) {
	scale := 1.0
	if i := strings.IndexByte("KMGTP", s[len(s)-1]); i >= 0 {
		scale = math.Pow(kilo, float64(i+1))
		s = s[:len(s)-1]
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0) || v*scale >= 1<<62 {
		return 0, fmt.Errorf("%q is not a number", collector.Clip(s))
	}
	return int64(v * scale), nil
}

// parseMemory reads "31000Mn" (per node), "3000Mc" (per CPU), "2.50G"; 0: none, and 2^31 MB is what some
// versions print for none.
func parseMemory(s string) (*Memory, error) {
	if unknown(s) {
		return nil, nil
	}
	m := &Memory{}
	switch s[len(s)-1] {
	case 'n':
		m.Per, s = "node", s[:len(s)-1]
	case 'c':
		m.Per, s = "cpu", s[:len(s)-1]
	}
	if s == "" || s == "?" {
		return nil, nil
	}
	if c := s[len(s)-1]; c >= '0' && c <= '9' {
		s += "M"
	}
	var err error
	if m.Bytes, err = scaled(s, 1024); err != nil {
		return nil, err
	}
	if m.Bytes == 0 || m.Bytes>>20 >= 1<<31-1024 {
		return nil, nil
	}
	return m, nil
}

// parseExit reads "1:9": the exit code and the signal.
func parseExit(s string) (code, signal *int64, err error) {
	if unknown(s) {
		return nil, nil, nil
	}
	a, b, _ := strings.Cut(s, ":")
	n, err := strconv.ParseInt(a, 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("%q is not an exit code", collector.Clip(s))
	}
	if k, err := strconv.ParseInt(b, 10, 64); err == nil && k != 0 {
		signal = &k
	}
	return &n, signal, nil
}

// parseTRES reads "cpu=12,gres/gpu=2,mem=31000M".
func parseTRES(s string) map[string]string {
	if unknown(s) {
		return nil
	}
	out := map[string]string{}
	for part := range strings.SplitSeq(s, ",") {
		if name, value, ok := strings.Cut(part, "="); ok {
			out[name] = value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

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

// num is a number in any of Slurm's shapes: 5, "5", null, {"set":true,"infinite":false,"number":5}.
// Infinite and unset ones are not known.
type num struct {
	v  int64
	ok bool
}

func (n *num) UnmarshalJSON(b []byte) error {
	*n = num{}
	switch b[0] {
	case '{':
		var o struct {
			Set, Infinite bool
			Number        json.Number
		}
		if err := json.Unmarshal(b, &o); err != nil {
			return err
		}
		if o.Set && !o.Infinite {
			n.set(o.Number.String())
		}
	case '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		n.set(s)
	default:
		n.set(string(b))
	}
	return nil
}

// set takes a number's text; what is not a number is unknown.
func (n *num) set(s string) {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		*n = num{v, true}
	} else if f, err := strconv.ParseFloat(s, 64); err == nil && f > -1<<62 && f < 1<<62 {
		*n = num{int64(f), true}
	}
}

func (n num) pointer() *int64 {
	if !n.ok {
		return nil
	}
	return &n.v
}

// first is a text that newer versions give as a list, of which the first element counts.
type first string

func (f *first) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*f = first(one)
		return nil
	}
	var list []string
	if json.Unmarshal(b, &list) == nil && len(list) > 0 {
		*f = first(list[0])
	}
	return nil
}

// hosts is a node list: text, a list of names, or an object that holds one of them.
type hosts string

func (h *hosts) UnmarshalJSON(b []byte) error {
	var list []string
	switch b[0] {
	case '{':
		var o struct {
			List  json.RawMessage
			Range string
		}
		if err := json.Unmarshal(b, &o); err != nil {
			return err
		}
		*h = hosts(o.Range)
		if o.Range == "" && len(o.List) > 0 && o.List[0] != '{' {
			return h.UnmarshalJSON(o.List)
		}
	case '[':
		if json.Unmarshal(b, &list) == nil {
			*h = hosts(strings.Join(list, ","))
		}
	case '"':
		return json.Unmarshal(b, (*string)(h))
	}
	return nil
}

// comment is the user's comment: text, or slurmdbd's object that has the administrator's too.
type comment string

func (c *comment) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return (*first)(c).UnmarshalJSON(b)
	}
	var o struct{ Job string }
	err := json.Unmarshal(b, &o)
	*c = comment(o.Job)
	return err
}

// exit is an exit code: an object of code and signal, or, before 23.02, the number that wait gave.
type exit struct{ code, signal num }

func (e *exit) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		err := e.code.UnmarshalJSON(b)
		e.signal = num{e.code.v & 0x7f, e.code.ok}
		e.code.v = e.code.v >> 8 & 0xff
		return err
	}
	var o struct {
		Code   num `json:"return_code"`
		Signal struct {
			ID     num `json:"id"`
			Number num `json:"signal_id"`
		}
	}
	err := json.Unmarshal(b, &o)
	e.code, e.signal = o.Code, o.Signal.ID
	if !e.signal.ok {
		e.signal = o.Signal.Number
	}
	return err
}
