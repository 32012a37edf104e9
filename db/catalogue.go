package db

import (
	"context"

	"posthorn/domain/settings"
)

// mostPublic is how many event types a public catalogue shows.
const mostPublic = 1000

// PublicCatalogue is the catalogue of the platform's own tenant, by name. on is false where operators have not made it public.
func (d *DB) PublicCatalogue(ctx context.Context) (types []EventType, on bool, err error) {
	var platform []byte
	if err := d.Ingest(ctx, func(q *Queries) (err error) {
		platform, err = q.PlatformSettings(ctx)
		return err
	}); err != nil {
		return nil, false, err
	}
	tenant := platformTenant(platform)
	if settings.Word(settings.Catalogue, platform) != settings.Public || tenant.IsZero() {
		return nil, false, nil
	}
	err = d.Tenant(ctx, tenant, func(q *Queries) (err error) {
		types, err = q.ListEventTypesUp(ctx, ListEventTypesUpParams{TenantID: tenant, Most: mostPublic})
		return err
	})
	return types, true, err
}
