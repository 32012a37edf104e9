package console

import (
	"net/url"

	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// RejectedView lists the rejected events that were emitted in SQL.
type RejectedView struct {
	Sources      show.SourceCounts
	Shell        layout.Shell
	Root         string
	Tenant, Code string            // of the filter
	Wrong        map[string]string // errors of the filter
	Reasons      []show.RejectedReason
	Rows         []show.Rejected
	Newer, Older string
}

// only is the address of the list of one tenant and one code.
func (v RejectedView) only(r show.RejectedReason) string {
	return v.Root + "?" + url.Values{"tenant": {id.Tenant.Format(r.TenantID)}, "code": {r.Code}}.Encode()
}

// total is a sentence with their number.
func (v RejectedView) total() string {
	var n int64
	for _, r := range v.Reasons {
		n += r.N
	}
	return components.Many(n, "event is waiting", "events are waiting") + " for a fix. Tenants list, retry, and discard their own events through the API."
}
