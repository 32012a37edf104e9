package pages

import (
	"posthorn/domain/health"
	"posthorn/views/components"
	"posthorn/views/icons"
)

// muteItems are the ways to mute an endpoint's alerts. troubled: it has a problem to recover from.
func muteItems(endpoint string, troubled bool) []components.MenuItem {
	items := []components.MenuItem{
		muteItem(endpoint, "For 1 hour", "3600"),
		muteItem(endpoint, "For 1 day", "86400"),
	}
	if troubled {
		items = append(items, muteItem(endpoint, "Until it recovers", "recovered"))
	}
	return items
}

func muteItem(endpoint, label, until string) components.MenuItem {
	return components.MenuItem{
		Label:  label,
		Icon:   icons.Clock,
		Action: endpoint + "/mute",
		Fields: map[string]string{"for": until},
	}
}

// mutedText says until when alerts are muted, up to the time itself.
func mutedText(m health.Mute) string {
	if m.Until.IsZero() {
		return "Alerts muted until it recovers"
	}
	return "Alerts muted until "
}

// mute says how the endpoint's alerts are muted, as far as they still are.
func (h EndpointHead) mute() (health.Mute, bool) { return h.Endpoint.Mute, h.Endpoint.Muted(h.Now) }

// mayMute reports whether the reader can mute its alerts. A listener has none.
func (h EndpointHead) mayMute() bool { return h.MayChange && h.Endpoint.Mutable() }

// pauseEnds are the ends of a pause that the dialog offers.
func pauseEnds() []components.Option {
	return []components.Option{
		{Label: "Never: resume it yourself", Value: ""},
		{Label: "In 1 hour", Value: "3600"},
		{Label: "In 4 hours", Value: "14400"},
		{Label: "In 1 day", Value: "86400"},
		{Label: "In 7 days", Value: "604800"},
		{Label: "At a time…", Value: "at"},
	}
}
