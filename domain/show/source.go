package show

import (
	"time"

	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/domain/source"
)

// Source is a source as people see it.
type Source struct {
	ID        id.UUID
	Settings  source.Settings
	State     source.State
	CreatedAt time.Time
	UpdatedAt time.Time
}

// SourceTry is what a mapping makes of a message.
type SourceTry struct {
	Message *source.Message // nil: the queue has none
	Event   *event.Emission // nil: see Problem
	Body    []byte          // the event as JSON
	Problem error           // why it becomes no event; a *fault.Error
}

// SourceCounts are the sources of all tenants.
type SourceCounts struct{ Active, Paused, Failing, Waiting int64 }

// Any reports whether there are any.
func (s SourceCounts) Any() bool { return s.Active+s.Paused+s.Failing > 0 }
