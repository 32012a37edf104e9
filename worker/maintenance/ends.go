package maintenance

import (
	"context"
	"time"

	"posthorn/db/endpoints"
	"posthorn/domain/id"
)

const (
	endsEvery = 5 * time.Second
	endsMost  = 100
)

// endPauses resumes endpoints whose pause ends by itself, and ends the mutes of endpoints that have recovered. Every
// worker does it: each endpoint is read again under its lock, so one of them resumes it.
func (m *Maintenance) endPauses(ctx context.Context) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	for {
		resumed, err := endpoints.ResumeDue(ctx, m.db, now, endsMost)
		for _, one := range resumed {
			m.log.Info("endpoint resumed: its pause ended", "endpoint", id.Endpoint.Format(one))
			m.changed(one)
		}
		if err != nil {
			return err
		}
		if len(resumed) < endsMost {
			break
		}
	}
	return endpoints.UnmuteRecovered(ctx, m.db, now)
}
