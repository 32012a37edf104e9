package lanes

import (
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
)

// Wait is the change of what an endpoint asked for with Retry-After, to be saved.
type Wait struct {
	Endpoint id.UUID
	Epoch    int32
	For      time.Duration // the rest of the wait; 0: it is over
	LookIn   time.Duration // until a request is sent nevertheless
	Replaces bool          // the response to a request that was sent during the wait: it replaces a longer wait
}

// Merge is the change after an older one of the same endpoint.
func (w Wait) Merge(older Wait) Wait {
	if w.Replaces || w.Epoch != older.Epoch || w.For > older.For {
		w.Replaces = w.Replaces || older.Replaces
		return w
	}
	return older
}

// inheritWait takes over the rest of a wait from the lane's last owner.
func (l *Lane) inheritWait(leased Lease, now time.Time) {
	if leased.WaitSeconds <= 0 {
		return
	}
	in := func(seconds float64) time.Time { return now.Add(time.Duration(seconds * float64(time.Second))) }
	l.asked = health.Asked{Until: in(leased.WaitSeconds), LookAt: in(leased.LookSeconds)}
	l.waiting = true
}

// applyWait applies a response to the lane's wait. It returns the change to save; nil: nothing to save.
func (l *Lane) applyWait(j *Job, o Outcome, now time.Time) *Wait {
	was := l.asked
	switch wait := o.Decision.LaneWait; {
	case j.looks && (o.Aborted || o.Decision.Repeat || o.Result.Failure.Unsent()):
		l.asked = was.Now(now) // the endpoint did not receive the request
		return nil
	case j.looks:
		l.asked = was.Looked(o.Decision.Class == delivery.Success, wait, now)
	case wait > 0:
		l.asked = was.Extend(wait, now)
	}
	l.waiting = l.asked.Holds(now)
	if l.asked == was {
		return nil
	}
	return &Wait{
		Endpoint: l.id,
		Epoch:    l.waitEpoch,
		Replaces: j.looks,
		For:      max(l.asked.Until.Sub(now), 0),
		LookIn:   max(l.asked.Next().Sub(now), 0),
	}
}

// endWait ends a wait because somebody asked for it. The caller holds the mutex.
func (d *Dispatcher) endWait(l *Lane) {
	l.asked, l.waiting = health.Asked{}, false
	l.stopTimer()
	d.mark(l)
	d.runnable(l)
}

// stopTimer makes a lane try again now instead of later.
func (l *Lane) stopTimer() {
	if l.timer != nil && l.timer.Stop() {
		l.timer = nil
		l.held.end(time.Now())
	}
}
