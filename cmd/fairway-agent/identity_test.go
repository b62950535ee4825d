package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/collector/stream"
	"fairway/collector/wire"
)

func TestSecretFilesAreTheOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	for _, c := range []struct {
		mode os.FileMode
		text string
		want string // in the error; empty: taken
	}{
		{0o600, "secret\n", ""}, {0o400, "secret", ""}, {0o640, "secret", "chmod 600"}, {0o604, "secret", "chmod 600"},
		{0o600, " \n", "empty"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := readSecret("daemon.token_file", path)
		if c.want == "" && (err != nil || got != "secret") || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("mode %v, %q: %q, %v", c.mode, c.text, got, err)
		}
		os.Remove(path)
	}
}

func TestClearTextStaysOnThisHost(t *testing.T) {
	for url, ok := range map[string]bool{"unix:///run/s": true, "wss://fairway.site": true, "ws://127.0.0.1:7118": true,
		"ws://localhost:1": true, "ws://[::1]:1": true, "ws://10.0.0.1:1": false, "ws://localhost.site:1": false,
		"ws://127.evil.site:1": false} {
		if err := (&Daemon{URL: url}).validate(); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
		if err := (&Daemon{URL: url, ClearText: true}).validate(); err != nil {
			t.Errorf("%s, allowed: %v", url, err)
		}
	}
	if err := (&Daemon{URL: "unix:///s", Certificate: "c"}).validate(); err == nil {
		t.Error("a certificate without a key was taken")
	}
}

func TestOrdersLeadToForwardersAlone(t *testing.T) {
	done := 0
	o := Orders{By: byMount9p, Allow: []string{"10.1.0.0/16"}}
	move := o.checked(func(context.Context, wire.Order) (json.RawMessage, error) {
		done++
		return nil, nil
	})
	for addr, may := range map[string]bool{"10.1.0.7:564": true, "203.0.113.9:564": false, "evil.site:564": false} {
		before := done
		_, err := move(t.Context(), wire.Order{ID: "o",
			Body: json.RawMessage(`{"forwarder":"fwd1","addr":"` + addr + `"}`)})
		if (err == nil) != may || (done > before) != may {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// TestOrdersLeadNowhereByDefault: an old file without orders.allow gets each order refused by the setting's name, with
// what to write.
func TestOrdersLeadNowhereByDefault(t *testing.T) {
	body := json.RawMessage(`{"forwarder":"fwd1","addr":"10.1.0.7:564","address":"10.1.0.7"}`)
	for by, wants := range map[string]bool{byMount9p: true, byTCPProxy: true, byCES: true, byLNet: false,
		byRemount: false} {
		o := Orders{Enabled: true, By: by}
		none := o.allowsNone()
		if (none != "") != wants || wants && !strings.Contains(none, `allow = ["10.1.0.0/16"]`) {
			t.Errorf("%s: %q", by, none)
		}
		for name, wrap := range map[string]func(stream.OrderHandler) stream.OrderHandler{"move": o.checked,
			"move address": o.checkedAddress} {
			if by == byCES != (name == "move address") || !wants {
				continue
			}
			_, err := wrap(func(context.Context, wire.Order) (json.RawMessage, error) { return nil, nil })(t.Context(),
				wire.Order{ID: "o", Body: body})
			if err == nil || !strings.Contains(err.Error(), none) {
				t.Errorf("%s, %s: %v", by, name, err)
			}
		}
		if bad := (&checked{Orders: none}).failed(); (bad != nil) != wants {
			t.Errorf("%s: check says %v", by, bad)
		}
	}
}
