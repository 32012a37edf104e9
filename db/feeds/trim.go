package feeds

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// How many logs are listed, and rows of one deleted, in a statement.
const (
	trimLogs = 100
	trimRows = 5000
)

// Trim deletes the rows of logs whose events retention has dropped, and returns how many.
func Trim(ctx context.Context, d *db.DB) (deleted int, err error) {
	after := id.UUID{}
	for {
		var logs []sql.LogsToTrimRow
		err := d.Worker(ctx, func(q *sql.Queries) (err error) {
			logs, err = q.LogsToTrim(ctx, after, trimLogs)
			return err
		})
		if err != nil || len(logs) == 0 {
			return deleted, err
		}
		for _, l := range logs {
			n, err := trimOne(ctx, d, l)
			deleted += n
			if err != nil {
				return deleted, err
			}
		}
		after = logs[len(logs)-1].TenantID
	}
}

func trimOne(ctx context.Context, d *db.DB, l sql.LogsToTrimRow) (deleted int, err error) {
	for {
		var n int32
		err := d.Worker(ctx, func(q *sql.Queries) (err error) {
			n, err = q.TrimLog(ctx, sql.TrimLogParams{Before: l.Before, TenantID: l.TenantID, Limit: trimRows})
			return err
		})
		deleted += int(n)
		if err != nil || n < trimRows {
			return deleted, err
		}
	}
}
