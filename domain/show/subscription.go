package show

import (
	"encoding/json"
	"time"
)

// Subscription is an AI client's subscription to events, with the endpoint that sends to it.
type Subscription struct {
	ID          string
	Principal   string // who subscribed
	EventType   string
	Arguments   json.RawMessage
	Endpoint    Endpoint
	ExpiresAt   time.Time
	RefreshedAt time.Time
	CreatedAt   time.Time
}
