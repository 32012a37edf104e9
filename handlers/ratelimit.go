package handlers

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"posthorn/domain/fault"
)

// Rate is a token bucket's refill, in requests a second, and its size.
type Rate struct {
	PerSecond int
	Burst     int
}

// bucket is a token bucket as one number: the moment at which it is full again (the "virtual scheduling" form of the
// leaky bucket, ITU-T I.371 annex A). Taking a token is one compare-and-swap.
type bucket struct {
	full atomic.Int64 // nanoseconds on the limiter's clock
}

// take removes one token. It returns how many are left, and in how many whole seconds the bucket is full again.
func (b *bucket) take(now time.Duration, r Rate) (ok bool, left int, reset int) {
	interval := int64(time.Second) / int64(r.PerSecond)
	size := interval * int64(r.Burst)
	for {
		was := b.full.Load()
		next := max(was, int64(now)) + interval
		if next-int64(now) > size {
			return false, 0, seconds(was - int64(now))
		}
		if b.full.CompareAndSwap(was, next) {
			return true, int((size - (next - int64(now))) / interval), seconds(next - int64(now))
		}
	}
}

func seconds(ns int64) int { return int((ns + int64(time.Second) - 1) / int64(time.Second)) }

// limiter holds a bucket for each key, and one for all requests without a key.
type limiter struct {
	rate, anonymous Rate
	now             func() time.Time
	start           time.Time
	keys            sync.Map // id.UUID -> *bucket
	anonymousBucket bucket
}

func newLimiter(rate Rate, now func() time.Time) *limiter {
	if rate.PerSecond <= 0 {
		rate.PerSecond = 10_000
	}
	if rate.Burst <= 0 {
		rate.Burst = 2 * rate.PerSecond
	}
	return &limiter{rate: rate, anonymous: rate, now: now, start: now()}
}

var errLimited = &fault.Error{
	Kind:       fault.Limited,
	Code:       "rate_limited",
	RetryAfter: 1,
	Detail:     "Rate limit exceeded for this key. Wait for the time in Retry-After, and batch events to send fewer requests.",
}

// spend takes a token, writes the state of the bucket into the headers, and rejects the request if it is empty.
func (l *limiter) spend(b *bucket, r Rate, h http.Header) error {
	ok, left, reset := b.take(l.now().Sub(l.start), r)
	h["Ratelimit-Limit"] = []string{strconv.Itoa(r.PerSecond)}
	h["Ratelimit-Remaining"] = []string{strconv.Itoa(left)}
	h["Ratelimit-Reset"] = []string{strconv.Itoa(reset)}
	if !ok {
		return errLimited
	}
	return nil
}

func (l *limiter) spendAnonymous(h http.Header) error {
	return l.spend(&l.anonymousBucket, l.anonymous, h)
}

func (l *limiter) key(b *bucket, h http.Header) error { return l.spend(b, l.rate, h) }
