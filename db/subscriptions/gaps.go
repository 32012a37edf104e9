package subscriptions

import (
	"context"
	"crypto/rand"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/mcp"
)

// Post sends a message that is no delivery to an endpoint.
type Post func(ctx context.Context, f endpoints.Facts, messageID string, body []byte) (delivery.Result, []byte, error)

// TellGaps tells clients of subscriptions that an event was not delivered and will not be, with a cursor from before
// it. Each failure is told once, by a message and by the next refresh. It tells at most `most` clients.
func TellGaps(ctx context.Context, d *db.DB, keys *seal.Ring, publicURL string, post Post, most int32) error {
	var rows []sql.UntoldSubscriptionsRow
	if err := d.Worker(ctx, func(q *sql.Queries) (err error) {
		rows, err = q.UntoldSubscriptions(ctx, most)
		return err
	}); err != nil {
		return err
	}
	for _, row := range rows {
		if err := tellGap(ctx, d, keys, publicURL, post, row); err != nil && !db.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func tellGap(ctx context.Context, d *db.DB, keys *seal.Ring, publicURL string, post Post, row sql.UntoldSubscriptionsRow) error {
	var f endpoints.Facts
	var cursor string
	err := d.Tenant(ctx, row.TenantID, func(q *sql.Queries) error {
		n, err := q.NoteTold(ctx, sql.NoteToldParams{Until: row.Until, TenantID: row.TenantID, ID: row.ID, Was: row.ToldUntil})
		if err != nil || n == 0 { // another process tells it
			return err
		}
		found, err := q.GetSubscription(ctx, row.TenantID, row.ID)
		if err != nil {
			return err
		}
		cursor = found.Cursor
		f, err = endpoints.ToTest(ctx, q, keys, row.TenantID, found.EndpointID)
		return err
	})
	if err != nil || len(f.Secrets) == 0 {
		return err
	}
	if err := f.Complete(ctx, d, keys, row.TenantID, publicURL); err != nil {
		return err
	}
	_, _, err = post(ctx, f, "msg_gap_"+rand.Text(), mcp.Gap(cursor))
	return err
}
