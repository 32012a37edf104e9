package pages

import (
	"time"

	"posthorn/domain/feed"
	"posthorn/domain/show"
	"posthorn/views/components"
)

// ConsumersView is the first page of a feed: who reads it.
type ConsumersView struct {
	EndpointHead
	Rows   []show.Consumer
	URL    string // at which consumers read
	Secret string // of the feed, shown once after it was created
	Public string
	Token  string // of a consumer, shown once
	Of     string // its name
	Name   string // the form, as it was sent
	Wrong  map[string]string
}

// starting are the places at which a consumer can begin.
func starting() []components.Option {
	return []components.Option{
		{Value: feed.Now, Label: "With new events"},
		{Value: feed.Oldest, Label: "With the oldest event"},
		{Value: components.OtherTime, Label: "At a time"},
	}
}

// lagText says how many events a consumer is behind.
func lagText(l feed.Lag) string {
	if l.Events == 0 && !l.More {
		return "None"
	}
	n := components.Count(int64(l.Events))
	if l.More {
		return "More than " + n
	}
	return n
}

// lagTone is how the lag of a consumer is shown.
func (v ConsumersView) lagTone(c show.Consumer) components.Tone {
	if !c.Lag.LateSince(c.AckedAt, v.Now).IsZero() {
		return components.Warning
	}
	return components.Good
}

// behindText says for how long the oldest event has waited.
func behindText(l feed.Lag) string {
	if l.Waiting < time.Second {
		return "Up to date"
	}
	return components.Duration(l.Waiting) + " behind"
}
