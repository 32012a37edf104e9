package api

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// portalSession is how long a portal session lives unless the request says so.
const portalSession = 24 * 60 * 60

var colour = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// createPortalLink makes a link that signs a provider's customer into the tenant's dashboard.
func (a *api) createPortalLink(c *handlers.Call) error {
	var in PortalLinkInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	link, err := checkPortalLink(in)
	if err != nil {
		return err
	}
	link.Tenant, link.By = c.Actor.Tenant, c.Author()
	var row db.PortalLink
	var token string
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Queries) error {
		row, token, err = q.MakePortalLink(c.Ctx(), link)
		return err
	})
	if err != nil {
		return err
	}
	v := portalLinkView(row)
	return c.Answer(http.StatusCreated, PortalLinkCreated{
		ID: v.ID, Role: PortalLinkCreatedRole(v.Role), BrandName: v.BrandName, Accent: v.Accent, ReturnURL: v.ReturnURL, SessionSeconds: v.SessionSeconds,
		AllowSecrets: v.AllowSecrets, CreatedAt: v.CreatedAt, OpenUntil: v.OpenUntil, OpenedAt: v.OpenedAt, RevokedAt: v.RevokedAt,
		URL: a.BaseURL + "/portal/open?token=" + url.QueryEscape(token),
	})
}

func checkPortalLink(in PortalLinkInput) (db.NewPortalLink, error) {
	link := db.NewPortalLink{Role: access.Developer, SessionSeconds: portalSession}
	var wrong wrongFields
	if in.Role != nil {
		if link.Role = access.Role(*in.Role); !link.Role.MayComeByPortal() {
			wrong.add("role", "role_unknown", "Give one of admin, developer, viewer. Nobody becomes an owner by a link.")
		}
	}
	link.Brand = wrong.text("brand_name", in.BrandName, 0, account.MaxName)
	if in.Accent != nil && *in.Accent != "" {
		if link.Accent = *in.Accent; !colour.MatchString(link.Accent) {
			wrong.add("accent", "accent_invalid", "Write a colour as #rrggbb.")
		}
	}
	if in.ReturnURL != nil && *in.ReturnURL != "" {
		link.ReturnURL = *in.ReturnURL
		u, err := url.Parse(link.ReturnURL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(link.ReturnURL) > 2000 {
			wrong.add("return_url", "return_url_invalid", "Write a whole web address, as https://app.example.com/settings.")
		}
	}
	if in.SessionSeconds != nil {
		link.SessionSeconds = *in.SessionSeconds
	}
	if least, most := int(account.PortalMin.Seconds()), int(account.PortalMax.Seconds()); link.SessionSeconds < least || link.SessionSeconds > most {
		wrong.add("session_seconds", "session_seconds_range", fmt.Sprintf("session_seconds is %d to %d: an hour to seven days.", least, most))
	}
	if in.AllowSecrets != nil {
		link.AllowSecrets = *in.AllowSecrets
	}
	return link, wrong.err()
}

func (a *api) listPortalLinks(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "portal-links"})
	if err != nil {
		return err
	}
	after, err := p.AfterOrEdge()
	if err != nil {
		return err
	}
	var rows []db.PortalLink
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Queries) error {
		ask := db.ListPortalLinksDownParams{TenantID: c.Actor.Tenant, After: after, Most: int32(p.Limit + 1)}
		if p.Ascending {
			rows, err = q.ListPortalLinks(c.Ctx(), db.ListPortalLinksParams(ask))
		} else {
			rows, err = q.ListPortalLinksDown(c.Ctx(), ask)
		}
		return err
	})
	if err != nil {
		return err
	}
	rows, next := cut(rows, p, func(l db.PortalLink) []byte { return l.ID[:] })
	return c.Answer(http.StatusOK, PortalLinkPage{Data: views(rows, portalLinkView), NextCursor: cursorOrNull(next)})
}

// revokePortalLink ends a link and the session that came of it.
func (a *api) revokePortalLink(c *handlers.Call) error {
	u, err := c.ID(id.PortalLink, "portal_link_id")
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Queries) error {
		if _, err := q.GetPortalLink(c.Ctx(), db.GetPortalLinkParams{TenantID: c.Actor.Tenant, ID: u}); err != nil {
			return err
		}
		n, err := q.RevokePortalLink(c.Ctx(), db.RevokePortalLinkParams{TenantID: c.Actor.Tenant, ID: u})
		if err != nil || n == 0 {
			return err
		}
		return c.Audit(q, "portal_link.revoked", "portal_link", id.PortalLink.Format(u), "", nil)
	})
	if err != nil {
		return err
	}
	return c.AnswerNothing()
}

func portalLinkView(l db.PortalLink) PortalLink {
	return PortalLink{
		ID: id.PortalLink.Format(l.ID), Role: PortalLinkRole(l.Role), BrandName: l.Brand, Accent: l.Accent, ReturnURL: l.ReturnURL,
		SessionSeconds: int(l.SessionSeconds), AllowSecrets: l.AllowSecrets, CreatedAt: l.CreatedAt, OpenUntil: l.OpenUntil,
		OpenedAt: orNull(l.OpenedAt), RevokedAt: orNull(l.RevokedAt),
	}
}
