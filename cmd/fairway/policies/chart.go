package policies

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"fairway/remap/policy/periodic"
	"fairway/remap/policy/share"
)

// chartColumns is the width of a drawing beside its names.
const chartColumns = 72

// eighths are bars of 0/8 to 8/8 of a cell's height.
var eighths = []rune(" ▁▂▃▄▅▆▇█")

// drawShares writes a bar a job, the largest first.
func drawShares(w io.Writer, a share.Answer) error {
	jobs := slices.SortedFunc(maps.Keys(a.Shares), func(x, y string) int {
		return cmp.Or(cmp.Compare(a.Shares[y], a.Shares[x]), cmp.Compare(x, y))
	})
	widest := 0
	for _, j := range jobs {
		widest = max(widest, utf8.RuneCountInString(j))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", a.Policy)
	for _, j := range jobs {
		fmt.Fprintf(&b, "%-*s %6.2f %% %s\n", widest, j, a.Shares[j]*100,
			strings.Repeat("█", int(a.Shares[j]*chartColumns+.5)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// drawPattern writes a row an application, as high as its part of the bandwidth it can have, and a row
// for all of them under the system's bandwidth; a column is the mean over its time.
func drawPattern(w io.Writer, s periodic.Set, p periodic.Pattern, u periodic.Unplanned) error {
	total := make([]float64, chartColumns)
	widest := len("all")
	for _, a := range p.Apps {
		widest = max(widest, utf8.RuneCountInString(a.Name))
	}
	var b strings.Builder
	for i, a := range p.Apps {
		used := a.Bandwidth(p.T, chartColumns)
		for c, v := range used {
			total[c] += v
		}
		most := min(s.Apps[i].Procs*s.Link, s.Bandwidth)
		fmt.Fprintf(&b, "%-*s |%s|\n", widest, a.Name, bar(used, most))
	}
	fmt.Fprintf(&b, "%-*s |%s| of %g GB/s\n", widest, "all", bar(total, s.Bandwidth), s.Bandwidth)
	fmt.Fprintf(&b, "%-*s  0%*s\n", widest, "", chartColumns-1, fmt.Sprintf("%.0f s", p.T))
	fmt.Fprintf(&b, "SysEfficiency %.4f (at most %.4f), dilation %.3f; without the pattern %.4f, %.3f\n",
		p.SysEfficiency, p.KnapsackBound, p.Dilation, u.SysEfficiency, u.Dilation)
	_, err := io.WriteString(w, b.String())
	return err
}

// bar draws values of 0 to full; what is not 0 shows.
func bar(values []float64, full float64) string {
	out := make([]rune, len(values))
	for i, v := range values {
		step := int(v/full*8 + .5)
		if v > full*1e-9 {
			step = max(step, 1)
		}
		out[i] = eighths[min(step, 8)]
	}
	return string(out)
}
