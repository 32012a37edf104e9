package maintenance

import (
	"context"
	"time"
)

const quotasEvery = 30 * time.Second

// postQuotaNotices tells tenants that are near a limit.
func (m *Maintenance) postQuotaNotices(ctx context.Context) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	_, err = m.db.PostQuotaNotices(ctx, now)
	return err
}
