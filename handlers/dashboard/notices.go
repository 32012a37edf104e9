package dashboard

import (
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) noticeRoutes() []handlers.Route {
	return []handlers.Route{
		page("GET", "/notices", access.Read, a.listNotices),
		own(page("POST", "/notices/read", access.Read, a.readNotices)),
		own(page("POST", "/notices/preferences", access.Read, a.savePreferences)),
		page("GET", "/alerts", access.Read, a.showAlerts),
		page("POST", "/alerts/mute", access.ChangeSettings, a.muteNotices),
	}
}

// listNotices shows the notices that the actor's role sees.
func (a *dashboard) listNotices(c *handlers.Call) error {
	kinds := handlers.NoticeKinds(c.Actor.Role)
	found, err := handlers.ReadList(c, handlers.List{
		Name:    "notices",
		Of:      id.Notice,
		Rows:    rows,
		Filters: []handlers.Filter{handlers.ByEndpoint},
		Choices: []handlers.Choice{kinds, {Name: "unread", Words: []string{"false", "true"}}},
	}, c.Tx, func(q *db.Tx, p handlers.Page) (show.Page[show.Notice], error) {
		list := accounts.NoticeList{Kinds: p.Words(kinds), Member: c.Actor.Member, Unread: p.Chosen["unread"] == "true"}
		if !p.Endpoint.IsZero() {
			list.Endpoint = &p.Endpoint
		}
		return accounts.ListNotices(c.Ctx(), q, c.Actor.Tenant, list, p.Range)
	})
	if err != nil {
		return err
	}
	v := pages.NoticesView{
		Shell: c.Shell("Notices", "notices"),
		Root:  path(c, ""),
		Reads: !c.Actor.Member.IsZero(),
		Wrong: found.Wrong,
		Rows:  found.Rows,
		First: found.Newer,
		Older: found.Older,
		Filter: pages.NoticeFilter{
			Kind:     found.Given.Get("kind"),
			Endpoint: found.Given.Get("endpoint"),
			Unread:   found.Given.Get("unread") == "true",
		},
	}
	for _, k := range notice.KindsFor(c.Actor.Role) {
		v.Kinds = append(v.Kinds, components.Option{Value: string(k), Label: k.Label()})
	}
	err = c.Tx(func(q *db.Tx) (err error) {
		v.Endpoints, _, err = a.filterChoices(c, q)
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(found.Status(), pages.Notices(v))
}

// readNotices marks the shown notices as read: everything up to the newest on the page.
func (a *dashboard) readNotices(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	newest, err := id.Notice.Parse(form.Get("newest"))
	if err == nil && !c.Actor.Member.IsZero() && !newest.Time().After(a.Now()) {
		if err := accounts.SeeNotices(c.Ctx(), a.DB, c.Actor.Tenant, c.Actor.Member, newest); err != nil {
			return err
		}
	}
	return c.Redirect(path(c, "/notices"))
}
