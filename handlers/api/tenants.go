package api

import (
	"fmt"
	"net/http"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/maintenance"
	"posthorn/domain/account"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/show"
	"posthorn/handlers"
)

func (a *api) createTenant(c *handlers.Call) error {
	var in TenantInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var wrong wrongFields
	t := accounts.NewTenant{Name: wrong.name("name", &in.Name), RetentionDays: a.Settings.RetentionDays}
	t.ExternalID = wrong.external("external_id", in.ExternalID)
	if in.StrictTypes != nil {
		t.StrictTypes = *in.StrictTypes
	}
	if in.RetentionDays != nil {
		a.checkRetention(&wrong, *in.RetentionDays)
		t.RetentionDays = *in.RetentionDays
	}
	if rate, err := in.RateLimit.Get(); err == nil {
		t.Rate = &rate
	}
	if in.Metadata != nil {
		t.Metadata = *in.Metadata
	}
	if e := fault.As(endpoint.CheckTenant(t.Metadata, t.Rate)); e != nil {
		wrong = append(wrong, e.Fields...)
	}
	if err := wrong.err(); err != nil {
		return err
	}
	made, text, err := accounts.CreateTenant(c.Ctx(), a.DB, t, c.Author())
	if err != nil {
		return err
	}
	v, err := a.readTenant(c, made.ID)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusCreated, TenantCreated{
		ID:                  v.ID,
		ExternalID:          v.ExternalID,
		Name:                v.Name,
		State:               v.State,
		StrictTypes:         v.StrictTypes,
		RetentionDays:       v.RetentionDays,
		ViewersReadPayloads: v.ViewersReadPayloads,
		HealthPolicy:        v.HealthPolicy,
		RetryPolicy:         v.RetryPolicy,
		RateLimit:           v.RateLimit,
		Metadata:            v.Metadata,
		Contacts:            v.Contacts,
		Digest:              v.Digest,
		MutedNotices:        v.MutedNotices,
		CreatedAt:           v.CreatedAt,
		APIKey:              text,
	})
}

func (a *api) checkRetention(wrong *wrongFields, days int) {
	if days < 1 || days > a.Settings.RetentionDays {
		wrong.add("retention_days", "retention_range", fmt.Sprintf("Retention must be 1 to %d days.", a.Settings.RetentionDays))
	}
}

func (a *api) listTenants(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "tenants"})
	if err != nil {
		return err
	}
	var found show.Page[show.Tenant]
	var platform []byte
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		found, platform, err = accounts.ListTenants(c.Ctx(), q, p.Range)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, page[Tenant]{
		Data:       views(found.Rows, func(t show.Tenant) Tenant { return encodeTenant(t, platform) }),
		NextCursor: cursorOrNull(p.Cursor(found.Next)),
	})
}

func (a *api) getTenant(c *handlers.Call) error {
	tenantID := c.PathID(handlers.TenantParam)
	return a.showTenant(c, tenantID)
}

func (a *api) getOwnTenant(c *handlers.Call) error { return a.showTenant(c, c.Actor.Tenant) }

func (a *api) showTenant(c *handlers.Call, tenantID id.UUID) error {
	v, err := a.readTenant(c, tenantID)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, v)
}

// readTenant reads as the tenant itself, also for platform keys, so that row-level security applies to the query.
func (a *api) readTenant(c *handlers.Call, tenantID id.UUID) (v Tenant, err error) {
	err = a.DB.Tenant(c.Ctx(), tenantID, func(q *db.Tx) error {
		t, platform, err := accounts.ReadTenant(c.Ctx(), q, tenantID)
		v = encodeTenant(t, platform)
		return err
	})
	return v, err
}

func (a *api) updateTenant(c *handlers.Call) error {
	tenantID := c.PathID(handlers.TenantParam)
	return a.changeTenant(c, tenantID)
}

func (a *api) updateOwnTenant(c *handlers.Call) error { return a.changeTenant(c, c.Actor.Tenant) }

func (a *api) changeTenant(c *handlers.Call, tenantID id.UUID) error {
	var in TenantPatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	if in.ExternalID.IsSpecified() && !c.Actor.Platform {
		return errExternalOfPlatform
	}
	change, err := a.tenantChange(in)
	if err != nil {
		return err
	}
	err = a.DB.Tenant(c.Ctx(), tenantID, func(q *db.Tx) error {
		_, err := accounts.ChangeTenant(c.Ctx(), q, tenantID, change, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	return a.showTenant(c, tenantID)
}

var errExternalOfPlatform = fault.New(fault.Forbidden, "platform_key_required", "Only a platform key can change a tenant's external id.")

// tenantChange reads and validates a change.
func (a *api) tenantChange(in TenantPatch) (accounts.TenantChange, error) {
	var wrong wrongFields
	if in.Name != nil {
		*in.Name = wrong.name("name", in.Name)
	}
	if in.RetentionDays != nil {
		a.checkRetention(&wrong, *in.RetentionDays)
	}
	change := accounts.TenantChange{
		Name:          in.Name,
		StrictTypes:   in.StrictTypes,
		RetentionDays: in.RetentionDays,
		Payloads:      in.ViewersReadPayloads,
		Health:        in.HealthPolicy.parts(),
		Digest:        in.Digest,
	}
	if in.ExternalID.IsSpecified() {
		external := ""
		if given, err := in.ExternalID.Get(); err == nil {
			external = wrong.external("external_id", &given)
		}
		change.ExternalID = &external
	}
	if in.Contacts != nil {
		contacts, err := notice.Contacts("contacts", *in.Contacts)
		if e := fault.As(err); e != nil {
			wrong = append(wrong, e.Fields...)
		}
		change.Contacts, change.Links = &contacts, accounts.Links{BaseURL: a.BaseURL, Keys: a.Keys}
	}
	if in.MutedNotices != nil {
		muted, err := notice.MutedKinds("muted_notices", views(*in.MutedNotices, func(k NoticeKind) string { return string(k) }))
		if e := fault.As(err); e != nil {
			wrong = append(wrong, e.Fields...)
		}
		change.Muted = &muted
	}
	if in.RetryPolicy.IsSpecified() {
		retries, err := in.defaultRetries()
		if e := fault.As(err); e != nil {
			wrong = append(wrong, e.Fields...)
		}
		change.Retries = &retries
	}
	var metadata map[string]string
	if change.Metadata = in.Metadata; in.Metadata != nil {
		metadata = *in.Metadata
	}
	var rate *int
	if in.RateLimit.IsSpecified() {
		if given, err := in.RateLimit.Get(); err == nil {
			rate = &given
		}
		change.Rate = &rate
	}
	if e := fault.As(endpoint.CheckTenant(metadata, rate)); e != nil {
		wrong = append(wrong, e.Fields...)
	}
	return change, wrong.err()
}

// defaultRetries reads the schedule of new endpoints; nil is the platform's.
func (p TenantPatch) defaultRetries() (*endpoint.Settings, error) {
	given, err := p.RetryPolicy.Get()
	if err != nil {
		return nil, nil //nolint:nilnil // null is a value of the field
	}
	var s endpoint.Settings
	var policy endpoint.RetryPolicy
	if err := recode(given, &policy); err != nil {
		return nil, err
	}
	if err := s.SetRetries(policy); err != nil {
		return nil, err
	}
	return &s, s.CheckRetries()
}

func (a *api) deleteTenant(c *handlers.Call) error {
	tenantID := c.PathID(handlers.TenantParam)
	if err := c.NoBody(); err != nil {
		return err
	}
	if err := maintenance.DeleteTenant(c.Ctx(), a.DB, tenantID, "", c.Author()); err != nil {
		return err
	}
	return c.AnswerNothing()
}

func (a *api) suspendTenant(c *handlers.Call) error {
	return a.setTenantState(c, account.TenantSuspended)
}

func (a *api) resumeTenant(c *handlers.Call) error {
	return a.setTenantState(c, account.TenantActive)
}

func (a *api) setTenantState(c *handlers.Call, state account.TenantState) error {
	tenantID := c.PathID(handlers.TenantParam)
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	if _, err := accounts.SetTenantState(c.Ctx(), a.DB, tenantID, state, reason, c.Author()); err != nil {
		return err
	}
	return a.showTenant(c, tenantID)
}

// encodeTenant shows a tenant with the settings in effect.
func encodeTenant(t show.Tenant, platform []byte) Tenant {
	notices := t.Notices()
	v := Tenant{
		ID:                  id.Tenant.Format(t.ID),
		ExternalID:          orNullText(t.ExternalID),
		Name:                t.Name,
		State:               TenantState(t.State),
		StrictTypes:         t.StrictTypes,
		RetentionDays:       t.RetentionDays,
		ViewersReadPayloads: t.ViewersReadPayloads(),
		HealthPolicy:        policyView(health.ReadPolicy(platform, t.Settings)),
		RetryPolicy:         encodeRetries(endpoint.ReadDefaults(0, platform, t.Settings).Settings),
		RateLimit:           orNullNumber(t.RateLimit()),
		Metadata:            t.Metadata(),
		Contacts:            views(notices.Contacts, account.Shown),
		Digest:              !notices.NoDigest,
		MutedNotices:        views(notices.Muted, func(k notice.Kind) NoticeKind { return NoticeKind(k) }),
		CreatedAt:           Time(t.CreatedAt),
	}
	if t.Unconfirmed != nil {
		v.ContactsUnconfirmed = new(views(t.Unconfirmed, account.Shown))
	}
	return v
}
