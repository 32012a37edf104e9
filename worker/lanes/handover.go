package lanes

import (
	"time"

	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/worker/send"
)

// Fresh is a queue row that a transaction of this process has just committed.
type Fresh struct {
	Seq        int64 // 0: the row is not ready, or its number is unknown
	EndpointID id.UUID
	DeliveryID id.UUID
	Event      *send.Payload
	ExpiresAt  *time.Time
}

// maxHanded is how many rows a lane gets by handover before it is read once, so that its floor advances.
const maxHanded = 500

// Mark returns the present time of the dispatcher. Callers take it before the transaction whose rows they hand over
// later.
func (d *Dispatcher) Mark() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.looks
}

// HandOver puts committed rows into memory without a read, starts what can start, and returns the endpoints of the rows
// that must be read instead. A read that ended after the mark has possibly found a row first, and its request has
// possibly ended: such a row is not taken. A lane with older rows to read takes none either.
func (d *Dispatcher) HandOver(mark int64, epoch id.UUID, rows []Fresh) (left []id.UUID) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range rows {
		r := &rows[i]
		l := d.lanes[r.EndpointID]
		if l == nil || !d.takesFresh(l, r, mark) {
			left = append(left, r.EndpointID)
			continue
		}
		row := Row{Seq: r.Seq, TenantID: l.tenant, EndpointID: l.id, DeliveryID: r.DeliveryID, EventID: r.Event.ID, ExpiresAt: r.ExpiresAt}
		j := d.remember(l, &row, r.Event, epoch)
		if j == nil {
			left = append(left, r.EndpointID)
			continue
		}
		l.ready = append(l.ready, j)
		if l.handed++; l.handed >= maxHanded {
			l.window.wanted = true
			d.mark(l)
			d.signal()
		}
		d.runnable(l)
	}
	for j := d.next(now); j != nil; j = d.next(now) {
		d.start(j)
	}
	return left
}

// takesFresh reports whether a lane takes a row that was committed after the mark without a read. The caller holds the
// mutex.
func (d *Dispatcher) takesFresh(l *Lane, r *Fresh, mark int64) bool {
	return r.Seq > l.window.dropBelow && l.looked <= mark &&
		!d.stopped && !l.stopped() && l.order == nil && l.health.breaker.State == health.Closed &&
		!l.window.wanted && !l.window.isReading() && len(l.ready) < l.readAhead() &&
		d.rows < maxReadAhead && d.bytes < maxReadBytes
}
