package ledger

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
)

// statusPages is how many pages of attempts the status page reads: some 50,000 attempts, in tens of milliseconds.
const statusPages = 2000

// StatusHour is the platform's performance in one hour.
type StatusHour struct {
	Hour     time.Time
	P50, P99 time.Duration // from acknowledgement to the first request
	Measured int64         // how many deliveries were measured; 0: none
	Attempts int64         // how many were read
	OK       int64         // how many of these succeeded
}

// Status returns the platform's performance in each hour since a moment, oldest first, from a sample. It leaves out
// hours without attempts.
func Status(ctx context.Context, d *db.DB, since time.Time) (hours []StatusHour, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		pages, err := q.AttemptPages(ctx, since.UTC().Truncate(24*time.Hour))
		if err != nil {
			return err
		}
		percent := min(100, 100*float32(statusPages)/float32(max(pages, 1)))
		success, err := q.SuccessByHour(ctx, percent, since)
		if err != nil {
			return err
		}
		latency, err := q.LatencyByHour(ctx, percent, since)
		if err != nil {
			return err
		}
		measured := make(map[time.Time]sql.LatencyByHourRow, len(latency))
		for _, r := range latency {
			measured[r.Hour.UTC()] = r
		}
		for _, r := range success {
			l := measured[r.Hour.UTC()]
			hours = append(hours, StatusHour{
				Hour:     r.Hour.UTC(),
				Attempts: r.N,
				OK:       r.Ok,
				Measured: l.N,
				P50:      seconds(l.P50),
				P99:      seconds(l.P99),
			})
		}
		return nil
	})
	return hours, err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
