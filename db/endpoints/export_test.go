package endpoints

import (
	"context"
	"time"

	"posthorn/db/sql"
)

// Observe is observe for its test: the failures in a row of the endpoint's health, and its dead letters.
func Observe(ctx context.Context, q *sql.Queries, e sql.Endpoint, needed func(sql.EndpointHealth) bool) (inARow int32, deadLetters int64, err error) {
	o, err := observe(ctx, q, e, time.Now(), needed)
	if err != nil {
		return 0, 0, err
	}
	return o.health.ConsecutiveFailures, o.failed, nil
}
