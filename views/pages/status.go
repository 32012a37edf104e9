package pages

import (
	"fmt"
	"time"

	"posthorn/domain/home"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// StatusView compares the platform's performance with its objectives.
type StatusView struct {
	Shell     layout.Shell
	Hours     []StatusHour // the newest first
	Published bool         // egress.json exists
	Homes     []home.Seen  // all homes, this one first; empty: the installation has one database
}

// StatusHour is one hour. Share is the share of successful attempts.
type StatusHour struct {
	Hour     time.Time
	P50, P99 time.Duration
	Measured bool
	Share    float64
}

// The objectives (docs/delivery.md).
const (
	objectiveP50 = 100 * time.Millisecond
	objectiveP99 = time.Second
)

func (h StatusHour) tone() components.Tone {
	switch {
	case !h.Measured:
		return components.Neutral
	case h.P50 > objectiveP50 || h.P99 > objectiveP99:
		return components.Warning
	}
	return components.Good
}

func (h StatusHour) word() string {
	return map[components.Tone]string{components.Neutral: "No data", components.Warning: "Degraded", components.Good: "Operational"}[h.tone()]
}

func (h StatusHour) share() string { return fmt.Sprintf("%.1f%%", 100*h.Share) }

// now is the newest measured hour.
func (v StatusView) now() (h StatusHour) {
	for _, h := range v.Hours {
		if h.Measured {
			return h
		}
	}
	return h
}

// hours describes the range of hours on the page.
func (v StatusView) hours() string {
	text := "Failed requests include those to receivers that are down."
	if len(v.Homes) > 0 {
		text = "Deliveries of the home " + v.Homes[0].Name + ". " + text
	}
	return text
}
