package advise

import (
	"fmt"
	"slices"
	"strings"
)

// ShortNodes lists nodes as batch systems do: cn[002-003,007].
func ShortNodes(names []string) string {
	if len(names) == 0 {
		return "no node"
	}
	names = slices.Sorted(slices.Values(names))
	var out []string
	for i := 0; i < len(names); {
		head, first := splitName(names[i])
		group, from, last := []string{}, first, first
		add := func() {
			if from == last {
				group = append(group, from)
			} else {
				group = append(group, from+"-"+last)
			}
		}
		k := i + 1
		for ; k < len(names) && first != ""; k++ {
			h, d := splitName(names[k])
			if h != head || len(d) != len(first) {
				break
			}
			if d != following(last) {
				add()
				from = d
			}
			last = d
		}
		if k == i+1 {
			out = append(out, names[i])
		} else {
			add()
			out = append(out, head+"["+strings.Join(group[:min(len(group), 4)], ",")+more(len(group)-4)+"]")
		}
		i = k
	}
	return strings.Join(out[:min(len(out), 3)], ",") + more(len(out)-3)
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(",+%d", n)
}

// splitName cuts the digits off a name's end.
func splitName(name string) (head, digits string) {
	head = strings.TrimRight(name, "0123456789")
	return head, name[len(head):]
}

// following is the number after one of digits, with as many digits.
func following(digits string) string {
	b := []byte(digits)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] <= '9' {
			break
		}
		b[i] = '0'
	}
	return string(b)
}
