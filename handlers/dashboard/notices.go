package dashboard

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) noticeRoutes() []handlers.Route {
	return []handlers.Route{
		page("GET", "/notices", access.Read, a.listNotices),
		own(page("POST", "/notices/read", access.Read, a.readNotices)),
		own(page("POST", "/notices/preferences", access.Read, a.savePreferences)),
	}
}

// anyKind is the filter's value for notices of every kind.
const anyKind = "any"

// noticeFilters are the kinds that the actor's role sees.
func noticeFilters(c *handlers.Call) handlers.List {
	return handlers.List{
		Name: "notices", Filters: []handlers.Filter{handlers.ByEndpoint},
		Choices: []handlers.Choice{
			{Name: "kind", Words: append([]string{anyKind}, notice.NamesFor(c.Actor.Role)...)},
			{Name: "unread", Words: []string{"false", "true"}},
		},
	}
}

// listNotices shows the notices that the actor's role sees.
func (a *dashboard) listNotices(c *handlers.Call) error {
	ask := readListQuery(c, id.Notice)
	v := pages.NoticesView{
		Root: path(c, ""), Address: account.Shown(c.Actor.Person.Email), Reads: !c.Actor.Member.IsZero(),
		Filter: pages.NoticeFilter{Kind: ask.filter.Get("kind"), Endpoint: ask.filter.Get("endpoint"), Unread: ask.filter.Get("unread") == "true"},
	}
	for _, k := range notice.KindsFor(c.Actor.Role) {
		v.Kinds = append(v.Kinds, components.Option{Value: string(k), Label: k.Label()})
	}
	p, err := c.Page(noticeFilters(c))
	if err != nil {
		if v.Wrong, err = wrongQuery(err); err != nil {
			return err
		}
	}
	err = c.Tx(func(q *db.Tx) (err error) {
		if v.Endpoints, _, err = a.filterChoices(c, q); err != nil {
			return err
		}
		if len(v.Wrong) == 0 {
			if err := a.fillNotices(c, q, p, ask, &v); err != nil {
				return err
			}
		}
		v.Preferences, err = a.preferences(c, q)
		return err
	})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if len(v.Wrong) > 0 {
		status = http.StatusBadRequest
	}
	v.Shell = c.Shell("Notices", "notices")
	return c.Render(status, pages.Notices(v))
}

func (a *dashboard) fillNotices(c *handlers.Call, q *db.Tx, p handlers.Page, ask listQuery,
	v *pages.NoticesView,
) error {
	list := sql.PageOfNoticesParams{
		TenantID: c.Actor.Tenant, High: id.Last, Kinds: notice.NamesFor(c.Actor.Role), Most: rows + 1,
	}
	if kind := p.Chosen["kind"]; kind != anyKind {
		list.Kinds = []string{kind}
	}
	if !p.Endpoint.IsZero() {
		list.EndpointID = &p.Endpoint
	}
	if !ask.after.IsZero() {
		list.High, v.First = ask.after, ask.at(v.Root+"/notices", "", "")
	}
	seen := id.Last // only members have read notices
	if v.Reads {
		var err error
		if seen, err = q.NoticesSeen(c.Ctx(), sql.NoticesSeenParams{
			TenantID: c.Actor.Tenant,
			MemberID: c.Actor.Member,
		}); err != nil {
			return err
		}
	}
	if v.Filter.Unread {
		list.Low = seen
	}
	found, err := q.PageOfNotices(c.Ctx(), list)
	if err != nil {
		return err
	}
	if len(found) > rows {
		found = found[:rows]
		v.Older = ask.at(v.Root+"/notices", "after", id.Notice.Format(found[rows-1].ID))
	}
	for _, n := range found {
		r := noticeRow(n, v.Root)
		r.New = n.ID.Compare(seen) > 0
		if r.New && v.Newest == "" {
			v.Newest = r.ID
		}
		v.Rows = append(v.Rows, r)
	}
	return nil
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

func noticeRow(n sql.NoticeRow, root string) pages.NoticeRow {
	r := pages.NoticeRow{
		ID: id.Notice.Format(n.ID), Title: n.Kind.Label(), Severity: n.Kind.Severity(), At: n.CreatedAt,
	}
	var d struct{ URL, Description, Reason, Delivery, Name, Action, Day string }
	_ = json.Unmarshal(n.Details, &d) // fields that a kind lacks stay empty
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

// preferences are the kinds that the person can get by mail. Portal links have no address here, and so none.
func (a *dashboard) preferences(c *handlers.Call, q *db.Tx) ([]components.Option, error) {
	if c.Actor.Person.ID.IsZero() {
		return nil, nil
	}
	chosen, err := q.PreferencesOf(c.Ctx(), sql.PreferencesOfParams{
		TenantID:  c.Actor.Tenant,
		Recipient: notice.PersonRecipient(c.Actor.Person.ID),
	})
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

// savePreferences stores which notices the person wants by mail.
func (a *dashboard) savePreferences(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	if !c.Actor.Person.ID.IsZero() {
		err = c.Tx(func(q *db.Tx) error {
			before, err := a.preferences(c, q)
			if err != nil {
				return err
			}
			wanted := map[notice.Kind]bool{}
			for _, o := range before {
				if on := slices.Contains(form["kind"], o.Value); on != o.Selected {
					wanted[notice.Kind(o.Value)] = on
				}
			}
			return accounts.SetPreferences(c.Ctx(), q, c.Actor.Tenant, notice.PersonRecipient(c.Actor.Person.ID),
				wanted, c.Author())
		})
		if err != nil {
			return err
		}
	}
	c.Flash("Saved.")
	return c.Redirect(path(c, "/notices"))
}
