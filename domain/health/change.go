package health

import (
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/id"
)

// Change is the health of an endpoint after an outcome, as the owner of its lane saves it.
type Change struct {
	EndpointID, TenantID id.UUID
	Epoch                int32 // of the counters; a change of an older epoch is void, since the counters were cleared
	N                    int64 // the greater is the newer
	Counters             delivery.Counters
	Breaker              Breaker
	GoneAt               time.Time // the last 410 since the last success; zero: none
	OutageFrom           time.Time // when a breaker opened that closes after a long outage; zero: no such outage
	// this closed the breaker: what waited behind it is sent, also what has a later retry
	Closed    bool
	LastError LastError
}

// LastError is an endpoint's last failure, as its owner sees it. Text and Excerpt are valid UTF-8.
type LastError struct {
	Status  int
	Failure delivery.Failure
	Text    string // never empty for a failure
	Excerpt string // the start of the response's body
}

// Merge adds what only an older change of the same endpoint knows.
func (c *Change) Merge(older Change) {
	if c.OutageFrom.IsZero() {
		c.OutageFrom = older.OutageFrom
	}
	c.Closed = c.Closed || older.Closed
	if c.LastError.Text == "" {
		c.LastError = older.LastError
	}
}
