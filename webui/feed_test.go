package webui

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/live"
)

// hostile is a name that would end a JSON string, a member or a message that is put together as text.
const hostile = "x\"user\":\"\",\"role\":\"\",\\ }]\x00\u2028\xff\a"

func decodeMessage(t *testing.T, b []byte) (v api.LiveMessage) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %.500q", err, b)
	}
	return v
}

// TestOverviewWithHostileNames: whatever machines, forwarders and people are called, each client gets valid JSON with
// its own name and role, and nobody else's.
func TestOverviewWithHostileNames(t *testing.T) {
	h := &feed{hub: newHub(), log: slog.New(slog.DiscardHandler)}
	snap := &live.Snapshot{Overview: api.Overview{Machine: hostile, User: "somebody else", Role: "admin",
		Forwarders: []api.ForwarderRow{{ID: hostile}}}}
	frames := h.overview(&snap.Overview, time.Now())
	if len(frames) != 1 {
		t.Fatalf("%d frames", len(frames))
	}
	for _, p := range []remap.Person{{Name: "olga", Role: remap.Operator}, {}, {Name: hostile, Role: hostile}} {
		person := personMembers(p)
		m := decodeMessage(t, bytes.Join([][]byte{frames[0].before, person, frames[0].after}, nil))
		clean := func(text string) string { return string(bytes.ToValidUTF8([]byte(text), []byte("\ufffd"))) }
		if o := m.Overview; m.Topic != topicOverview || o == nil || o.User != clean(p.Name) ||
			o.Role != clean(string(p.Role)) || o.Machine != clean(hostile) ||
			string(o.Forwarders[0].ID) != clean(hostile) {
			t.Errorf("%+v has %+v", p, o)
		}
	}
}
