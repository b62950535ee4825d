package finding

import "testing"

// Evidence is written as the catalogue says, also of metrics that came after this screen was made.
func TestEvidenceHasTheCataloguesUnits(t *testing.T) {
	for _, c := range []struct {
		metric string
		v      float64
		label  string
		text   string
	}{
		{"write_exec", 0.034, "write service", "34 ms"},
		{"read_bytes", 2.5e6, "read", "2.5 MB/s"},
		{"path_loss_ratio", 0.125, "lost on the way", "13 %"},
		{"psi_io_some", 0.5, "stalled on I/O, some", "50 %"},
		{"of_tomorrow", 7, "of_tomorrow", "7.0"},
	} {
		if label, text := quantity(c.metric, c.v); label != c.label || text != c.text {
			t.Errorf("%s: %q, %q; want %q, %q", c.metric, label, text, c.label, c.text)
		}
	}
}
