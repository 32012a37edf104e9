package endpoint

import (
	"fmt"
	"time"

	"posthorn/domain/fault"
)

// Status is the state of an endpoint.
type Status string

// The states (docs/health.md).
const (
	Unverified Status = "unverified" // has not proved itself; its deliveries are held
	Active     Status = "active"
	Paused     Status = "paused"   // by a member
	Disabled   Status = "disabled" // by Posthorn, with a reason
)

// Statuses lists the states.
func Statuses() []Status { return []Status{Unverified, Active, Paused, Disabled} }

// Change is what an action does to an endpoint's state.
type Change struct {
	To     Status // equal to the present state where nothing changes
	Verify bool   // a verification is sent; its success makes the endpoint active
	// ResumeAt is when a pause ends by itself; zero: as it was, for a new pause when somebody resumes the endpoint
	ResumeAt time.Time
}

// Pause says what pausing an endpoint in a state does. Pausing a paused one changes nothing; what receives nothing
// anyway can't be paused, since resuming would then skip what keeps it from receiving. The refusal names the present
// state.
func Pause(s Status) (Change, error) {
	switch s {
	case Active, Paused:
		return Change{To: Paused}, nil
	case Unverified:
		return Change{}, refuse(s, "endpoint_unverified", "The endpoint is unverified and receives nothing. You can pause it once it is verified.")
	}
	return Change{}, refuse(s, "endpoint_disabled", "The endpoint is disabled and receives nothing. You can pause it once it is resumed.")
}

// mostAhead is how far ahead a pause and a mute can end.
const mostAhead = 30 * 24 * time.Hour

// CheckAhead says whether a pause or a mute can end at a time.
func CheckAhead(until, now time.Time) error {
	if until.After(now) && until.Sub(now) <= mostAhead {
		return nil
	}
	return fault.InvalidField("until", "out_of_range", fmt.Sprintf("until must be in the future, at most %d days ahead.", int(mostAhead.Hours())/24))
}

// PauseUntil is Pause with an end; zero: when somebody resumes the endpoint. A paused endpoint gets another end.
func PauseUntil(until, now time.Time) func(Status) (Change, error) {
	return func(s Status) (Change, error) {
		change, err := Pause(s)
		if err != nil || until.IsZero() {
			return change, err
		}
		change.ResumeAt = until
		return change, CheckAhead(until, now)
	}
}

// Resume says what resuming an endpoint in a state does: a paused one is active at once, a disabled one has to prove
// itself first, an active one stays as it is. An unverified one has not been stopped by anybody.
func Resume(s Status) (Change, error) {
	switch s {
	case Active, Paused:
		return Change{To: Active}, nil
	case Disabled:
		return Change{To: Disabled, Verify: true}, nil
	}
	return Change{}, refuse(s, "endpoint_unverified", "The endpoint is unverified. Verify it; it then becomes active.")
}

// TestType is the event type of a test that names no other. Such an event is for one endpoint only.
const TestType = "endpoint.test"

// Test says whether an endpoint in a state can be sent a test event; the refusal says what to do first.
func Test(s Status) error {
	fix := map[Status]string{
		Unverified: "It is unverified: verify it first.",
		Paused:     "It is paused: resume it first.",
		Disabled:   "It is disabled: resume it first, which verifies it.",
	}[s]
	if fix == "" {
		return nil
	}
	return refuse(s, "endpoint_not_active", "The endpoint receives nothing now, so a test event would wait. "+fix)
}

// refuse is a conflict that names the present state for programs.
func refuse(s Status, code, detail string) error {
	return &fault.Error{
		Kind:   fault.Conflict,
		Code:   code,
		Detail: detail,
		Fields: []fault.Field{{Name: "status", Code: string(s), Detail: "The endpoint is " + string(s) + "."}},
	}
}
