package dashboard

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) noticeRoutes() []handlers.Route {
	return []handlers.Route{
		page("GET", "/notices", access.Read, a.listNotices),
		page("POST", "/notices/preferences", access.Read, a.savePreferences),
	}
}

// listNotices shows what the actor's role may see.
func (a *dashboard) listNotices(c *handlers.Call) error {
	ask := readListQuery(c, id.Notice)
	v := pages.NoticesView{Root: path(c, ""), Address: c.Actor.Person.Email}
	high := lastID()
	if !ask.after.IsZero() {
		high, v.First = ask.after, v.Root+"/notices"
	}
	err := a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Queries) error {
		found, err := q.ListNoticesDown(c.Ctx(), db.ListNoticesDownParams{TenantID: c.Actor.Tenant, High: high, Most: rows + 1})
		if err != nil {
			return err
		}
		if len(found) > rows {
			found = found[:rows]
			v.Older = ask.at(v.Root+"/notices", "after", id.Notice.Format(found[rows-1].ID))
		}
		for _, n := range found {
			if n.Kind.SeenBy(c.Actor.Role) {
				v.Rows = append(v.Rows, noticeRow(n, v.Root))
			}
		}
		v.Preferences, err = a.preferences(c, q)
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Notices", "notices")
	return c.Render(http.StatusOK, pages.Notices(v))
}

func noticeRow(n db.NoticeRow, root string) pages.NoticeRow {
	r := pages.NoticeRow{ID: id.Notice.Format(n.ID), Title: n.Kind.Label(), Severity: n.Kind.Severity(), At: n.CreatedAt}
	var d struct{ URL, Description, Reason, Delivery, Name, Action, Day string }
	_ = json.Unmarshal(n.Details, &d) // what a kind does not hold stays empty
	for _, text := range []string{d.Description, d.URL, d.Name, d.Day} {
		if r.About == "" {
			r.About = text
		}
	}
	if r.Detail = d.Action; r.Detail == "" && d.Reason != "" {
		r.Detail = "Reason: " + strings.ReplaceAll(d.Reason, "_", " ")
	}
	switch {
	case d.Delivery != "":
		r.Link = root + "/deliveries/" + d.Delivery
	case n.EndpointID != nil:
		r.Link = root + "/endpoints/" + id.Endpoint.Format(*n.EndpointID)
	}
	return r
}

// preferences are the kinds that the person may have by mail; none for who came by a link and has no address here.
func (a *dashboard) preferences(c *handlers.Call, q *db.Queries) ([]components.Option, error) {
	if c.Actor.Person.ID.IsZero() {
		return nil, nil
	}
	chosen, err := q.PreferencesOf(c.Ctx(), db.PreferencesOfParams{TenantID: c.Actor.Tenant, Recipient: notice.PersonRecipient(c.Actor.Person.ID)})
	if err != nil {
		return nil, err
	}
	wanted := map[notice.Kind]bool{}
	for _, k := range notice.KindsFor(c.Actor.Role) {
		wanted[k] = k.MailedByDefault()
	}
	for _, p := range chosen {
		wanted[p.Kind] = p.Wanted
	}
	var out []components.Option
	for _, k := range notice.KindsFor(c.Actor.Role) {
		out = append(out, components.Option{Value: string(k), Label: k.Label(), Selected: wanted[k]})
	}
	return out, nil
}

// savePreferences writes which notices the person wants by mail.
func (a *dashboard) savePreferences(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	if !c.Actor.Person.ID.IsZero() {
		err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Queries) error {
			before, err := a.preferences(c, q)
			if err != nil {
				return err
			}
			changed := map[string]bool{}
			for _, o := range before {
				if on := slices.Contains(form["kind"], o.Value); on != o.Selected {
					changed[o.Value] = on
					if _, err := q.SetPreference(c.Ctx(), db.SetPreferenceParams{
						TenantID: c.Actor.Tenant, Recipient: notice.PersonRecipient(c.Actor.Person.ID), Kind: notice.Kind(o.Value), Wanted: on,
					}); err != nil {
						return err
					}
				}
			}
			if len(changed) == 0 {
				return nil
			}
			return c.Audit(q, "notice_preferences.changed", "notice_preferences", id.Person.Format(c.Actor.Person.ID), "", changed)
		})
		if err != nil {
			return err
		}
	}
	c.Flash("Saved.")
	return c.Redirect(path(c, "/notices"))
}
