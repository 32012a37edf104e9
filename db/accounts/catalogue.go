package accounts

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/settings"
)

// PublicTenant is the platform's own tenant. on is false if operators have not made its catalog public.
func PublicTenant(ctx context.Context, d *db.DB) (tenant id.UUID, on bool, err error) {
	var platform []byte
	if err := d.Ingest(ctx, func(q *sql.Queries) (err error) {
		platform, err = q.PlatformSettings(ctx)
		return err
	}); err != nil {
		return tenant, false, err
	}
	tenant = platformTenant(platform)
	return tenant, settings.Word(settings.Catalogue, platform) == settings.Public && !tenant.IsZero(), nil
}
