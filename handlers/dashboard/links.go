package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) linkRoutes() []handlers.Route {
	return []handlers.Route{
		page("GET", "/sign-in-links", access.ManageMembers, a.listLinks),
		page("POST", "/sign-in-links", access.ManageMembers, a.createLink),
		page("POST", "/sign-in-links/:portal_link_id/revoke", access.ManageMembers, a.revokeLink),
	}
}

// linksView is a page of links, with the form as it was filled in.
func (a *dashboard) linksView(c *handlers.Call, form url.Values, wrong map[string]string) (v pages.LinksView, err error) {
	v = pages.LinksView{
		Root:    path(c, "/sign-in-links"),
		Manages: c.Actor.May(access.ManageMembers),
		Wrong:   wrong,
		Role:    components.FieldProps{Name: "role", Label: "Role", Value: form.Get("role"), Error: wrong["role"]},
		Session: components.FieldProps{Name: "session_seconds", Label: "Session length", Value: form.Get("session_seconds"), Error: wrong["session_seconds"]},
		Brand: components.FieldProps{
			Name:      "brand_name",
			Label:     "Display name",
			Value:     form.Get("brand_name"),
			Error:     wrong["brand_name"],
			Optional:  true,
			MaxLength: account.MaxName,
			Hint:      "Shown instead of \"Posthorn\".",
		},
		Secrets: components.ChoiceProps{Name: "allow_secrets", Label: "Can rotate secrets of all endpoints and create API keys", Hint: "If off, a link shows only the secrets of endpoints that are added with it.", Checked: form.Get("allow_secrets") == "true"},
	}
	l := handlers.List{Name: "portal-links", Of: id.PortalLink, Rows: rows}
	found, err := handlers.ReadList(c, l, c.Tx, func(q *db.Tx, p handlers.Page) (show.Page[show.PortalLink], error) {
		return accounts.ListPortalLinks(c.Ctx(), q, c.Actor.Tenant, p.Range)
	})
	v.Rows, v.First, v.Older, v.Now = found.Rows, found.Newer, found.Older, a.Now()
	v.Shell = c.Shell("Portal links", "members")
	return v, err
}

func (a *dashboard) listLinks(c *handlers.Call) error {
	v, err := a.linksView(c, url.Values{"role": {string(access.Viewer)}, "session_seconds": {"86400"}}, nil)
	if err != nil {
		return err
	}
	if _, err := c.TakeOnce(v.Root, &v.New); err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Links(v))
}

// createLink creates a link. The next page shows its URL once.
func (a *dashboard) createLink(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	asked := account.PortalLink{Role: access.Role(form.Get("role"))}
	asked.SessionSeconds, _ = strconv.Atoi(form.Get("session_seconds")) // an invalid number is out of the range
	link := accounts.NewPortalLink{
		Tenant:         c.Actor.Tenant,
		By:             c.Author(),
		Role:           asked.Role,
		Brand:          strings.TrimSpace(form.Get("brand_name")),
		AllowSecrets:   form.Get("allow_secrets") == "true",
		SessionSeconds: asked.SessionSeconds,
	}
	faults := asked.Wrong()
	if link.Brand != "" {
		if _, err := account.Name("brand_name", link.Brand); err != nil {
			faults = append(faults, fault.As(err).Fields...)
		}
	}
	if len(faults) > 0 {
		return a.refuseLink(c, form, fault.InvalidFields(faults))
	}
	token := ""
	err = c.Tx(func(q *db.Tx) error {
		_, token, err = accounts.MakePortalLink(c.Ctx(), q, link)
		return err
	})
	if fault.Is(err, accounts.ErrPortalOff.Code) {
		return a.refuseLink(c, form, err)
	}
	if err != nil {
		return err
	}
	list := path(c, "/sign-in-links")
	if err := c.KeepOnce(list, a.BaseURL+"/portal/open?token="+url.QueryEscape(token)); err != nil {
		return err
	}
	return c.Redirect(list)
}

// refuseLink shows the form again, with each error beside its field.
func (a *dashboard) refuseLink(c *handlers.Call, form url.Values, cause error) error {
	v, err := a.linksView(c, form, handlers.WrongFields(cause))
	if err != nil {
		return err
	}
	return c.Render(handlers.Status(cause), pages.Links(v))
}

func (a *dashboard) revokeLink(c *handlers.Call) error {
	portalLinkID := c.PathID("portal_link_id")
	err := c.Tx(func(q *db.Tx) error {
		return accounts.EndPortalLink(c.Ctx(), q, c.Actor.Tenant, portalLinkID, c.Author())
	})
	if err != nil {
		return err
	}
	return c.Done(path(c, "/sign-in-links"), "Link revoked. Whoever opened it is signed out.")
}
