package handlers

import (
	"context"
	"time"

	"posthorn/domain/fault"
)

// Sign-ins and what else strangers request of the database wait in a queue of their own, before they take a connection:
// the requests of all others share the connections. A place is held for some 50 ms, most of them for a password.
const (
	queuePlaces = 4
	queueLength = 128
	queueTime   = 3 * time.Second // of the 5 s of a request
)

// ErrBusy is for a stranger's request that finds the queue full.
var ErrBusy = &fault.Error{
	Kind:       fault.Limited,
	Code:       "sign_in_busy",
	RetryAfter: 3,
	Detail:     "Too many people are signing in right now. Wait a few seconds, then try again.",
}

// queue lets a few requests in at a time. A bounded number of others wait.
type queue struct{ places, waiting chan struct{} }

func newQueue(places, length int) *queue {
	return &queue{places: make(chan struct{}, places), waiting: make(chan struct{}, length)}
}

// enter waits for a place, for queueTime at most. The returned function gives it back.
func (q *queue) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-q.places }
	select {
	case q.places <- struct{}{}:
		return leave, nil
	default:
	}
	select {
	case q.waiting <- struct{}{}:
		defer func() { <-q.waiting }()
	default:
		return nil, ErrBusy
	}
	timer := time.NewTimer(queueTime)
	defer timer.Stop()
	select {
	case q.places <- struct{}{}:
		return leave, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, ErrBusy
}

// enter reads the body of a call whole, so that a slow sender holds no place, and waits for a place.
func (k *Kit) enter(c *Call) (leave func(), err error) {
	if c.Request.Body != nil && c.Request.ContentLength != 0 {
		text, err := readBody(c.Writer, c.Request, c.Request.Body, c.maxBody)
		if err != nil {
			return nil, err
		}
		c.Request.Body = newArrived(text)
	}
	return k.queue.enter(c.Ctx())
}
