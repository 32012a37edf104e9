package cli

import (
	"strings"
	"testing"
	"time"
)

func TestASpanMeansBackInAListAndAheadForADelivery(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"1h":  time.Hour,
		"+1h": time.Hour,
		"30m": 30 * time.Minute,
		"7d":  7 * 24 * time.Hour,
	} {
		back, err := moment("--since", text, now)
		if err != nil || !back.Equal(now.Add(-want)) {
			t.Errorf("--since %s: %v, %v", text, back, err)
		}
		forward, err := ahead("--deliver-at", text, now)
		if err != nil || !forward.Equal(now.Add(want)) {
			t.Errorf("--deliver-at %s: %v, %v", text, forward, err)
		}
	}
	if at, err := ahead("--deliver-at", "2026-03-05T13:00:00Z", now); err != nil || !at.Equal(now.Add(time.Hour)) {
		t.Errorf("a time to come: %v, %v", at, err)
	}
	if at, err := ahead("--deliver-at", "", now); err != nil || at != nil {
		t.Errorf("none: %v, %v", at, err)
	}
	for text, why := range map[string]string{
		"2026-03-05T11:59:59Z": "in the past",
		"2020-01-01":           "in the past",
		"-1h":                  "--deliver-at is a time span",
		"soon":                 "--deliver-at is a time span",
	} {
		if at, err := ahead("--deliver-at", text, now); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
}
