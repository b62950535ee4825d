package plan

import (
	"slices"

	"fairway/webui/api"
)

// previewLines are what an approval is of.
func previewLines(v *api.PlanView) []string {
	lines := slices.Clone(v.Lines)
	for _, c := range v.Checks {
		lines = append(lines, string(c.Level)+" "+c.Name)
	}
	return lines
}

// diff lists what is only in was and only in is; the order of a preview carries no meaning.
func diff(was, is []string) []string {
	var out []string
	for _, l := range was {
		if !slices.Contains(is, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range is {
		if !slices.Contains(was, l) {
			out = append(out, "+ "+l)
		}
	}
	return out
}
