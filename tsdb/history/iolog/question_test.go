package iolog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseQuestion(t *testing.T) {
	q, err := ParseQuestion([]string{"top-apps", "op=read", "app=a=b"})
	if err != nil || q.Analysis.Name != "top-apps" || q.Params["app"] != "a=b" {
		t.Errorf("%+v %v", q, err)
	}
	if q, err := ParseQuestion([]string{"SELECT 1"}); err != nil || q.SQL != "SELECT 1" || q.Analysis.Name != "" {
		t.Errorf("%+v %v", q, err)
	}
	for _, args := range [][]string{nil, {"tops"}, {"SELECT", "1"}, {"top-apps", "n"}, {"top-apps", "n=x"},
		{"top-apps", "m=1"}} {
		if _, err := ParseQuestion(args); !errors.Is(err, ErrQuery) {
			t.Errorf("%q: error %v", args, err)
		}
	}
}

func TestResultsArePrinted(t *testing.T) {
	r := Result{Columns: []string{"path", "at", "share", "osts"}, Cut: true, Rows: [][]any{
		{"/a\x1b[2J\nb", time.Unix(0, 0).UTC(), 0.1234567, []any{int64(1), int64(2)}}, {"x,y", nil, nil, nil},
	}}
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	want := "path      at                    share     osts\n/a?[2J?b  1970-01-01T00:00:00Z  0.123457  1 2\nx,y      " +
		" -                     -         -\n(the first 2 rows; there are more)\n"
	if table.String() != want {
		t.Errorf("got\n%swant\n%s", table.String(), want)
	}
	texts := fmt.Sprintf("%q", r.Texts())
	want = `[["path" "at" "share" "osts"] ["/a?[2J?b" "1970-01-01T00:00:00Z" "0.123457" "1 2"] ["x,y" "" "" ""]]`
	if texts != want {
		t.Errorf("got\n%s\nwant\n%s", texts, want)
	}
}
