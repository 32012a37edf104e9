package console

import (
	"net/url"
	"time"

	"posthorn/views/components"
	"posthorn/views/layout"
)

// RejectedView lists the rejected events that were emitted in SQL.
type RejectedView struct {
	Shell        layout.Shell
	Root         string
	Tenant, Code string // of the filter
	Wrong        string // the error of the tenant filter
	Reasons      []RejectedReason
	Lines        []RejectedLine
	Next         string
}

// RejectedTenant is the tenant for which an event was emitted. An unknown tenant has neither name nor path.
type RejectedTenant struct{ TenantID, Name, Path string }

// RejectedReason counts a tenant's events that were rejected with a code.
type RejectedReason struct {
	RejectedTenant
	Code           string
	Count          int64
	Oldest, Newest time.Time
}

// RejectedLine is one rejected event.
type RejectedLine struct {
	RejectedTenant
	ID, Type, Code, Detail string
	Size                   int // of its data, in bytes
	Rejected               time.Time
}

// only is the address of the list of one tenant and one code.
func (v RejectedView) only(r RejectedReason) string {
	return v.Root + "?" + url.Values{"tenant": {r.TenantID}, "code": {r.Code}}.Encode()
}

// total is a sentence with their number.
func (v RejectedView) total() string {
	var n int64
	for _, r := range v.Reasons {
		n += r.Count
	}
	return components.Many(n, "event is waiting", "events are waiting") + " for a fix. Tenants list, retry, and discard their own events through the API."
}
