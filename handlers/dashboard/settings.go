package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// maxRetention is the longest retention of a tenant, in days.
const maxRetention = 90

// settings is the current page of settings.
func (a *dashboard) settings(c *handlers.Call) (v pages.SettingsView, err error) {
	var t show.Tenant
	var used accounts.Usage
	var members show.Page[show.Member]
	err = c.Tx(func(q *db.Tx) error {
		if t, _, err = accounts.ReadTenant(c.Ctx(), q, c.Actor.Tenant); err != nil {
			return err
		}
		if used, err = accounts.ReadUsage(c.Ctx(), q, c.Actor.Tenant, a.EndpointsPerTenant, a.MaxPayload, a.Now()); err != nil {
			return err
		}
		all := show.Range{Ascending: true, Limit: maxMembers}
		members, err = accounts.ListMembers(c.Ctx(), q, c.Actor.Tenant, all)
		return err
	})
	if err != nil {
		return v, err
	}
	told := t.Notices()
	retries := endpoint.OwnRetries(t.Settings)
	v = pages.SettingsView{
		Root: path(c, "/settings"),
		Seen: accounts.TenantVersion(t),
		Name: components.FieldProps{Name: "name", Label: "Name", Value: t.Name, Required: true, MaxLength: account.MaxName},
		Retention: components.FieldProps{
			Name:     "retention_days",
			Label:    "Keep events and deliveries for",
			Type:     "number",
			Unit:     "days",
			Width:    "medium",
			Value:    strconv.Itoa(t.RetentionDays),
			Min:      "1",
			Max:      strconv.Itoa(max(maxRetention, t.RetentionDays)),
			Required: true,
			Hint:     "Older data is hidden immediately and then permanently deleted.",
		},
		Unconfirmed: shownAll(t.Unconfirmed),
		Contacts: components.FieldProps{
			Name:        "contacts",
			Label:       "Additional recipients",
			Value:       strings.Join(shownAll(told.Contacts), "\n"),
			Rows:        max(3, min(len(told.Contacts)+1, notice.MaxContacts)),
			Optional:    true,
			Placeholder: "ops@example.com",
			Hint:        fmt.Sprintf("One per line, at most %d. Each of them is asked by email to confirm. They receive all owner notices, and each email has an unsubscribe link.", notice.MaxContacts),
		},
		Retries: components.FieldProps{
			Name:  "retry_policy",
			Label: "Default retry schedule",
			Value: retries,
			Hint:  "For new endpoints without a schedule of their own. Existing endpoints keep theirs.",
		},
		RetryOptions: pages.DefaultRetryOptions(retries == endpoint.Custom),
		Usage:        handlers.Usage(used, "Your limits and usage. Contact the operator of this platform to raise a limit."),
		Digest:       !told.NoDigest,
		StrictTypes:  t.StrictTypes,
		ViewersRead:  t.ViewersReadPayloads(),
		MayTransfer:  c.Actor.May(access.TransferOwnership),
		NewOwner:     components.FieldProps{Name: "member", Label: "New owner", Required: true},
		Confirm:      components.FieldProps{Name: "confirm", Label: "Name of the tenant", Complete: "off", Required: true, Hint: "You become an admin immediately, and only the new owner can undo this. Enter the name to confirm: " + t.Name},
	}
	v.Candidates = []components.Option{{Value: "", Label: "Select a member"}}
	for _, m := range members.Rows {
		if m.ID != c.Actor.Member && !m.Disabled {
			v.Candidates = append(v.Candidates, components.Option{
				Value: id.Member.Format(m.ID),
				Label: m.Name + " (" +
					account.Shown(m.Email) + ")",
			})
		}
	}
	if c.Actor.May(access.ManageSSO) {
		v.SSOPath = path(c, "/settings/sso")
	}
	if c.Actor.May(access.DeleteTenant) {
		v.DeletePath = path(c, "/settings/delete")
	}
	v.Shell = c.Shell("Settings", "settings")
	return v, nil
}

func (a *dashboard) showSettings(c *handlers.Call) error {
	v, err := a.settings(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Settings(v))
}

func (a *dashboard) changeSettings(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	v, err := a.settings(c)
	if err != nil {
		return err
	}
	most, _ := strconv.Atoi(v.Retention.Max)
	v.Name.Value, v.Retention.Value = form.Get("name"), form.Get("retention_days")
	strict, viewers := form.Get("strict_types") == "true", form.Get("viewers_read_payloads") == "true"
	name, wrong := account.Name("name", form.Get("name"))
	if e := fault.As(wrong); e != nil {
		v.Name.Error = e.Detail
	}
	days, err := strconv.Atoi(strings.TrimSpace(form.Get("retention_days")))
	if err != nil || days < 1 || days > most {
		v.Retention.Error = fmt.Sprintf("Enter a number of days from 1 to %d.", most)
	}
	if form.Has("retry_policy") {
		v.Retries.Value = form.Get("retry_policy")
	}
	if e := fault.As(checkRetries(form)); e != nil {
		v.Retries.Error = e.Detail
	}
	if v.Name.Error != "" || v.Retention.Error != "" || v.Retries.Error != "" {
		v.StrictTypes, v.ViewersRead = strict, viewers
		return c.Render(http.StatusBadRequest, pages.Settings(v))
	}
	lost := int64(0)
	err = c.Tx(func(q *db.Tx) error {
		if form.Get("delete_beyond") != strconv.Itoa(days) {
			if lost, err = accounts.EventsBeyond(c.Ctx(), q, c.Actor.Tenant, days, a.Now()); err != nil || lost > 0 {
				return err
			}
		}
		_, err := accounts.ChangeTenant(c.Ctx(), q, c.Actor.Tenant, accounts.TenantChange{
			Name:          &name,
			StrictTypes:   &strict,
			RetentionDays: &days,
			Payloads:      &viewers,
			Retries:       defaultRetries(form),
			Seen:          form.Get("seen"),
		}, c.Author())
		return err
	})
	if fault.Is(err, accounts.ErrChanged.Code) {
		return a.showChanged(c)
	}
	if err != nil {
		return err
	}
	if lost > 0 { // asks for a confirmation first
		v.StrictTypes, v.ViewersRead, v.Seen = strict, viewers, form.Get("seen")
		v.Beyond = pages.BeyondView{Days: days, Events: lost, Text: handlers.BeyondText(lost, days)}
		return c.Render(http.StatusConflict, pages.Settings(v))
	}
	return c.Done(path(c, "/settings"), "Saved.")
}

func checkRetries(form url.Values) error {
	if to := defaultRetries(form); to != nil && *to != nil {
		return (*to).CheckRetries()
	}
	return nil
}

// defaultRetries is the schedule for new endpoints. It is nil if the form does not change it.
func defaultRetries(form url.Values) **endpoint.Settings {
	name := form.Get("retry_policy")
	if !form.Has("retry_policy") || name == endpoint.Custom {
		return nil
	}
	var chosen *endpoint.Settings
	if name != "" {
		chosen = &endpoint.Settings{RetryPolicy: name}
	}
	return &chosen
}

// showChanged shows the settings after somebody else has changed them.
func (a *dashboard) showChanged(c *handlers.Call) error {
	v, err := a.settings(c)
	if err != nil {
		return err
	}
	v.Wrong = accounts.ErrChanged.Detail
	return c.Render(http.StatusConflict, pages.Settings(v))
}

// changeNoticeSettings sets who gets the tenant's notices besides its members, and whether there is a daily digest.
func (a *dashboard) changeNoticeSettings(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	digest := form.Get("digest") == "true"
	contacts, wrong := notice.Contacts("contacts", strings.Fields(strings.ReplaceAll(form.Get("contacts"), ",", " ")))
	if e := fault.As(wrong); e != nil {
		v, err := a.settings(c)
		if err != nil {
			return err
		}
		v.Contacts.Value, v.Contacts.Error, v.Digest = form.Get("contacts"), e.Detail, digest
		return c.Render(http.StatusBadRequest, pages.Settings(v))
	}
	err = c.Tx(func(q *db.Tx) error {
		_, err := accounts.ChangeTenant(c.Ctx(), q, c.Actor.Tenant, accounts.TenantChange{
			Contacts: &contacts,
			Links:    accounts.Links{BaseURL: a.BaseURL, Keys: a.Keys},
			Digest:   &digest,
			Seen:     form.Get("seen"),
		}, c.Author())
		return err
	})
	if fault.Is(err, accounts.ErrChanged.Code) {
		return a.showChanged(c)
	}
	if err != nil {
		return err
	}
	return c.Done(path(c, "/settings"), "Saved.")
}

// transfer makes another member the owner, and the former owner an admin.
func (a *dashboard) transfer(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	if form.Get("member") == "" {
		return a.refuseTransfer(c, http.StatusBadRequest, "Select a member.")
	}
	memberID, err := id.Member.Parse(form.Get("member"))
	if err != nil || memberID == c.Actor.Member {
		return fault.ErrNotFound
	}
	if strings.TrimSpace(form.Get("confirm")) != c.Actor.TenantName {
		v, err := a.settings(c)
		if err != nil {
			return err
		}
		v.NewOwner.Value, v.Confirm.Value, v.Confirm.Error = form.Get("member"), form.Get("confirm"), "This isn't the tenant's name."
		return c.Render(http.StatusBadRequest, pages.Settings(v))
	}
	err = c.Tx(func(q *db.Tx) error {
		up := accounts.RoleChange{
			Tenant: c.Actor.Tenant,
			Member: memberID,
			To:     access.Owner,
			By:     c.Author(),
			Reason: "ownership transferred",
			May:    c.Actor.Role.MaySetRole,
		}
		owner, err := accounts.ChangeRole(c.Ctx(), q, up)
		if err != nil {
			return err
		}
		down := up
		down.Member, down.To = c.Actor.Member, access.Admin
		before, err := accounts.ChangeRole(c.Ctx(), q, down)
		if err != nil {
			return err
		}
		return a.mailTransfer(c, q, owner, before)
	})
	if e := fault.As(err); e != nil && e.Kind == fault.Conflict {
		return a.refuseTransfer(c, http.StatusConflict, e.Detail)
	}
	if err != nil {
		return err
	}
	return c.Done(path(c, "/members"), "The tenant has a new owner. You're now an admin.")
}

func shownAll(emails []string) []string {
	all := make([]string, len(emails))
	for i, email := range emails {
		all[i] = account.Shown(email)
	}
	return all
}

// mailTransfer tells both people who owns the tenant now.
func (a *dashboard) mailTransfer(c *handlers.Call, q *db.Tx, to, from show.Member) error {
	tenant := "\u201c" + mail.TenantText(c.Actor.TenantName) + "\u201d"
	for _, m := range []struct {
		show.Member
		what, advice string
	}{
		{to, account.Shown(from.Email) + " made you the owner of " + tenant, "contact the operator of this Posthorn server."},
		{from, "You transferred the ownership of " + tenant + " to " + account.Shown(to.Email), "choose a new password, and ask " + account.Shown(to.Email) + " to make you the owner again."},
	} {
		_, err := accounts.QueueMail(c.Ctx(), q, accounts.Mail{
			Tenant: &c.Actor.Tenant,
			Key:    string(mail.SignInAlert) + ":" + id.Member.Format(db.NewID()),
			To:     m.Email,
			Kind:   mail.SignInAlert,
			Data: mail.SignInAlertData{
				Name:    m.Name,
				What:    m.what,
				At:      a.Now().UTC().Truncate(time.Second),
				Address: c.Actor.Address,
				Advice:  m.advice,
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// refuseTransfer shows the settings with the reason why the ownership did not change.
func (a *dashboard) refuseTransfer(c *handlers.Call, status int, why string) error {
	v, err := a.settings(c)
	if err != nil {
		return err
	}
	v.NewOwner.Error = why
	return c.Render(status, pages.Settings(v))
}
