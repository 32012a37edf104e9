package mcp

import "encoding/json"

// CodeForbidden is the code of the extension for what the caller can't have, or no longer.
const CodeForbidden = -32012

// Gap is the message that tells a client that an event after a cursor was not delivered and will not be. It is signed
// as deliveries are, under an id of its own.
func Gap(cursor string) []byte {
	return control(map[string]any{"type": "gap", "cursor": cursor})
}

// Terminated is the message that tells a client that somebody else has ended its subscription.
func Terminated() []byte {
	return control(map[string]any{
		"type":  "terminated",
		"error": map[string]any{"code": CodeForbidden, "message": "The subscription was revoked."},
	})
}

func control(fields map[string]any) []byte {
	body, err := json.Marshal(fields)
	if err != nil {
		panic(err) // texts and numbers alone
	}
	return body
}
