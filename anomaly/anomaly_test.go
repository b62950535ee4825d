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

func TestSizesHaveTheUnitThatFits(t *testing.T) {
	for bytes, want := range map[float64]string{0: "0 B", 999: "999 B", 999.6: "1 kB", 58.7e6: "58.7 MB",
		999.4e6: "999 MB", 999.7e6: "1 GB", 24.6e9: "24.6 GB", 1.234e12: "1.23 TB"} {
		if got := Size(bytes); got != want {
			t.Errorf("%g: %s, want %s", bytes, got, want)
		}
	}
}
