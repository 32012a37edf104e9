package health

import (
	"time"

	"posthorn/domain/endpoint"
)

// unverifiedHold is how long an endpoint that was never verified holds a delivery. Other endpoints hold deliveries for
// as long as the tenant keeps its events.
const unverifiedHold = 7 * day

// heldNotice is how long before the first held delivery expires its owner is told of it, where it is held that long.
const heldNotice = 2 * day

// HoldFor is how long a delivery to an endpoint that receives nothing now is held before it fails as expired.
func HoldFor(s endpoint.Status, retentionDays int) time.Duration {
	retention := time.Duration(retentionDays) * day
	if s == endpoint.Unverified {
		return min(unverifiedHold, retention)
	}
	return retention
}

// NoticeAfter is how old the oldest held delivery is when its owner is told that it is going to expire.
func NoticeAfter(hold time.Duration) time.Duration { return hold - min(heldNotice, hold/2) }
