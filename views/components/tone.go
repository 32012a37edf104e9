// Package components holds the parts of pages. Each takes a struct of what it shows, works without a script, and has
// what assistive technology requires: labels, descriptions and errors are connected to their fields, and states are
// words and not only colors. None has an inline style or script.
package components

import (
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/home"
	"posthorn/domain/show"
	"posthorn/views/icons"
)

// Tone says whether something is good or bad. The zero value is neutral.
type Tone string

// The tones.
const (
	Neutral Tone = ""
	Good    Tone = "ok"
	Info    Tone = "info"
	Warning Tone = "warn"
	Bad     Tone = "bad"
)

// class is the CSS class of a tone.
func (t Tone) class() string {
	if t == Neutral {
		return "tone-quiet"
	}
	return "tone-" + string(t)
}

// icon is the icon of a tone, so that the color is not the only sign.
func (t Tone) icon() icons.Name {
	switch t {
	case Good:
		return icons.Check
	case Warning, Bad:
		return icons.Warning
	}
	return icons.Info
}

// outcomeTone is the color of deliveries that are counted by their status.
func outcomeTone(word string) Tone {
	switch word {
	case delivery.Delivered.String():
		return Good
	case delivery.Failed.String():
		return Bad
	case delivery.Canceled.String(), delivery.Expired.String():
		return Neutral
	}
	return Info
}

// DeliveryTone is the tone of a delivery's status.
func DeliveryTone(d show.Delivery) Tone {
	switch {
	case d.OnHold(), d.Status == delivery.Retrying:
		return Warning
	case d.Status == delivery.Delivered:
		return Good
	case d.Status == delivery.Failed:
		return Bad
	case d.Status.Ended():
		return Neutral
	}
	return Info
}

func deliveryWord(d show.Delivery) string {
	if d.OnHold() {
		return "on hold"
	}
	return d.Status.String()
}

// ConditionTone is the tone of an endpoint's condition.
func ConditionTone(s condition.State) Tone {
	switch s {
	case condition.Active:
		return Good
	case condition.Degraded, condition.Unverified, condition.OnHold, condition.Suspended, condition.Unserved, condition.AskedToWait, condition.Disconnected:
		return Warning
	case condition.Failing, condition.Disabled:
		return Bad
	}
	return Neutral
}

// SeverityTone is the tone of a severity.
func SeverityTone(s health.Severity) Tone {
	switch s {
	case health.OK:
		return Good
	case health.Warned:
		return Warning
	}
	return Bad
}

func severityWord(s health.Severity) string {
	switch s {
	case health.OK:
		return "healthy"
	case health.Warned:
		return "warning"
	}
	return "critical"
}

// answerTone is the tone of an HTTP status.
func answerTone(code int) Tone {
	switch {
	case code >= 200 && code < 300:
		return Good
	case code >= 300 && code < 500:
		return Warning
	case code >= 500:
		return Bad
	}
	return Neutral
}

// HomeTone is the tone of a home's state.
func HomeTone(s home.State) Tone {
	switch {
	case s == home.Unknown:
		return Neutral
	case s.Bad():
		return Bad
	}
	return Good
}
