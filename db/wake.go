package db

import (
	"encoding/hex"
	"strings"

	"posthorn/domain/id"
)

// maxAnnounced is how many ids fit into the 8,000 bytes of a notification.
const maxAnnounced = 230

// WakePayload writes a notification of endpoints that have rows to send. again says that old rows are ready again or
// that the lane itself changed, so the owner must read from the head of the lane; otherwise only newer rows matter.
func WakePayload(endpoints []id.UUID, again bool) string {
	var b strings.Builder
	if again {
		b.WriteByte('!')
	}
	if len(endpoints) > maxAnnounced {
		b.WriteString("all")
		return b.String()
	}
	for i, endpointID := range endpoints {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(hex.EncodeToString(endpointID[:]))
	}
	return b.String()
}

// ParseWake reads a notification. all says that it names no endpoint and means every one. An endpoint can be written
// with or without hyphens. Unreadable ids are left out.
func ParseWake(payload string) (endpoints []id.UUID, all, again bool) {
	payload, again = strings.CutPrefix(payload, "!")
	if payload == "all" {
		return nil, true, again
	}
	for part := range strings.SplitSeq(payload, ",") {
		part = strings.ReplaceAll(part, "-", "")
		var endpointID id.UUID
		if len(part) == 32 {
			if _, err := hex.Decode(endpointID[:], []byte(part)); err == nil {
				endpoints = append(endpoints, endpointID)
			}
		}
	}
	return endpoints, false, again
}
