package anomaly

import "testing"

func TestDigitsAreThoseOfASentence(t *testing.T) {
	for x, want := range map[float64]string{0.021: "0.021", 1: "1", 2.34: "2.3", 43.6: "44", 99.4: "99", 99.6: "100",
		112.3: "112", 12345: "12345"} {
		if got := Digits(x); got != want {
			t.Errorf("%g: %s, want %s", x, got, want)
		}
	}
}
