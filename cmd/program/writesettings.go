package program

import (
	"fmt"
	"reflect"
	"strings"
)

// Chosen is a setting that a program writes into a new file.
type Chosen struct {
	Key   string // with its tables: listen.tls.key
	Value any
	From  string // where the value is from; "" says nothing
}

// WriteSettings is the text of a file with some settings of c, a pointer to a struct: each below its help and where its
// value is from. Settings of a table follow each other; those of no table come first. A key that c has no field for is
// a mistake of the program.
func WriteSettings(c any, chosen []Chosen) string {
	help := map[string]string{}
	walk("", "", reflect.ValueOf(c).Elem(), func(s setting) { help[s.key] = s.help })
	var b strings.Builder
	table := ""
	for _, s := range chosen {
		at := max(0, strings.LastIndexByte(s.Key, '.'))
		text, known := help[s.Key]
		if !known { // an entry of a table that is the site's own
			text, known = help[s.Key[:at]]
		}
		if !known {
			panic("no setting " + s.Key)
		}
		if head := s.Key[:at]; head != table {
			table = head
			fmt.Fprintf(&b, "\n[%s]\n", table)
		}
		if s.From != "" {
			text = strings.TrimSuffix(text, ".") + " (" + s.From + ")."
		}
		for _, line := range wrap(text, 100) {
			fmt.Fprintf(&b, "# %s\n", line)
		}
		fmt.Fprintf(&b, "%s = %s\n", strings.TrimPrefix(s.Key[at:], "."), literal(reflect.ValueOf(s.Value)))
	}
	return b.String()
}
