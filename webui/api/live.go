package api

import (
	"encoding/json"
	"time"

	"fairway/anomaly"
	"fairway/remap"
)

// LiveMessage is one text message of the live feed. A client subscribes by ?topics=a,b.
type LiveMessage struct {
	// Topic is "overview"; "beat" each second; "plans" when one changed; "findings"; "exclusions"; "forwarder:ID".
	Topic string `json:"topic"`
	// Now is the server's clock when the message was made: what is shown is aged by it, not by the
	// reader's own clock, which may be wrong.
	Now      time.Time `json:"now"`
	Overview *Overview `json:"overview,omitempty"` // with topic "overview"
	// Changes are with topic "overview" in place of it, where the listener asked for changes=1 and has the one before:
	// a merge patch (RFC 7396). A list of objects has the patches of those that changed as the member "[]", by place.
	Changes json.RawMessage `json:"changes,omitempty"`
	// with topic "forwarder:ID"; each series has its newest second only
	Forwarder *ForwarderDetail  `json:"forwarder,omitempty"`
	Findings  []anomaly.Finding `json:"findings,omitempty"`
	// Exclusions are with topic "exclusions": when the list changes, and before its lease is half over.
	Exclusions *remap.Feed `json:"exclusions,omitempty"`
}
