package pages

import (
	"testing"
	"time"

	"posthorn/domain/history"
)

func TestDaysAreNamedByTheirRanges(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		days []int
		want string
	}{
		{[]int{7}, "7 September 2026"},
		{[]int{2, 1}, "1 to 2 September 2026"},
		{[]int{30, 3}, "3 and 30 September 2026"},
		{[]int{30, 9, 8, 7, 3}, "3, 7 to 9, and 30 September 2026"},
	} {
		var days []history.Day
		for _, n := range one.days {
			days = append(days, history.Day{At: time.Date(2026, 9, n, 0, 0, 0, 0, time.UTC)})
		}
		if got := span(days); got != one.want {
			t.Errorf("%v: %q, want %q", one.days, got, one.want)
		}
	}
}
