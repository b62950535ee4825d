package topology

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// CleanName says whether a name from outside has no control character and is UTF-8, so that a terminal or a log shows
// it as it is.
func CleanName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return cleanRest(s[i:])
		}
	}
	return true
}

func cleanRest(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, dirty) }

// dirty says whether a character is an order to a terminal, or changes the direction or order of what is shown.
func dirty(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// Clean replaces every character of a text that a terminal would obey by U+FFFD.
func Clean(s string) string {
	if CleanName(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if dirty(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}
