// Package quota decides what happens to events when their tenant has used its quota: events per second and month, bytes
// of data. The limits are in domain/settings.
package quota

import (
	"fmt"
	"slices"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/settings"
	"posthorn/domain/words"
)

// Limits is how much a tenant can use; 0 is unlimited.
type Limits settings.Limits

// Read lays the settings of the platform and of a tenant, both JSON objects, over each other. The size of an event is
// limited here only where one of them says so: otherwise the server's configuration does.
func Read(platform, tenant []byte) Limits {
	l := Limits(settings.ReadLimits(platform, tenant))
	f := settings.OfTenant()[slices.IndexFunc(settings.OfTenant(), func(f settings.Field) bool { return f.Name == settings.MaxPayload })]
	_, here := f.Own(tenant)
	if _, there := f.Own(platform); !here && !there {
		l.MaxPayload = 0
	}
	return l
}

// Burst is the size of the bucket that events per second fill: what was not used within two seconds can be used at
// once.
func (l Limits) Burst() int { return 2 * l.EventsPerSecond }

// Month is the beginning of the month, UTC, in which a moment counts, and Resets that of the next.
func Month(at time.Time) time.Time {
	at = at.UTC()
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// Resets is when the count of a month's events starts over.
func Resets(at time.Time) time.Time { return Month(at).AddDate(0, 1, 0) }

// Refusal rejects an event because of its tenant's usage, with the response's headers.
type Refusal struct {
	Fault *fault.Error
	Limit int64
	Reset int // seconds until there is room again
}

func (r *Refusal) Error() string { return r.Fault.Error() }

func (r *Refusal) Unwrap() error { return r.Fault }

// OverSecond refuses what goes beyond the events of a second.
func (l Limits) OverSecond() *Refusal {
	return &Refusal{
		Limit: int64(l.EventsPerSecond),
		Reset: 1,
		Fault: &fault.Error{
			Kind:       fault.Limited,
			Code:       "events_per_second_limit",
			RetryAfter: 1,
			Detail: fmt.Sprintf(
				"Quota exceeded: this tenant can emit %s events per second, with bursts of %s. The event wasn't stored. Send it again after the time in Retry-After, or ask the operator of this platform for a higher quota.",
				words.Number(l.EventsPerSecond), words.Number(l.Burst())),
		},
	}
}

// OverMonth refuses what goes beyond the events of a month.
func (l Limits) OverMonth(now time.Time) *Refusal {
	rest := int(Resets(now).Sub(now)/time.Second) + 1
	return &Refusal{
		Limit: int64(l.EventsPerMonth),
		Reset: rest,
		Fault: &fault.Error{
			Kind:       fault.Limited,
			Code:       "events_per_month_limit",
			RetryAfter: rest,
			Detail: fmt.Sprintf(
				"Quota exceeded: this tenant can emit %s events per month (UTC). The event wasn't stored. Ask the operator of this platform for a higher quota, or send it again next month.",
				words.Number(l.EventsPerMonth)),
		},
	}
}

// CheckPayload rejects data that is larger than the tenant's limit.
func (l Limits) CheckPayload(size int) error {
	if l.MaxPayload == 0 || size <= l.MaxPayload {
		return nil
	}
	detail := fmt.Sprintf("The data has %s bytes; this tenant's maximum is %s. Send a reference to the rest.", words.Number(size), words.Number(l.MaxPayload))
	return &fault.Error{
		Kind:   fault.TooLarge,
		Code:   "payload_too_large",
		Detail: detail,
		Fields: []fault.Field{{Name: "data", Code: "payload_too_large", Detail: detail}},
	}
}

// Stage is how much of a month's events is used, as notices tell of it.
type Stage string

// The stages. Each is told once a month and limit.
const (
	Below   Stage = ""
	High    Stage = "most" // four fifths
	Reached Stage = "all"
)

// StageOf is the stage of so many used events.
func (l Limits) StageOf(used int64) Stage {
	switch {
	case l.EventsPerMonth == 0 || used < (int64(l.EventsPerMonth)*4+4)/5:
		return Below
	case used < int64(l.EventsPerMonth):
		return High
	}
	return Reached
}
