package subscriptions

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
)

// Access reads how people of a tenant's product reach its server. A tenant without settings has empty
// ones. Errors: not found, if there is no such tenant.
func Access(ctx context.Context, q *sql.Queries, tenant id.UUID) (mcp.Access, error) {
	row, err := q.GetMCPAccess(ctx, tenant)
	return mcp.Access{
		Issuer:         row.Issuer,
		Audience:       row.Audience,
		Claim:          row.Claim,
		Value:          row.ClaimValue,
		MessageIDHosts: row.MessageIDHosts,
	}, err
}

// SetAccess stores settings that Check returned. Errors: not found, if there is no such tenant.
func SetAccess(ctx context.Context, q *sql.Queries, tenant id.UUID, a mcp.Access, by db.Author) error {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return err
	}
	if err := q.PutMCPAccess(ctx, sql.PutMCPAccessParams{
		TenantID:       tenant,
		Issuer:         a.Issuer,
		Audience:       a.Audience,
		Claim:          a.Claim,
		ClaimValue:     a.Value,
		MessageIDHosts: a.MessageIDHosts,
	}); err != nil {
		return err
	}
	return db.Audit(ctx, q, by, db.Audited{
		Tenant: &tenant,
		Action: "mcp.access",
		Kind:   "tenant",
		Object: id.Tenant.Format(tenant),
		Details: map[string]any{
			"issuer":           a.Issuer,
			"audience":         a.Audience,
			"claim":            a.Claim,
			"claim_value":      a.Value,
			"message_id_hosts": a.MessageIDHosts,
		},
	})
}
