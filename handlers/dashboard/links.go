package dashboard

import (
	"net/http"
	"net/url"
	"slices"
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
	preview := page("GET", "/portal/preview", access.ManageMembers, a.previewPortal)
	preview.Access.Framed = true
	return []handlers.Route{
		page("GET", "/portal", access.ManageMembers, a.listLinks),
		preview,
		page("POST", "/portal", access.ManageMembers, a.createLink),
		page("POST", "/portal/:portal_link_id/revoke", access.ManageMembers, a.revokeLink),
	}
}

// linkForm reads the form of a portal link, and what is wrong with it.
func (a *dashboard) linkForm(form url.Values) (accounts.NewPortalLink, []fault.Field) {
	asked := account.PortalLink{
		Role:        access.Role(form.Get("role")),
		Accent:      strings.TrimSpace(form.Get("accent")),
		ReturnURL:   strings.TrimSpace(form.Get("return_url")),
		Development: account.OnLoopback(a.BaseURL),
	}
	asked.SessionSeconds, _ = strconv.Atoi(form.Get("session_seconds")) // an invalid number is out of the range
	link := accounts.NewPortalLink{
		Role:           asked.Role,
		Brand:          strings.TrimSpace(form.Get("brand_name")),
		Accent:         asked.Accent,
		ReturnURL:      asked.ReturnURL,
		SessionSeconds: asked.SessionSeconds,
		Parts: access.Parts{
			Secrets:    form.Get("allow_secrets") == "true",
			Replay:     form.Get("allow_replay") == "true",
			EventTypes: form.Get("allow_event_types") == "true",
			Payloads:   form.Get("allow_payloads") == "true",
		},
	}
	faults := asked.Wrong()
	if link.Brand != "" {
		if _, err := account.Name("brand_name", link.Brand); err != nil {
			faults = append(faults, fault.As(err).Fields...)
		}
	}
	return link, faults
}

// linksView is a page of links, with the form as it was filled in.
func (a *dashboard) linksView(c *handlers.Call, form url.Values, wrong map[string]string) (v pages.LinksView, err error) {
	field := func(name, label string) components.FieldProps {
		return components.FieldProps{Name: name, Label: label, Value: form.Get(name), Error: wrong[name]}
	}
	part := func(name, label, hint string) components.ChoiceProps {
		return components.ChoiceProps{Name: name, Label: label, Hint: hint, Checked: form.Get(name) == "true"}
	}
	v = pages.LinksView{
		Root:    path(c, "/portal"),
		Manages: c.Actor.May(access.ManageMembers),
		Wrong:   wrong,
		Server:  a.BaseURL,
		Origins: a.FrameAncestors,
		Role:    field("role", "Role"),
		Session: field("session_seconds", "Session length"),
		Brand:   field("brand_name", "Your product's name"),
		Accent:  field("accent", "Color"),
		Return:  field("return_url", "Link back to your product"),
		Parts: []components.ChoiceProps{
			part("allow_payloads", "See payloads and responses", ""),
			part("allow_replay", "Replay, retry, and cancel deliveries", ""),
			part("allow_event_types", "See the catalog of event types", ""),
			part("allow_secrets", "Rotate the secrets of all endpoints and create API keys", "If off, a link shows only the secrets of endpoints that are added with it. API keys need all four."),
		},
	}
	v.Brand.Optional, v.Brand.MaxLength, v.Brand.Hint = true, account.MaxName, "Shown instead of \"Posthorn\"."
	v.Accent.Optional, v.Accent.Placeholder, v.Accent.Mono, v.Accent.Width = true, "#1f6feb", true, "short"
	v.Return.Optional, v.Return.Placeholder, v.Return.Mono = true, "https://app.example.com/settings", true
	v.Preview = previewOf(form)
	l := handlers.List{Name: "portal-links", Of: id.PortalLink, Rows: rows}
	found, err := handlers.ReadList(c, l, c.Tx, func(q *db.Tx, p handlers.Page) (show.Page[show.PortalLink], error) {
		return accounts.ListPortalLinks(c.Ctx(), q, c.Actor.Tenant, p.Range)
	})
	v.Rows, v.First, v.Older, v.Now = found.Rows, found.Newer, found.Older, a.Now()
	v.Shell = c.Shell("Customer portal", "portal")
	return v, err
}

// defaultLink is the form as it is first shown.
var defaultLink = url.Values{
	"role":              {string(access.Developer)},
	"session_seconds":   {strconv.Itoa(int(account.PortalSession.Seconds()))},
	"allow_replay":      {"true"},
	"allow_event_types": {"true"},
	"allow_payloads":    {"true"},
}

// previewOf is the query of the preview of a form.
func previewOf(form url.Values) string {
	query := url.Values{}
	for name, values := range form {
		if slices.Contains(previewFields, name) {
			query[name] = values
		}
	}
	return query.Encode()
}

// previewFields change what the preview shows.
var previewFields = []string{"role", "brand_name", "accent", "return_url", "allow_secrets", "allow_replay", "allow_event_types", "allow_payloads"}

// previewPortal shows the tenant's overview as the visitor of a link would see it. What is wrong in the form is left
// out.
func (a *dashboard) previewPortal(c *handlers.Call) error {
	form := c.Request.URL.Query()
	form.Set("session_seconds", defaultLink.Get("session_seconds"))
	link, faults := a.linkForm(form)
	for _, f := range faults {
		switch f.Name {
		case "role":
			link.Role = access.Viewer
		case "accent":
			link.Accent = ""
		case "return_url":
			link.ReturnURL = ""
		case "brand_name":
			link.Brand = ""
		}
	}
	c.PreviewPortal(account.PortalAccess{
		Tenant:     c.Actor.Tenant,
		TenantName: c.Actor.TenantName,
		Role:       link.Role,
		Brand:      link.Brand,
		Accent:     link.Accent,
		ReturnURL:  link.ReturnURL,
		Parts:      link.Parts,
	})
	return a.home(c)
}

func (a *dashboard) listLinks(c *handlers.Call) error {
	v, err := a.linksView(c, defaultLink, nil)
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
	link, faults := a.linkForm(form)
	if len(faults) > 0 {
		return a.refuseLink(c, form, fault.InvalidFields(faults))
	}
	link.Tenant, link.By = c.Actor.Tenant, c.Author()
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
	list := path(c, "/portal")
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
	return c.Done(path(c, "/portal"), "Link revoked. Whoever opened it is signed out.")
}
