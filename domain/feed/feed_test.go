package feed_test

import (
	"testing"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/id"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestAStartIsAWordOrATime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]feed.Start{
		"":                          {},
		"now":                       {},
		"oldest":                    {Oldest: true},
		"2026-11-01T13:00:00+01:00": {At: now},
	} {
		if got, err := feed.ParseStart(text); err != nil || got.Oldest != want.Oldest || !got.At.Equal(want.At) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"Now", "yesterday", "2026-11-01", "0001-01-01T00:00:00Z", "-1"} {
		if _, err := feed.ParseStart(text); !fault.Is(err, "start_malformed") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAnEndpointIsRewoundToThePast(t *testing.T) {
	t.Parallel()
	for at, ok := range map[time.Time]bool{{}: true, now.Add(-time.Hour): true, now: true, now.Add(time.Second): false} {
		if err := (feed.Start{At: at}).Past(now); (err == nil) != ok || err != nil && !fault.Is(err, "start_malformed") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestAConsumerIsLateIfItAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lag   feed.Lag
		acked time.Time
		since time.Time
	}{
		"nothing waits":            {feed.Lag{}, now.Add(-72 * time.Hour), time.Time{}},
		"an event waits for long":  {feed.Lag{Events: 1, Waiting: 2 * time.Hour}, now.Add(-72 * time.Hour), now.Add(-2 * time.Hour)},
		"it reads a long backlog":  {feed.Lag{Events: 10_000, More: true, Waiting: 72 * time.Hour}, now.Add(-time.Minute), time.Time{}},
		"it stopped in a backlog":  {feed.Lag{Events: 10_000, More: true, Waiting: 72 * time.Hour}, now.Add(-3 * time.Hour), now.Add(-3 * time.Hour)},
		"events from before a log": {feed.Lag{More: true, Waiting: 72 * time.Hour}, now.Add(-3 * time.Hour), now.Add(-3 * time.Hour)},
		"an event waits briefly":   {feed.Lag{Events: 1, Waiting: time.Minute}, now.Add(-72 * time.Hour), time.Time{}},
	} {
		if got := c.lag.LateSince(c.acked, now); !got.Equal(c.since) {
			t.Errorf("%s: late since %s, want %s", name, got, c.since)
		}
	}
}

func TestAFeedThatNobodyReadsIsWarnedOfFirst(t *testing.T) {
	t.Parallel()
	for days, want := range map[int]feed.Verdict{0: {}, 13: {}, 14: {Warn: true}, 29: {Warn: true}, 30: {Disable: true}, 90: {Disable: true}} {
		got := feed.Assess(now.AddDate(0, 0, -days), now)
		if got.Warn != want.Warn || got.Disable != want.Disable || !got.DisableAt.Equal(now.AddDate(0, 0, 30-days)) {
			t.Errorf("after %d days: %+v", days, got)
		}
	}
}

func TestAnOffsetIsThePlaceOfAnEvent(t *testing.T) {
	t.Parallel()
	last := int64(0)
	for _, p := range []feed.Place{{Position: 0, Index: 1}, {Position: 0, Index: 1999}, {Position: 7, Index: 1}, {Position: 1<<42 - 1, Index: 2047}} {
		offset := p.Offset()
		if got, err := feed.PlaceAt(offset); err != nil || got != p || offset <= last || float64(offset) != float64(int64(float64(offset))) || offset > 1<<53-1 {
			t.Errorf("%+v is %d, which is %+v, %v", p, offset, got, err)
		}
		last = offset
	}
	if n := (feed.Place{Position: feed.Older, Event: id.New(now, [10]byte{1})}).Offset(); n != 0 {
		t.Errorf("a place before the log is %d", n)
	}
	for _, offset := range []int64{-1, 0, 7 << 11, 1 << 53, 1<<63 - 1} {
		if _, err := feed.PlaceAt(offset); !fault.Is(err, "feed_cursor_malformed") {
			t.Errorf("%d: %v", offset, err)
		}
	}
}

func TestTheScopeOfATokenNamesItsConsumer(t *testing.T) {
	t.Parallel()
	ep := id.New(now, [10]byte{1})
	if got, name, ok := feed.ParseScope(feed.Scope(ep, "a.b-c_d")); !ok || got != ep || name != "a.b-c_d" {
		t.Errorf("%v %s %t", got, name, ok)
	}
	for _, text := range []string{"", "events:read", "feed:", "feed:x/y", "feed:" + id.Endpoint.Format(ep), id.Endpoint.Format(ep) + "/a"} {
		if _, _, ok := feed.ParseScope(text); ok {
			t.Errorf("%q is read as the scope of a consumer", text)
		}
	}
}
