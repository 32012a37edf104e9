package api

import (
	"net/http"
	"net/url"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// createPortalLink creates a link that signs a provider's customer in to the tenant's dashboard.
func (a *api) createPortalLink(c *handlers.Call) error {
	var in PortalLinkInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	link, err := a.checkPortalLink(in)
	if err != nil {
		return err
	}
	var made show.PortalLink
	var token string
	err = a.inTenant(c, in.CreateTenant != nil && *in.CreateTenant, func(q *db.Tx) error {
		link.Tenant, link.By = c.Actor.Tenant, c.Author()
		made, token, err = accounts.MakePortalLink(c.Ctx(), q, link)
		return err
	})
	if err != nil {
		return err
	}
	v := encodePortalLink(made)
	return c.Answer(http.StatusCreated, PortalLinkCreated{
		ID:              v.ID,
		Role:            PortalLinkCreatedRole(v.Role),
		BrandName:       v.BrandName,
		Accent:          v.Accent,
		ReturnURL:       v.ReturnURL,
		SessionSeconds:  v.SessionSeconds,
		AllowSecrets:    v.AllowSecrets,
		AllowReplay:     v.AllowReplay,
		AllowEventTypes: v.AllowEventTypes,
		AllowPayloads:   v.AllowPayloads,
		CreatedAt:       v.CreatedAt,
		OpenUntil:       v.OpenUntil,
		OpenedAt:        v.OpenedAt,
		RevokedAt:       v.RevokedAt,
		URL:             a.BaseURL + "/portal/open?token=" + url.QueryEscape(token),
	})
}

func (a *api) checkPortalLink(in PortalLinkInput) (accounts.NewPortalLink, error) {
	asked := account.PortalLink{
		Role:           access.Developer,
		SessionSeconds: int(account.PortalSession.Seconds()),
		Development:    account.OnLoopback(a.BaseURL),
	}
	if in.Role != nil {
		asked.Role = access.Role(*in.Role)
	}
	set(&asked.Accent, in.Accent)
	set(&asked.ReturnURL, in.ReturnURL)
	set(&asked.SessionSeconds, in.SessionSeconds)
	link := accounts.NewPortalLink{
		Role:           asked.Role,
		Accent:         asked.Accent,
		ReturnURL:      asked.ReturnURL,
		SessionSeconds: asked.SessionSeconds,
		Parts:          access.DefaultParts,
	}
	set(&link.Parts.Secrets, in.AllowSecrets)
	set(&link.Parts.Replay, in.AllowReplay)
	set(&link.Parts.EventTypes, in.AllowEventTypes)
	set(&link.Parts.Payloads, in.AllowPayloads)
	var wrong wrongFields
	if in.BrandName != nil && *in.BrandName != "" {
		link.Brand = wrong.name("brand_name", in.BrandName)
	}
	for _, f := range asked.Wrong() {
		wrong.add(f.Name, f.Code, f.Detail)
	}
	return link, wrong.err()
}

func (a *api) listPortalLinks(c *handlers.Call) error {
	l := handlers.List{Name: "portal-links"}
	return list(c, l, ranged(c, accounts.ListPortalLinks), encodePortalLink)
}

// revokePortalLink ends a link and its session.
func (a *api) revokePortalLink(c *handlers.Call) error {
	return end(c, "portal_link_id", func(q *db.Tx, portalLinkID id.UUID) error {
		return accounts.EndPortalLink(c.Ctx(), q, c.Actor.Tenant, portalLinkID, c.Author())
	})
}

func encodePortalLink(l show.PortalLink) PortalLink {
	return PortalLink{
		ID:              id.PortalLink.Format(l.ID),
		Role:            PortalLinkRole(l.Role),
		BrandName:       l.Brand,
		Accent:          l.Accent,
		ReturnURL:       l.ReturnURL,
		SessionSeconds:  int(l.Session.Seconds()),
		AllowSecrets:    l.Parts.Secrets,
		AllowReplay:     l.Parts.Replay,
		AllowEventTypes: l.Parts.EventTypes,
		AllowPayloads:   l.Parts.Payloads,
		CreatedAt:       Time(l.CreatedAt),
		OpenUntil:       Time(l.OpenUntil),
		OpenedAt:        orNullAt(l.OpenedAt),
		RevokedAt:       orNullAt(l.RevokedAt),
	}
}
