package iolog

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Question is what somebody asks: a named analysis with parameters, or SQL.
type Question struct {
	Analysis Analysis          // without a name where SQL is asked
	Params   map[string]string // of the analysis
	SQL      string
}

// ParseQuestion reads a command line: NAME [parameter=value...], or one argument of SQL. Its errors wrap ErrQuery.
func ParseQuestion(args []string) (Question, error) {
	if len(args) == 0 {
		return Question{}, fmt.Errorf("%w: nothing is asked", ErrQuery)
	}
	a, ok := Named(args[0])
	if !ok {
		if len(args) > 1 || !strings.ContainsAny(args[0], " \t\n") {
			return Question{},
				fmt.Errorf(
					"%w: no analysis is called %q (without arguments the command lists them); SQL is one argument",
					ErrQuery, args[0])
		}
		return Question{SQL: args[0]}, nil
	}
	q := Question{Analysis: a, Params: map[string]string{}}
	for _, arg := range args[1:] {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return Question{}, fmt.Errorf("%w: %q: want parameter=value", ErrQuery, arg)
		}
		q.Params[name] = value
	}
	_, err := a.Bind(q.Params)
	return q, err
}

// WriteAnalyses lists the named analyses with their parameters and defaults.
func WriteAnalyses(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, a := range Analyses {
		fmt.Fprintf(t, "%s\t%s\n", a.Name, a.Does)
		for _, p := range a.Params {
			fmt.Fprintf(t, "\t  %s=%s  %s\n", p.Name, p.Default, p.Does)
		}
	}
	return t.Flush()
}

// WriteTable prints a result in columns; a missing value is "-".
func (r Result) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(r.Columns, "\t"))
	for _, row := range r.Rows {
		for i, v := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell(v, "-"))
		}
		fmt.Fprintln(t)
	}
	if r.Cut {
		fmt.Fprintf(t, "(the first %d rows; there are more)\n", len(r.Rows))
	}
	return t.Flush()
}

// Texts are a result's cells as texts, its heading first; a missing value is empty.
func (r Result) Texts() [][]string {
	all := [][]string{r.Columns}
	for _, row := range r.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = cell(v, "")
		}
		all = append(all, line)
	}
	return all
}

func cell(v any, unknown string) string {
	switch v := v.(type) {
	case nil:
		return unknown
	case float64:
		return strconv.FormatFloat(v, 'g', 6, 64)
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return cell(f, unknown)
		}
		return v.String()
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = cell(v[i], unknown)
		}
		return strings.Join(parts, " ")
	case string:
		return strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f { // paths come from users: no escape sequence reaches a terminal
				return '?'
			}
			return r
		}, v)
	}
	return fmt.Sprint(v)
}
