package endpoints

import (
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/tools/schematest"
)

// A notice never has the health of one moment and the counts of another: what the recorder writes while they are read
// is read again.
func TestANoticeCountsAtTheMomentOfItsHealth(t *testing.T) {
	t.Parallel()
	d, owner, tenant, _ := schematest.Tenants(t, 2)
	endpoint := db.NewID()
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`GRANT INSERT ON posthorn.endpoints TO posthorn_worker`)
	exec(`SET ROLE posthorn_worker`)
	exec(`SET search_path = posthorn`)
	exec(`INSERT INTO endpoints (tenant_id, id, url, event_types, status, status_at, created_at)
		VALUES ($1, $2, 'https://example.com/', '{*}', 'active', now(), now())`, tenant.String(), endpoint.String())
	exec(`INSERT INTO endpoint_health (tenant_id, endpoint_id, consecutive_failures, first_failure_at, last_failure_at)
		VALUES ($1, $2, 0, now() - interval '1 minute', now())`, tenant.String(), endpoint.String())
	failsOnce := func() { // as the recorder does it: what ended and the health that follows are one transaction
		exec(`WITH d AS (
				INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason) VALUES ($1, $3, $2, 'order.paid', 1)
			) UPDATE endpoint_health SET consecutive_failures = consecutive_failures + 1 WHERE tenant_id = $1 AND endpoint_id = $2`,
			tenant.String(), endpoint.String(), db.NewID().String())
	}
	var seen *observed
	looks := 0
	err := d.Worker(t.Context(), func(q *sql.Queries) error {
		e, err := q.LockEndpoint(t.Context(), tenant, endpoint)
		if err != nil {
			return err
		}
		seen, err = observe(t.Context(), q, e, time.Now(), func(sql.EndpointHealth) bool {
			if looks++; looks <= 2 {
				failsOnce() // between the health and the counts
			}
			return true
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if inARow := seen.health.ConsecutiveFailures; inARow != 2 || seen.failed != 2 {
		t.Errorf("%d failures in a row beside %d dead letters, both must be 2", inARow, seen.failed)
	}
}
