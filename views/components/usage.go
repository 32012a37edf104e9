package components

import "time"

// UsageProps is what a tenant may use and has used; of events 0 is no limit.
type UsageProps struct {
	Text                    string    // what the card says of itself
	Resets                  time.Time // when the month's events count anew, UTC
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
