package maintenance

import (
	"context"
	"time"

	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

const deletedEvery = time.Second

// sweepDeleted ends the waiting deliveries of deleted endpoints, and removes their lanes.
func (m *Maintenance) sweepDeleted(ctx context.Context) error {
	var lanes []sql.DeletedLanesRow
	if err := m.db.Worker(ctx, func(q *sql.Queries) (err error) {
		lanes, err = q.DeletedLanes(ctx, 100)
		return err
	}); err != nil {
		return err
	}
	for _, l := range lanes {
		if err := m.FailQueued(ctx, l.EndpointID); err != nil {
			return err
		}
	}
	return nil
}

// FailQueued ends the waiting deliveries of a deleted endpoint, and removes its lane.
func (m *Maintenance) FailQueued(ctx context.Context, endpoint id.UUID) error {
	for {
		if n, err := queue.FailDeletedEndpoint(ctx, m.db, endpoint, sweepMost); err != nil || n == 0 {
			return err
		}
	}
}
