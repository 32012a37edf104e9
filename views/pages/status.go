package pages

import (
	"fmt"
	"time"

	"posthorn/views/components"
	"posthorn/views/layout"
)

// StatusView is how the platform does, held against what it promises.
type StatusView struct {
	Shell     layout.Shell
	Hours     []StatusHour // the newest first
	Published bool         // egress.json is there
}

// StatusHour is one hour. Share is that of the attempts that succeeded.
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

// now is the newest hour in which something was measured.
func (v StatusView) now() (h StatusHour) {
	for _, h := range v.Hours {
		if h.Measured {
			return h
		}
	}
	return h
}
