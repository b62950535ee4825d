package archive

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"fairway/tsdb/history/iolog"
)

const page = "../../../docs/archive.md"

// Every query of the documentation is answered, and every table, column and analysis is described.
func TestDocumentation(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir := small(t)
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllSubmatch(b, -1)
	asked := 0
	for _, block := range blocks {
		for q := range strings.SplitSeq(strings.TrimSpace(string(block[1])), ";") {
			if strings.TrimSpace(q) == "" {
				continue
			}
			asked++
			if _, err := Query(t.Context(), dir, q, nil, 0); err != nil {
				t.Errorf("%s\n%v", q, err)
			}
		}
	}
	if asked < 6 {
		t.Errorf("only %d queries in %s", asked, page)
	}
	for _, table := range tables {
		for _, c := range table.columns {
			if !strings.Contains(string(b), "`"+c.name+"`") {
				t.Errorf("%s does not describe %s.%s", page, table.name, c.name)
			}
		}
	}
	for _, a := range iolog.Analyses {
		if !strings.Contains(string(b), "`"+a.Name+"`") {
			t.Errorf("%s does not describe the analysis %s", page, a.Name)
		}
	}
}
