package dashboard

import (
	"net/http"
	"slices"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// showAlerts shows where the notices that the actor's role sees are sent.
func (a *dashboard) showAlerts(c *handlers.Call) error {
	v := pages.AlertsView{
		Shell:   c.Shell("Alerts", "alerts"),
		Root:    path(c, ""),
		Address: account.Shown(c.Actor.Person.Email),
		MayMute: c.Actor.May(access.ChangeSettings),
		MayAdd:  c.Actor.May(access.ChangeEndpoints),
		MaySee:  c.Actor.May(access.ReadMembers) && c.Actor.May(access.ChangeSettings),
	}
	err := c.Tx(func(q *db.Tx) (err error) {
		kinds := notice.KindsFor(c.Actor.Role)
		if v.Rows, err = accounts.ReadAlerts(c.Ctx(), q, c.Actor.Tenant, kinds); err != nil {
			return err
		}
		if v.Preferences, err = a.preferences(c, q, kinds); err != nil {
			return err
		}
		v.Channels, err = channelsOf(c, q, v.Rows)
		return err
	})
	if err != nil {
		return err
	}
	for i := range v.Rows {
		v.Rows[i].Recipients = shownAll(v.Rows[i].Recipients)
	}
	return c.Render(http.StatusOK, pages.Alerts(v))
}

// channelsOf are the channels of all kinds, with how they are: a channel that fails is silent.
func channelsOf(c *handlers.Call, q *db.Tx, rows []show.AlertKind) (all []pages.ChannelLine, err error) {
	var ids []id.UUID
	for _, r := range rows {
		for _, ch := range r.Channels {
			if !slices.Contains(ids, ch.ID) {
				ids, all = append(ids, ch.ID), append(all, pages.ChannelLine{AlertChannel: ch})
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	states, err := endpoints.Conditions(c.Ctx(), q, &c.Actor.Tenant, ids)
	for i := range all {
		all[i].Condition = states[all[i].ID].Condition.Shown()
	}
	return all, err
}

// muteNotices mutes a kind of notices for mail and channels, or ends its mute.
func (a *dashboard) muteNotices(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	kind, muted := notice.Kind(form.Get("kind")), form.Get("muted") == "true"
	if !kind.Known() {
		return fault.ErrNotFound
	}
	err = c.Tx(func(q *db.Tx) error {
		return accounts.MuteNotices(c.Ctx(), q, c.Actor.Tenant, kind, muted, c.Author())
	})
	if err != nil {
		return err
	}
	if muted {
		return c.Done(path(c, "/alerts"), "Muted. These notices are only on the Notices page.")
	}
	return c.Done(path(c, "/alerts"), "Unmuted.")
}

// preferences are the kinds that the person can get by mail. Portal links have no address here, and so none.
func (a *dashboard) preferences(c *handlers.Call, q *db.Tx, kinds []notice.Kind) (map[notice.Kind]bool, error) {
	if c.Actor.Person.ID.IsZero() {
		return nil, nil
	}
	return accounts.Preferences(c.Ctx(), q, c.Actor.Tenant, notice.PersonRecipient(c.Actor.Person.ID), kinds)
}

// savePreferences stores which notices the person wants by mail.
func (a *dashboard) savePreferences(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	if !c.Actor.Person.ID.IsZero() {
		err = c.Tx(func(q *db.Tx) error {
			before, err := a.preferences(c, q, notice.KindsFor(c.Actor.Role))
			if err != nil {
				return err
			}
			wanted := map[notice.Kind]bool{}
			for kind, was := range before {
				if on := slices.Contains(form["kind"], string(kind)); on != was {
					wanted[kind] = on
				}
			}
			return accounts.SetPreferences(c.Ctx(), q, c.Actor.Tenant, notice.PersonRecipient(c.Actor.Person.ID), wanted, c.Author())
		})
		if err != nil {
			return err
		}
	}
	return c.Done(path(c, "/alerts"), "Saved.")
}
