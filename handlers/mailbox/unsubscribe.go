package mailbox

import (
	"context"
	"net/http"
	"slices"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/handlers"
	"posthorn/views/pages"
)

var errLink = fault.New(fault.NotFound, "link_unknown", "This link is not one of ours, or it was cut short. Open the one from the mail, or choose your mails when signed in.")

// subscription is what the link says. The link is all the proof that is asked for: whoever has the mail may stop it.
func (a *mailbox) subscription(c *handlers.Call) (notice.Subscription, error) {
	payload, ok := a.Keys.OpenToken(accounts.UnsubscribePurpose, c.Param("token"))
	if !ok {
		return notice.Subscription{}, errLink
	}
	s, ok := notice.ParseSubscription(payload)
	if !ok {
		return s, errLink
	}
	return s, nil
}

// choices are the kinds that a recipient may choose among, and what holds for each.
func choices(ctx context.Context, q *sql.Queries, s notice.Subscription) ([]pages.NoticeChoice, error) {
	role := access.Owner // contacts see what an owner sees
	if person, ok := notice.RecipientPerson(s.Recipient); ok {
		text, err := q.RecipientRole(ctx, sql.RecipientRoleParams{TenantID: s.Tenant, PersonID: person})
		if err != nil {
			return nil, err
		}
		role = access.Role(text)
	}
	rows, err := q.PreferencesOf(ctx, sql.PreferencesOfParams{TenantID: s.Tenant, Recipient: s.Recipient})
	if err != nil {
		return nil, err
	}
	chosen := map[notice.Kind]*bool{}
	for _, r := range rows {
		chosen[r.Kind] = &r.Wanted
	}
	var all []pages.NoticeChoice
	for _, k := range notice.KindsFor(role) {
		all = append(all, pages.NoticeChoice{Kind: string(k), Label: k.Label(), Wanted: k.Wants(role, chosen[k])})
	}
	return all, nil
}

// showUnsubscribe is a page with a button: mail programs open links before people do, so that opening one stops nothing.
func (a *mailbox) showUnsubscribe(c *handlers.Call) error {
	s, err := a.subscription(c)
	if err != nil {
		return err
	}
	return a.renderChoices(c, s, "")
}

func (a *mailbox) renderChoices(c *handlers.Call, s notice.Subscription, done string) error {
	v := pages.UnsubscribeView{Shell: c.Shell("Your mails", ""), Path: c.Request.URL.EscapedPath(), Kind: string(s.Kind), Label: s.Kind.Label(), Done: done}
	err := a.DB.Tenant(c.Ctx(), s.Tenant, func(q *sql.Queries) error {
		t, err := q.GetTenant(c.Ctx(), s.Tenant)
		if err != nil {
			return err
		}
		v.Tenant = t.Name
		v.Choices, err = choices(c.Ctx(), q, s)
		return err
	})
	if fault.Is(err, fault.ErrNotFound.Code) {
		v.Done = "You get no more of these mails: you are not told of this tenant any more."
		err = nil
	}
	if err != nil {
		return err
	}
	for _, one := range v.Choices {
		if one.Kind == v.Kind {
			v.Wanted = one.Wanted
		}
	}
	return c.Render(http.StatusOK, pages.Unsubscribe(v))
}

// unsubscribe stops mails of the link's kind (RFC 8058: the mail program posts List-Unsubscribe=One-Click, without a person),
// or saves what the person chose on the page.
func (a *mailbox) unsubscribe(c *handlers.Call) error {
	s, err := a.subscription(c)
	if err != nil {
		return err
	}
	form, err := a.form(c)
	if err != nil {
		return err
	}
	done := "You get no more of these mails."
	err = a.DB.Tenant(c.Ctx(), s.Tenant, func(q *sql.Queries) error {
		if form["save"] == nil {
			return save(c, q, s, map[notice.Kind]bool{s.Kind: false})
		}
		done = "Saved."
		all, err := choices(c.Ctx(), q, s)
		if err != nil {
			return err
		}
		wanted := map[notice.Kind]bool{}
		for _, one := range all {
			if on := slices.Contains(form["kind"], one.Kind); on != one.Wanted {
				wanted[notice.Kind(one.Kind)] = on
			}
		}
		return save(c, q, s, wanted)
	})
	if err != nil && !fault.Is(err, fault.ErrNotFound.Code) { // a tenant that is gone sends no more mails
		return err
	}
	return a.renderChoices(c, s, done)
}

// form reads the fields. Mail programs may send the one click as multipart/form-data (RFC 8058, section 3.2); of that nothing
// needs to be read.
func (a *mailbox) form(c *handlers.Call) (map[string][]string, error) {
	if c.ContentType() == "multipart/form-data" {
		_, err := c.Body()
		return map[string][]string{}, err
	}
	return c.Form()
}

// save writes what was chosen and the audit log.
func save(c *handlers.Call, q *sql.Queries, s notice.Subscription, wanted map[notice.Kind]bool) error {
	changed := map[string]bool{}
	for k, on := range wanted {
		n, err := q.SetPreference(c.Ctx(), sql.SetPreferenceParams{TenantID: s.Tenant, Recipient: s.Recipient, Kind: k, Wanted: on})
		if err != nil {
			return err
		}
		if n > 0 {
			changed[string(k)] = on
		}
	}
	if len(changed) == 0 {
		return nil
	}
	by := db.Author{Kind: "member", ID: s.Recipient, Address: c.Actor.Address}
	if person, ok := notice.RecipientPerson(s.Recipient); ok {
		by.ID = id.Person.Format(person)
	}
	return db.Audit(c.Ctx(), q, by, db.Audited{Tenant: &s.Tenant, Action: "notice_preferences.changed", Kind: "notice_preferences", Object: by.ID, Details: changed})
}
