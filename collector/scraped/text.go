package scraped

import (
	"errors"
	"strconv"
	"strings"
)

// parseText reads a Prometheus or OpenMetrics exposition and gives the samples whose metric is wanted to each.
// Comments, exemplars and the samples' own times are passed over. It returns how many lines could not be read.
func parseText(text string, wanted func(name string) bool, each func(labels map[string]string, v float64)) (bad int) {
	asked := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		end := strings.IndexAny(line, "{ \t")
		if end < 0 {
			bad++
			continue
		}
		name := line[:end]
		want, known := asked[name]
		if !known {
			want = wanted(name)
			asked[name] = want
		}
		if !want {
			continue
		}
		labels, rest, err := parseLabels(line[end:])
		value := strings.TrimLeft(rest, " \t")
		if end := strings.IndexAny(value, " \t"); end >= 0 {
			value = value[:end] // a time may follow, behind blanks or tabs
		}
		v, notNumber := strconv.ParseFloat(value, 64)
		if err != nil || notNumber != nil {
			bad++
			continue
		}
		labels[nameLabel] = name
		each(labels, v)
	}
	return bad
}

var errLabels = errors.New("not a list of labels")

// parseLabels reads {name="value",...} at the beginning of a text; there may be none.
func parseLabels(text string) (labels map[string]string, rest string, err error) {
	labels = map[string]string{}
	text = strings.TrimLeft(text, " \t")
	if text == "" || text[0] != '{' {
		return labels, text, nil
	}
	text = text[1:]
	for {
		text = strings.TrimLeft(text, " \t,")
		if after, ok := strings.CutPrefix(text, "}"); ok {
			return labels, after, nil
		}
		name, after, ok := strings.Cut(text, "=")
		after = strings.TrimLeft(after, " \t")
		if !ok || !strings.HasPrefix(after, `"`) {
			return nil, "", errLabels
		}
		value, left, ok := unquote(after[1:])
		if !ok {
			return nil, "", errLabels
		}
		labels[strings.TrimSpace(name)], text = value, left
	}
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// unquote reads a label's value up to its quote.
func unquote(text string) (value, rest string, ok bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return unescape.Replace(text[:i]), text[i+1:], true
		}
	}
	return "", "", false
}
