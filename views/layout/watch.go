package layout

import (
	"posthorn/domain/show"
	"posthorn/views/components"
)

// watchTone is how it went: good if everything was delivered, bad if nothing was.
func watchTone(j show.Job) components.Tone {
	o := j.Outcome
	switch {
	case !j.Settled() || o == nil || o.Made == 0:
		return components.Info
	case o.Delivered == o.Made:
		return components.Good
	case o.Delivered == 0:
		return components.Bad
	}
	return components.Warning
}
