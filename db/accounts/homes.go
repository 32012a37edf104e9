package accounts

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
)

// TakeHome makes a database the home of a name, unless it has a name already, and returns its name. New API keys name
// the home from then on.
func TakeHome(ctx context.Context, d *db.DB, name string) (is string, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		if is, err = q.HomeName(ctx); !db.IsMissing(err) {
			return err
		}
		is, err = q.TakeHome(ctx, name)
		return err
	})
	return is, err
}
