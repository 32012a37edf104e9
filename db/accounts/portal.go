package accounts

import (
	"context"
	"fmt"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/settings"
	"posthorn/domain/show"
)

// NewPortalLink describes a link into a tenant's dashboard.
type NewPortalLink struct {
	Tenant         id.UUID
	Role           access.Role
	Brand, Accent  string
	ReturnURL      string
	Parts          access.Parts
	SessionSeconds int
	By             db.Author
}

// ErrPortalOff rejects portal links if operators have switched them off.
var ErrPortalOff = fault.New(fault.Forbidden, "portal_off", "Portal links are turned off on this server. Contact its operator.")

var errPortalLinks = &fault.Error{
	Kind:       fault.Limited,
	Code:       "portal_links_count",
	RetryAfter: 60,
	Detail: fmt.Sprintf("This tenant has %d portal links that nobody has opened. Open or revoke some, or wait: a link expires after %d minutes.",
		account.MaxPortalLinks, account.PortalOpenLife/time.Minute),
}

// ListPortalLinks reads a page of a tenant's portal links.
func ListPortalLinks(ctx context.Context, q *sql.Queries, tenant id.UUID, r show.Range) (show.Page[show.PortalLink], error) {
	low, high := db.Bounds(r)
	rows, err := q.ListPortalLinks(ctx, sql.ListPortalLinksParams{
		TenantID: tenant,
		Low:      low,
		High:     high,
		Newest:   !r.Ascending,
		Limit:    db.Limit(r),
	})
	page := show.CutByID(rows, r.Limit, func(row sql.PortalLink) id.UUID { return row.ID })
	return show.Each(page, portalLinkOf), err
}

func portalLinkOf(row sql.PortalLink) show.PortalLink {
	return show.PortalLink{
		ID:        row.ID,
		Role:      access.Role(row.Role),
		Brand:     row.Brand,
		Accent:    row.Accent,
		ReturnURL: row.ReturnURL,
		Parts:     partsOf(row.AllowSecrets, row.AllowReplay, row.AllowEventTypes, row.AllowPayloads),
		Session:   time.Duration(row.SessionSeconds) * time.Second,
		CreatedAt: row.CreatedAt,
		OpenUntil: row.OpenUntil,
		OpenedAt:  row.OpenedAt,
		RevokedAt: row.RevokedAt,
	}
}

// roomForPortalLink counts the tenant's links that can still be opened: ids begin with the time.
func roomForPortalLink(ctx context.Context, q *sql.Queries, tenant id.UUID) error {
	links, err := ListPortalLinks(ctx, q, tenant, show.Range{
		Since: db.NewID().Time().Add(-account.PortalOpenLife),
		Limit: 2 * account.MaxPortalLinks,
	})
	waiting := 0
	for _, l := range links.Rows {
		if l.OpenedAt == nil && l.RevokedAt == nil {
			waiting++
		}
	}
	if err == nil && waiting >= account.MaxPortalLinks {
		err = errPortalLinks
	}
	return err
}

// MakePortalLink stores a link in the transaction of its tenant and returns its token. The token itself is not stored.
func MakePortalLink(ctx context.Context, q *sql.Queries, l NewPortalLink) (show.PortalLink, string, error) {
	platform, err := q.PlatformSettings(ctx)
	if err == nil && !settings.On(settings.Portal, platform) {
		err = ErrPortalOff
	}
	if err != nil {
		return show.PortalLink{}, "", err
	}
	if err := roomForPortalLink(ctx, q, l.Tenant); err != nil {
		return show.PortalLink{}, "", err
	}
	token, hash := NewToken()
	portalLinkID := db.NewID()
	row, err := q.InsertPortalLink(ctx, sql.InsertPortalLinkParams{
		TenantID:        l.Tenant,
		ID:              portalLinkID,
		Hash:            hash,
		Role:            string(l.Role),
		Brand:           l.Brand,
		Accent:          l.Accent,
		ReturnURL:       l.ReturnURL,
		AllowSecrets:    l.Parts.Secrets,
		AllowReplay:     l.Parts.Replay,
		AllowEventTypes: l.Parts.EventTypes,
		AllowPayloads:   l.Parts.Payloads,
		SessionSeconds:  int32(l.SessionSeconds),
		CreatedBy:       l.By.ID,
		CreatedAt:       portalLinkID.Time(),
		Lives:           int32(account.PortalOpenLife / time.Second),
	})
	if err != nil {
		return show.PortalLink{}, "", err
	}
	return portalLinkOf(row), token, db.Audit(ctx, q, l.By, db.Audited{
		Tenant: &l.Tenant,
		Action: "portal_link.created",
		Kind:   "portal_link",
		Object: id.PortalLink.Format(portalLinkID),
		Details: map[string]any{
			"role":              l.Role,
			"allow_secrets":     l.Parts.Secrets,
			"allow_replay":      l.Parts.Replay,
			"allow_event_types": l.Parts.EventTypes,
			"allow_payloads":    l.Parts.Payloads,
			"session_seconds":   l.SessionSeconds,
		},
	})
}

// OpenPortalLink uses up a link, starts its session and returns the session's token. A link that was opened, was
// revoked, or is older than ten minutes is fault.ErrNotFound.
func OpenPortalLink(ctx context.Context, d *db.DB, token, address, agent string) (link account.PortalAccess, session string, err error) {
	if platform, err := Platform(ctx, d); err != nil {
		return link, "", err
	} else if !settings.On(settings.Portal, platform) {
		return link, "", ErrPortalOff
	}
	err = d.Account(ctx, func(q *sql.Queries) error {
		opened, err := q.OpenPortal(ctx, HashToken(token))
		if err != nil {
			return err
		}
		link.ID, link.Tenant = opened.ID, opened.TenantID
		session, err = StartSession(ctx, q, NewSession{
			Link:    &opened.ID,
			Life:    time.Duration(opened.SessionSeconds) * time.Second,
			Address: address,
			Agent:   agent,
		})
		if err != nil {
			return err
		}
		shown := id.PortalLink.Format(opened.ID)
		return db.Audit(ctx, q, db.Author{Kind: "portal", ID: shown, Address: address}, db.Audited{
			Tenant: &opened.TenantID,
			Action: "portal_link.opened",
			Kind:   "portal_link",
			Object: shown,
		})
	})
	return link, session, err
}

// FindPortal reads a link by its id, also one that was revoked or whose session has ended.
func FindPortal(ctx context.Context, d *db.DB, link id.UUID) (account.PortalAccess, error) {
	return findPortal(ctx, d, nil, &link)
}

// FindPortalByToken reads a link by the token in its URL, also one that can't be opened any more.
func FindPortalByToken(ctx context.Context, d *db.DB, token string) (account.PortalAccess, error) {
	return findPortal(ctx, d, HashToken(token), nil)
}

func findPortal(ctx context.Context, d *db.DB, hash []byte, link *id.UUID) (l account.PortalAccess, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		row, err := q.FindPortal(ctx, hash, link)
		l = account.PortalAccess{
			ID:          row.ID,
			Tenant:      row.TenantID,
			TenantName:  row.TenantName,
			TenantState: account.TenantState(row.TenantState),
			Role:        access.Role(row.Role),
			Brand:       row.Brand,
			Accent:      row.Accent,
			ReturnURL:   row.ReturnURL,
			Parts:       partsOf(row.AllowSecrets, row.AllowReplay, row.AllowEventTypes, row.AllowPayloads),
			Revoked:     row.Revoked,
		}
		return err
	})
	return l, err
}

func partsOf(secrets, replay, eventTypes, payloads bool) access.Parts {
	return access.Parts{Secrets: secrets, Replay: replay, EventTypes: eventTypes, Payloads: payloads}
}

// EndPortalLink revokes a link and ends the session that it started. If the link was revoked before, nothing changes.
func EndPortalLink(ctx context.Context, q *sql.Queries, tenant, portalLinkID id.UUID, by db.Author) error {
	if _, err := q.GetPortalLink(ctx, tenant, portalLinkID); err != nil {
		return err
	}
	n, err := q.RevokePortalLink(ctx, tenant, portalLinkID)
	if err != nil || n == 0 {
		return err
	}
	return db.Audit(ctx, q, by, db.Audited{
		Tenant: &tenant,
		Action: "portal_link.revoked",
		Kind:   "portal_link",
		Object: id.PortalLink.Format(portalLinkID),
	})
}
