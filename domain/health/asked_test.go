package health_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"posthorn/domain/health"
)

func TestAWaitThatWasAskedForIsLookedAtOnceAnHour(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	short, long := health.AskFor(time.Minute, at), health.AskFor(5*time.Hour, at)
	if short.Looks() || !short.Next().Equal(at.Add(time.Minute)) || short.Long(at) {
		t.Errorf("a minute: %+v", short)
	}
	if !long.Looks() || !long.Next().Equal(at.Add(time.Hour)) || !long.Long(at) || long.Long(long.Until) {
		t.Errorf("five hours: %+v", long)
	}
	looked := at.Add(time.Hour)
	for name, c := range map[string]struct {
		success bool
		wait    time.Duration
		until   time.Time
		next    time.Time
	}{
		"a success ends it":        {true, 0, time.Time{}, time.Time{}},
		"a failure leaves it":      {false, 0, long.Until, looked.Add(time.Hour)},
		"a shorter wait counts":    {false, 2 * time.Minute, looked.Add(2 * time.Minute), looked.Add(2 * time.Minute)},
		"a longer wait counts too": {false, 9 * time.Hour, looked.Add(9 * time.Hour), looked.Add(time.Hour)},
	} {
		got := long.Looking(looked).Looked(c.success, c.wait, looked)
		if !got.Until.Equal(c.until) || !got.Next().Equal(c.next) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	sooner := looked.Add(-time.Minute)
	if got := long.Now(sooner); !got.Next().Equal(sooner) || !got.Until.Equal(long.Until) {
		t.Errorf("somebody asked for a look: %+v", got)
	}
}

func TestNothingIsSentBeforeAShortWaitIsOver(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var a health.Asked
		var longest time.Time
		now := at
		for range rapid.IntRange(1, 6).Draw(t, "responses") {
			wait := time.Duration(rapid.IntRange(1, 3600).Draw(t, "wait")) * time.Second
			a = a.Extend(wait, now)
			if until := now.Add(wait); until.After(longest) {
				longest = until
			}
			if a.Next().Before(longest) {
				t.Fatalf("the next request is sent at %s, before %s", a.Next(), longest)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "later")) * time.Second)
		}
	})
}
