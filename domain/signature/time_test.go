package signature

import (
	"math/rand/v2"
	"testing"
	"time"
)

// What is written by hand is what time.Time writes.
func TestTimesAreWrittenInTheirLayout(t *testing.T) {
	t.Parallel()
	moments := []time.Time{
		{},
		time.Unix(0, 0), time.Date(999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 2, 28, 23, 30, 0, 1_000_000, time.FixedZone("", -5*3600)), time.Date(2028, 2, 29, 0, 0, 0, 999_999, time.UTC),
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		moments = append(moments, time.Unix(random.Int64N(9000*365*86400)-900*365*86400, random.Int64N(1e9)))
	}
	for _, at := range moments {
		if got, want := string(appendTime([]byte("x"), at)), "x"+at.UTC().Format(timeLayout); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}
