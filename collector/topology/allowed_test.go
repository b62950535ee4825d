package topology

import "testing"

func TestAllowed(t *testing.T) {
	a, err := ParseAllowed([]string{"10.1.0.0/16", "192.0.2.7", "fwd1", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for addr, may := range map[string]bool{"10.1.2.3:564": true, "10.2.0.1:564": false, "192.0.2.7:564": true,
		"192.0.2.8:564": false, "fwd1:564": true, "FWD1:564": true, "fwd2:564": false, "[2001:db8::1]:564": true,
		"[::ffff:10.1.2.3]:564": true, "fwd1.evil.site:564": false, "10.1.evil.site:564": false} {
		if err := a.Check(addr); (err == nil) != may {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, bad := range []string{"", "10.1.0.0/40", "fwd1:564"} {
		if _, err := ParseAllowed([]string{bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if err := (Allowed{}).Check("anywhere:1"); err == nil {
		t.Error("without a list any may be gone to")
	}
}
