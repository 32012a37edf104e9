package console

import (
	"net/url"
	"time"

	"posthorn/views/components"
	"posthorn/views/layout"
)

// RejectedView is what was emitted in SQL and could not become an event.
type RejectedView struct {
	Shell        layout.Shell
	Root         string
	Tenant, Code string // of the filter
	Wrong        string // what is wrong with its tenant
	Reasons      []RejectedReason
	Lines        []RejectedLine
	Next         string
}

// RejectedTenant is whom an event was emitted for. One that is none has neither name nor path.
type RejectedTenant struct{ TenantID, Name, Path string }

// RejectedReason is how many of a tenant were rejected with a code.
type RejectedReason struct {
	RejectedTenant
	Code           string
	Count          int64
	Oldest, Newest time.Time
}

// RejectedLine is one that was rejected.
type RejectedLine struct {
	RejectedTenant
	ID, Type, Code, Detail string
	Size                   int // of its data, in bytes
	Rejected               time.Time
}

// only is the list of a tenant and a code alone.
func (v RejectedView) only(r RejectedReason) string {
	return v.Root + "?" + url.Values{"tenant": {r.TenantID}, "code": {r.Code}}.Encode()
}

// total is a sentence about all of them.
func (v RejectedView) total() string {
	var n int64
	for _, r := range v.Reasons {
		n += r.Count
	}
	return components.Many(n, "event is waiting", "events are waiting") + " for a fix. Tenants list, retry, and discard their own events through the API."
}
