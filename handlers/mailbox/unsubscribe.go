package mailbox

import (
	"context"
	"net/http"
	"slices"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/handlers"
	"posthorn/views/pages"
)

var errLink = fault.New(fault.NotFound, "link_unknown", "This link is invalid or incomplete. Open the link in the email again, or change your email preferences under Notices.")

// subscription is what the link identifies. The link is the only credential: everybody who has the mail can
// unsubscribe.
func (a *mailbox) subscription(c *handlers.Call) (notice.Subscription, error) {
	payload, ok := a.Keys.OpenToken(accounts.UnsubscribePurpose, c.Param("token"))
	if !ok {
		s, arrived, err := accounts.ArrivedLink(c.Ctx(), a.DB, a.Keys, c.Param("token"))
		if err == nil && !arrived {
			err = errLink
		}
		return s, err
	}
	s, ok := notice.ParseSubscription(payload)
	if !ok {
		return s, errLink
	}
	return s, nil
}

// choices are the kinds that a recipient can select, and whether they get each.
func choices(ctx context.Context, q *db.Tx, s notice.Subscription) (all []pages.NoticeChoice, err error) {
	role := access.Owner // contacts see what an owner sees
	if person, ok := notice.RecipientPerson(s.Recipient); ok {
		if role, err = accounts.RoleOf(ctx, q, s.Tenant, person); err != nil {
			return nil, err
		}
	}
	kinds := notice.KindsFor(role)
	wanted, err := accounts.Preferences(ctx, q, s.Tenant, s.Recipient, kinds)
	for _, k := range kinds {
		all = append(all, pages.NoticeChoice{Kind: string(k), Label: k.Label(), Wanted: wanted[k]})
	}
	return all, err
}

// asks reports whether the link's recipient is a contact who has not agreed to get notices yet.
func asks(ctx context.Context, q *db.Tx, s notice.Subscription) (bool, error) {
	if _, person := notice.RecipientPerson(s.Recipient); person {
		return false, nil
	}
	agreed, err := accounts.Preferences(ctx, q, s.Tenant, s.Recipient, []notice.Kind{notice.ContactConfirmed})
	return !agreed[notice.ContactConfirmed], err
}

// showUnsubscribe is a page with a button. Mail programs open links before people do, so opening one stops nothing.
func (a *mailbox) showUnsubscribe(c *handlers.Call) error {
	s, err := a.subscription(c)
	if err != nil {
		return err
	}
	return a.renderChoices(c, s, "")
}

func (a *mailbox) renderChoices(c *handlers.Call, s notice.Subscription, done string) error {
	v := pages.UnsubscribeView{
		Shell: c.Shell("Email preferences", ""),
		Path:  c.Request.URL.EscapedPath(),
		Kind:  string(s.Kind),
		Label: s.Kind.Label(),
		Done:  done,
	}
	err := a.DB.Tenant(c.Ctx(), s.Tenant, func(q *db.Tx) error {
		t, err := accounts.FindTenant(c.Ctx(), q, s.Tenant)
		if err != nil {
			return err
		}
		v.Tenant = mail.TenantText(t.Name)
		if v.Asks, err = asks(c.Ctx(), q, s); err != nil {
			return err
		}
		v.Choices, err = choices(c.Ctx(), q, s)
		return err
	})
	if fault.Is(err, fault.ErrNotFound.Code) {
		v.Done = "You no longer receive notices about this tenant."
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

// unsubscribe stops mails of the link's kind (RFC 8058: the mail program posts List-Unsubscribe=One-Click, without a
// person), or saves the person's selection on the page.
func (a *mailbox) unsubscribe(c *handlers.Call) error {
	s, err := a.subscription(c)
	if err != nil {
		return err
	}
	form, err := a.form(c)
	if err != nil {
		return err
	}
	done := "You won't receive these emails anymore."
	err = a.DB.Tenant(c.Ctx(), s.Tenant, func(q *db.Tx) error {
		if form["confirm"] != nil {
			done = "You'll receive these notices."
			if _, person := notice.RecipientPerson(s.Recipient); person {
				return nil
			}
			return save(c, q, s, map[notice.Kind]bool{notice.ContactConfirmed: true})
		}
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
	if err != nil && !fault.Is(err, fault.ErrNotFound.Code) { // a deleted tenant sends no more mails
		return err
	}
	return a.renderChoices(c, s, done)
}

// form reads the fields. Mail programs can send the one click as multipart/form-data (RFC 8058, section 3.2), whose
// fields are not needed.
func (a *mailbox) form(c *handlers.Call) (map[string][]string, error) {
	if c.ContentType() == "multipart/form-data" {
		_, err := c.Body()
		return map[string][]string{}, err
	}
	return c.Form()
}

// save stores the selection. The author is the recipient, whom the link names.
func save(c *handlers.Call, q *db.Tx, s notice.Subscription, wanted map[notice.Kind]bool) error {
	by := db.Author{Kind: "member", ID: s.Recipient, Address: c.Actor.Address}
	if person, ok := notice.RecipientPerson(s.Recipient); ok {
		by.ID = id.Person.Format(person)
	}
	return accounts.SetPreferences(c.Ctx(), q, s.Tenant, s.Recipient, wanted, by)
}
