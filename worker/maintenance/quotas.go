package maintenance

import (
	"context"
	"time"

	"posthorn/db/accounts"
)

const quotasEvery = 30 * time.Second

// postQuotaNotices notifies tenants that are near a limit.
func (m *Maintenance) postQuotaNotices(ctx context.Context) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	_, err = accounts.PostQuotaNotices(ctx, m.db, now)
	return err
}
