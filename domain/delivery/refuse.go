package delivery

import "posthorn/domain/fault"

// Why an action on a delivery is refused. Each refusal is a conflict whose field status carries the present state as
// its code, for programs, and whose sentence says what can be done instead.

// RefuseRetryNow is for a delivery that CanRetryNow refuses.
func RefuseRetryNow(s Status) error {
	if s == Held {
		return conflict("delivery_held", s, "The delivery is held, because its endpoint receives nothing now. Resume or verify the endpoint; held deliveries are then sent.")
	}
	return settled(s, "There is nothing left to retry. Replay it to send the event again.")
}

// RefuseCancel is for a delivery that CanCancel refuses.
func RefuseCancel(s Status) error { return settled(s, "There is nothing left to cancel.") }

// RefuseReplay is for a delivery that CanReplay refuses.
func RefuseReplay(s Status) error {
	return waiting(s, "A replay would send it twice. Use retry-now to send it immediately, or cancel it first.")
}

// RefuseArchive is for a delivery that CanArchive refuses.
func RefuseArchive(s Status) error {
	return waiting(s, "Only finished deliveries can be archived. Cancel it first, or wait.")
}

// The refusals that do not hang on the delivery's own state.
var (
	ErrWaitsItsTurn = fault.New(
		fault.Conflict,
		"delivery_waits_its_turn",
		"The delivery waits for an older one with the same ordering key, and is sent as soon as that one is finished. Retry or cancel the older one.",
	)
	ErrEventExpired = fault.New(
		fault.Conflict,
		"event_expired",
		"The event is older than the retention period, or its data was expunged, so there is nothing left to send. Emit a new event.",
	)
	ErrEndpointDeleted = fault.New(
		fault.Conflict,
		"endpoint_deleted",
		"The delivery's endpoint was deleted. Create a new endpoint and send the event again.",
	)
)

func settled(s Status, fix string) error {
	return conflict("delivery_settled", s, "The delivery is "+s.String()+". "+fix)
}

func waiting(s Status, fix string) error {
	return conflict("delivery_waiting", s, "The delivery is "+s.String()+" and not finished. "+fix)
}

func conflict(code string, s Status, detail string) error {
	return &fault.Error{
		Kind:   fault.Conflict,
		Code:   code,
		Detail: detail,
		Fields: []fault.Field{{Name: "status", Code: s.String(), Detail: "The delivery is " + s.String() + "."}},
	}
}
