package components

import "time"

// UsageProps are a tenant's limits and usage; 0 events is unlimited.
type UsageProps struct {
	Text                    string    // the introduction of the card
	Resets                  time.Time // when the month's count restarts, UTC
	Events, EventsPerMonth  int64
	EventsPerSecond         int64
	Endpoints, MaxEndpoints int64
	MaxPayload              int64 // bytes of an event's data
}

func (p UsageProps) perSecond() string {
	if p.EventsPerSecond == 0 {
		return "Unlimited"
	}
	return "up to " + Count(p.EventsPerSecond)
}
