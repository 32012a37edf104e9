package queue

import (
	"time"

	"posthorn/domain/id"
)

// The parameters of statements whose arrays hold NULLs, which the generated types can't hold. The fields and their
// order are the same.
type (
	// healthColumns are those of SaveHealth.
	healthColumns struct {
		Endpoints    []id.UUID
		Tenants      []id.UUID
		Epochs       []int32
		Failures     []int32
		Auths        []int32
		Refused      []*time.Time
		Exhausted    []int32
		Unhealthy    []*time.Time
		TLS          []*time.Time
		Firsts       []*time.Time
		Lasts        []*time.Time
		Successes    []*time.Time
		Breakers     []int16
		Opened       []*time.Time
		NextProbes   []*time.Time
		Probes       []int32
		Gone         []*time.Time
		Outages      []*time.Time
		Statuses     []int16
		LastFailures []int16
		Errors       []string
		Excerpts     []string
	}
	// eventColumns are those of InsertEvents and InsertEventsOnce.
	eventColumns struct {
		Tenants         []id.UUID
		Created         []time.Time
		Ids             []id.UUID
		Types           []string
		Datas           [][]byte
		Keys            []string
		Channels        []string
		Versions        []string
		Occurred        []*time.Time
		Deliver         []*time.Time
		RoutingVersions []int64
		ExternalIds     []string
		Traceparents    []string
		ContentTypes    []string
		Unsent          []bool
		Expires         []*time.Time
	}
	// queueColumns are those of InsertQueue.
	queueColumns struct {
		Tenants    []id.UUID
		Deliveries []id.UUID
		Events     []id.UUID
		Endpoints  []id.UUID
		States     []int16
		OrderKeys  []string
		Due        []*time.Time
		Expires    []*time.Time
	}
)
