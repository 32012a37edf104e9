package health

import (
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
)

// Mute is the silence about an endpoint's problems: no mail, no line of a digest, and no alert on the overview says
// them. The zero value is none.
type Mute struct {
	At    time.Time
	Until time.Time // zero: until the endpoint recovers
}

// Holds reports whether alerts are muted at a moment.
func (m Mute) Holds(now time.Time) bool {
	return !m.At.IsZero() && (m.Until.IsZero() || now.Before(m.Until))
}

// Recovered reports whether an endpoint that was muted until it recovers has done so: nothing counts against it since a
// success after that.
func (m Mute) Recovered(c delivery.Counters, r Record, now time.Time) bool {
	return !m.At.IsZero() && m.Until.IsZero() && c.LastSuccessAt.After(m.At) && !Troubled(c, r, now)
}

// Troubled reports whether there is a problem to recover from.
func Troubled(c delivery.Counters, r Record, now time.Time) bool {
	return !c.Clean() || r.Degraded(now)
}

// CheckMute says whether alerts can be muted until a time; zero: until the endpoint recovers, which only one with a
// problem can.
func CheckMute(until time.Time, troubled bool, now time.Time) error {
	if until.IsZero() {
		if troubled {
			return nil
		}
		return fault.New(
			fault.Conflict,
			"endpoint_not_failing",
			"The endpoint has no problem to recover from. Set until to mute its alerts for a time.",
		)
	}
	return endpoint.CheckAhead(until, now)
}
