package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"posthorn/handlers/api"
)

func TestTimesHaveThreeDigitsOfASecondAndSortAsText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 13, 0, 0, 0, time.FixedZone("", 3600))
	for add, want := range map[time.Duration]string{
		0:                       `"2026-01-31T12:00:00.000Z"`,
		970 * time.Millisecond:  `"2026-01-31T12:00:00.970Z"`,
		1234 * time.Microsecond: `"2026-01-31T12:00:00.001Z"`,
	} {
		got, err := json.Marshal(api.Time(at.Add(add)))
		if err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
		var back api.Time
		if err := json.Unmarshal(got, &back); err != nil || time.Time(back).Sub(at.Add(add)).Abs() >= time.Millisecond {
			t.Errorf("%s is read as %v: %v", got, time.Time(back), err)
		}
	}
}
