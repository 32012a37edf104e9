package deliveries

import (
	"testing"
	"time"

	"posthorn/domain/id"
)

// TestAPageOverAllTenantsLooksAtABoundedNumberOfRows: the same at any rate, and nearly nothing makes a page read on.
func TestAPageOverAllTenantsLooksAtABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, perHour := range []int64{0, 1, 60, 1000, 60_000, 300_000, 20_000_000} {
		whole := window{low: id.FirstAt(now.AddDate(0, 0, -90)), high: id.FirstAt(now)}
		parts, looked, n := whole.ranges(), int64(0), 0
		for {
			part := parts.next()
			covered := part.high.Time().Sub(part.low.Time())
			rows := int64(float64(perHour) * covered.Hours())
			looked, n = looked+rows, n+1
			if part == parts.window {
				if want := int64(float64(perHour) * 90 * 24); looked < want*9/10 {
					t.Errorf("%d an hour: the list ends after %d of %d rows", perHour, looked, want)
				}
				break
			}
			if !parts.after(part, rows) {
				break
			}
		}
		most := int64(crossTenantRows) * 11 / 10
		if first := perHour / 4; first > most {
			most = first // of the first range; the query bounds what it reads of each tenant
		}
		if looked > most || n > 8 {
			t.Errorf("%d an hour: a page looks at %d rows in %d ranges", perHour, looked, n)
		}
		if perHour == 0 && parts.low != whole.low {
			t.Error("an empty platform is not read to the end")
		}
	}
}
