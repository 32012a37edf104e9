package lanes

import (
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
)

// gathering is how a lane whose deliveries share requests waits for more of them. Nothing waits longer than the
// endpoint says, counted from the first row that is in memory.
type gathering struct {
	ripe  bool        // the wait is over
	timer *time.Timer // armed during the wait
	tally tally
}

// tally counts the first ready rows of a lane, so that an arrival counts only what is new.
type tally struct {
	rows    int // of the ready ones that are counted
	n, size int // their events with those behind their keys, and about how many bytes a body of them has
}

// stopGathering ends the wait of what starts now, or is no longer in memory. The caller holds the mutex.
func (l *Lane) stopGathering(now time.Time) {
	l.batch.ripe = false
	if l.batch.timer != nil {
		l.batch.timer.Stop()
		l.batch.timer = nil
		l.held.end(now)
	}
}

// gathers reports whether a lane with ready rows waits for more of them. The caller holds the mutex.
func (d *Dispatcher) gathers(l *Lane) bool {
	b := l.settings.Load().Batch
	if b == nil || b.Wait == 0 || l.batch.ripe || l.probesOnly() || l.isFull(b) {
		return false
	}
	if l.batch.timer == nil {
		l.held.begin(time.Now())
		l.batch.timer = time.AfterFunc(b.Wait, func() { d.ripen(l) })
	}
	return true
}

// ripen ends the wait of a lane. Rows that arrived behind the keys of others are not in memory yet: the lane is read
// again.
func (d *Dispatcher) ripen(l *Lane) {
	d.mu.Lock()
	if l.batch.timer != nil {
		l.held.end(time.Now())
		if l.order != nil {
			d.forgetReady(l)
			d.signal()
		}
		l.batch.timer, l.batch.ripe = nil, true
		d.runnable(l)
	}
	d.mu.Unlock()
	d.Kick()
}

// isFull reports whether what is ready needs no further rows: it makes a whole batch, or is a retry, which has waited
// enough. The caller holds the mutex.
func (l *Lane) isFull(b *endpoint.Batch) bool {
	if l.ready[0].Attempts > 0 || len(l.ready) >= b.Events {
		return true
	}
	t := &l.batch.tally
	for ; t.rows < len(l.ready) && t.n < b.Events && t.size < b.Bytes; t.rows++ {
		j := l.ready[t.rows]
		t.n, t.size = t.n+1+len(j.after), t.size+j.room()
		for _, next := range j.after {
			t.size += next.room()
		}
	}
	return t.n >= b.Events || t.size >= b.Bytes
}

// envelope is about how many bytes a body has beside an event's data.
const envelope = 160

// room is about how many bytes the job needs in a batch's body.
func (j *Job) room() int { return int(j.size()) + len(j.Event.Type) + envelope }

// startsAt notes the start of the job's request.
func (j *Job) startsAt(now time.Time) {
	j.started, j.inFlight = now, true
	if j.Attempts == 0 {
		j.HeldBack = j.Lane.held.since(j.DeliveryID.Time())
	}
}

// load is what a request has so far.
type load struct {
	batch     *endpoint.Batch
	n, size   int
	mostSoFar int // events: each retried one lowers it
}

// takes adds a job if the request has room for it. The first always has.
func (p *load) takes(j *Job) bool {
	most, size := min(p.mostSoFar, delivery.BatchLimit(p.batch.Events, int(j.Attempts))), p.size+j.room()
	if p.n > 0 && (p.n >= most || size > p.batch.Bytes) {
		return false
	}
	p.n, p.mostSoFar, p.size = p.n+1, most, size
	return true
}

// pack adds further ready rows of a lane to the request of one. The caller holds the mutex.
func (d *Dispatcher) pack(l *Lane, first *Job, b *endpoint.Batch, now time.Time) {
	l.batch.tally = tally{}
	p := load{batch: b, mostSoFar: b.Events}
	if l.probesOnly() {
		p.mostSoFar = 1
	}
	p.takes(first)
	d.packKey(first, first, &p, now)
	for len(l.ready) > 0 && p.takes(l.ready[0]) {
		j := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		j.startsAt(now)
		first.Rest = append(first.Rest, j)
		d.packKey(first, j, &p, now)
	}
}

// packKey adds what follows a head in its key. What has no room waits for the key's next turn. The caller holds the
// mutex.
func (d *Dispatcher) packKey(first, head *Job, p *load, now time.Time) {
	for i, next := range head.after {
		if !p.takes(next) {
			for _, left := range head.after[i:] {
				d.unread(left)
			}
			break
		}
		next.startsAt(now)
		first.Rest = append(first.Rest, next)
	}
	head.after = nil
}

// follow remembers what is next of the key of a row. The caller holds the mutex.
func (d *Dispatcher) follow(l *Lane, head *Job, found *Found) {
	rows := found.After[head.Seq]
	for i := range rows {
		event := found.Events[rows[i].EventID]
		if event == nil {
			return
		}
		next := d.remember(l, &rows[i], event, found.Epoch)
		if next == nil {
			return
		}
		head.after = append(head.after, next)
	}
}

// PutBack forgets jobs that their request had no room for: they are read again.
func (d *Dispatcher) PutBack(jobs []*Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range jobs {
		l := j.Lane
		if l.phase == dropped {
			continue // with everything it held
		}
		d.unread(j)
		d.lower(l, j.Seq)
		if j.OrderKey != "" && l.order != nil {
			l.order.recheck[j.OrderKey] = struct{}{}
		}
	}
	d.signal()
}

// FinishBatch is Finish for the jobs of one request. The outcomes are theirs; of is the one that counts for the
// endpoint. It returns what happens after the request, and what becomes of each job.
func (d *Dispatcher) FinishBatch(jobs []*Job, outcomes []Outcome, of int, now time.Time) (Finished, []delivery.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := jobs[0].Lane
	was := l.health.breaker.State
	f := d.end(jobs[0], outcomes[of], now)
	decisions := make([]delivery.Decision, len(jobs))
	for i, j := range jobs {
		j.inFlight = false
		decisions[i] = l.settle(j, outcomes[i], now)
	}
	f.Next = d.goOn(l, was, now)
	return f, decisions
}
