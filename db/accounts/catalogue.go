package accounts

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/settings"
)

// mostPublic is how many event types a public catalogue shows.
const mostPublic = 1000

// PublicCatalogue is the catalog of the platform's own tenant, by name. on is false if operators have not made it
// public.
func PublicCatalogue(ctx context.Context, d *db.DB) (types []sql.EventType, on bool, err error) {
	var platform []byte
	if err := d.Ingest(ctx, func(q *sql.Queries) (err error) {
		platform, err = q.PlatformSettings(ctx)
		return err
	}); err != nil {
		return nil, false, err
	}
	tenant := platformTenant(platform)
	if settings.Word(settings.Catalogue, platform) != settings.Public || tenant.IsZero() {
		return nil, false, nil
	}
	err = d.Tenant(ctx, tenant, func(q *sql.Queries) (err error) {
		types, err = q.ListEventTypesUp(ctx, sql.ListEventTypesUpParams{TenantID: tenant, Most: mostPublic})
		return err
	})
	return types, true, err
}
