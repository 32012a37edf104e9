package lanes

import (
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/delivery"
)

// course advances time for a dispatcher with equally slow requests, and records when they started.
type course struct {
	*bench
	now time.Time
}

// newCourse gives a tenant this many lanes with one request at a time each, and far more deliveries than slots.
func newCourse(lanes int) *course {
	// later than any timer's own clock: none starts anything
	c := &course{bench: newBench(), now: time.Now().Add(time.Hour)}
	tenant := db.NewID()
	for range lanes {
		c.lane(tenant, 1, 20)
	}
	return c
}

// pass advances time in steps of a millisecond.
func (c *course) pass(long, took time.Duration) {
	for until := c.now.Add(long); c.now.Before(until); c.now = c.now.Add(time.Millisecond) {
		c.d.mu.Lock()
		for j := c.d.next(c.now); j != nil; j = c.d.next(c.now) {
			c.d.start(j)
		}
		c.d.mu.Unlock()
		for done := c.done; done < len(c.started) && c.now.Sub(c.started[done].started) >= took; done++ {
			then := c.d.Finish(c.started[done], Outcome{
				Decision: delivery.Decision{
					Status: delivery.Delivered,
					Class:  delivery.Success,
				},
				Result: delivery.Result{Status: 200},
			}, c.now)
			c.d.Settle([]*Job{c.started[done]})
			if c.done++; then.Next != nil {
				c.started = append(c.started, then.Next)
			}
		}
	}
}

// most is the greatest number of starts within a duration, from a moment on.
func (c *course) most(within time.Duration, from time.Time) (n int) {
	first := 0
	for last, j := range c.started {
		for j.started.Sub(c.started[first].started) >= within {
			first++
		}
		if !c.started[first].started.Before(from) {
			n = max(n, last-first+1)
		}
	}
	return n
}

func TestRequestsThatEndTogetherDoNotBeginTogetherAgain(t *testing.T) {
	t.Parallel()
	const took = time.Second
	c := newCourse(2 * maxInFlight)
	started := c.now
	c.pass(4*took, took)
	if got := c.most(20*time.Millisecond, started); got != maxInFlight/2 {
		t.Fatalf("at first %d requests begin at once: nothing is known of them", got)
	}
	if got := c.most(20*time.Millisecond, started.Add(took)); got > 60 {
		t.Errorf("%d requests begin within 20 ms, of a tenant whose %d requests take %s", got, maxInFlight/2, took)
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if c.d.inFlight < maxInFlight/2-5 {
		t.Errorf("%d requests are under way: its pace keeps the tenant from its share", c.d.inFlight)
	}
}

func TestAPaceDoesNotLimitFastResponsesOrFewRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lanes int
		took  time.Duration
	}{
		"fast answers": {2 * maxInFlight, 50 * time.Millisecond},
		"few requests": {pacedFrom, 10 * time.Second},
	} {
		course := newCourse(c.lanes)
		course.pass(4*c.took, c.took)
		if want := 4 * min(c.lanes, maxInFlight/2); len(course.started) < want {
			t.Errorf("%s: %d requests of %d that could", name, len(course.started), want)
		}
	}
}

func TestAPaceForgetsSlowResponses(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Now()
	p.ended(0)
	for range 200 {
		p.ended(15 * time.Second)
	}
	p.started(now)
	if wait := p.wait(pacedFrom, now.Add(-paceDebt*maxGap)); wait <= 0 || wait > maxGap {
		t.Errorf("the next start after %s, of requests that take 15 s", wait)
	}
	for range 100 {
		p.ended(5 * time.Millisecond)
	}
	p.started(now)
	if wait := p.wait(maxInFlight, now); wait > 0 {
		t.Errorf("the next start after %s, of requests that take 5 ms by now", wait)
	}
}
