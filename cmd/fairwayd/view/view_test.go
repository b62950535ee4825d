package view

import (
	"strings"
	"testing"

	"fairway/cmd/fairwayd/config"
)

// TestAViewNeedsAServer: the embedded store is its daemon's alone.
func TestAViewNeedsAServer(t *testing.T) {
	c := config.Default()
	if err := Prepare(&c, "127.0.0.1:0", ""); err == nil || !strings.Contains(err.Error(), "store.kind") {
		t.Errorf("it says %v", err)
	}
}
