package worker

import (
	"sync"

	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/worker/send"
)

// eventCache keeps the payloads of recent events: an event is read once, however many endpoints it goes to, and not at
// all if it was emitted through this process. The oldest are removed first.
type eventCache struct {
	mu    sync.Mutex
	byID  map[id.UUID]*send.Payload
	order []id.UUID
	head  int
	bytes int64
}

const eventCacheBytes = 12 << 20

func newEventCache() *eventCache { return &eventCache{byID: map[id.UUID]*send.Payload{}} }

// overhead is the memory of an entry besides its data, in bytes.
const overhead = 400

func (c *eventCache) add(events []*send.Payload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		if _, known := c.byID[e.ID]; known || len(e.Data) > eventCacheBytes/8 {
			continue
		}
		c.byID[e.ID] = e
		c.order = append(c.order, e.ID)
		c.bytes += 2*int64(len(e.Data)) + overhead
	}
	for c.bytes > eventCacheBytes && c.head < len(c.order) {
		eventID := c.order[c.head]
		c.head++
		c.bytes -= 2*int64(len(c.byID[eventID].Data)) + overhead
		delete(c.byID, eventID)
	}
	if c.head > len(c.order)/2 {
		c.order = append(c.order[:0], c.order[c.head:]...)
		c.head = 0
	}
}

// find returns the known events and a list of those that must be read.
func (c *eventCache) find(rows []sql.ReadLanesRow) (known map[id.UUID]*send.Payload, missing []queue.EventRef) {
	known = make(map[id.UUID]*send.Payload, len(rows))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range rows {
		eventID := rows[i].EventID
		if _, asked := known[eventID]; asked {
			continue
		}
		e := c.byID[eventID]
		known[eventID] = e
		if e == nil {
			missing = append(missing, queue.EventRef{TenantID: rows[i].TenantID, ID: eventID})
		}
	}
	return known, missing
}
