package api

import (
	"fmt"
	"strings"
)

// Counted is a number of things as people say it: 1 job, 2 jobs, 1 process, 2 processes.
func Counted[T int | int64](n T, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s"):
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
