package accounts

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/notice"
	"posthorn/domain/retry"
	"posthorn/domain/settings"
	"posthorn/domain/show"
)

// tenantOf is a tenant without what other tables hold.
func tenantOf(row sql.Tenant) show.Tenant {
	return show.Tenant{
		ID:            row.ID,
		ExternalID:    deref(row.ExternalID),
		Name:          row.Name,
		State:         row.State,
		StrictTypes:   row.StrictTypes,
		RetentionDays: int(row.RetentionDays),
		CreatedAt:     row.CreatedAt,
		Settings:      row.Settings,
	}
}

// FindTenant reads a tenant without its contacts that have not agreed. A deleted one is fault.ErrNotFound.
func FindTenant(ctx context.Context, q *sql.Queries, tenant id.UUID) (show.Tenant, error) {
	row, err := q.GetTenant(ctx, tenant)
	return tenantOf(row), err
}

// ReadTenant reads all of a tenant, and the platform's settings, which apply to it.
func ReadTenant(ctx context.Context, q *sql.Queries, tenant id.UUID) (t show.Tenant, platform []byte, err error) {
	if t, err = FindTenant(ctx, q, tenant); err != nil {
		return t, nil, err
	}
	if t.Unconfirmed, err = unconfirmed(ctx, q, t); err != nil {
		return t, nil, err
	}
	platform, err = q.PlatformSettings(ctx)
	return t, platform, err
}

// ListTenants reads a page of all tenants, and the platform's settings, which apply to them.
func ListTenants(ctx context.Context, q *sql.Queries, r show.Range) (page show.Page[show.Tenant], platform []byte, err error) {
	low, high := db.Bounds(r)
	rows, err := q.ListTenants(ctx, sql.ListTenantsParams{
		Low:    low,
		High:   high,
		Newest: !r.Ascending,
		Limit:  db.Limit(r),
	})
	if err != nil {
		return page, nil, err
	}
	platform, err = q.PlatformSettings(ctx)
	found := show.CutByID(rows, r.Limit, func(row sql.Tenant) id.UUID { return row.ID })
	return show.Each(found, tenantOf), platform, err
}

// AllTenants reads all tenants, the oldest first.
func AllTenants(ctx context.Context, q *sql.Queries) (all []show.Tenant, err error) {
	for r := (show.Range{Ascending: true, Limit: 500}); ; {
		page, _, err := ListTenants(ctx, q, r)
		all = append(all, page.Rows...)
		if r.After = page.Next; err != nil || r.After == nil {
			return all, err
		}
	}
}

// TenantLines narrows the operators' list of tenants.
type TenantLines struct {
	Part  string // of the name, or an external id
	State account.TenantState
	Sort  string // newest, name, waiting; empty: those with the most failing endpoints first
}

// List reads a page of the list.
func (l TenantLines) List(ctx context.Context, q *sql.Queries, r show.Range) (show.Page[show.TenantLine], error) {
	rows, err := q.ConsoleTenants(ctx, sql.ConsoleTenantsParams{
		Before:        r.Edge(),
		Part:          l.Part,
		State:         string(l.State),
		Sort:          l.Sort,
		Limit:         db.Limit(r),
		SilentSeconds: incidents.Silent.Seconds(),
	})
	page := show.CutByID(rows, r.Limit, func(row sql.ConsoleTenantsRow) id.UUID { return row.ID })
	return show.Each(page, func(row sql.ConsoleTenantsRow) show.TenantLine {
		return show.TenantLine{
			Tenant: show.Tenant{
				ID:            row.ID,
				ExternalID:    deref(row.ExternalID),
				Name:          row.Name,
				State:         row.State,
				RetentionDays: int(row.RetentionDays),
				CreatedAt:     row.CreatedAt,
			},
			Endpoints: row.Endpoints,
			Disabled:  row.Disabled,
			Failing:   row.Failing,
			Events:    row.Events,
			Waiting:   row.Waiting,
		}
	}), err
}

// ReadActivity reads who can use a tenant, and when somebody last did.
func ReadActivity(ctx context.Context, q *sql.Queries, tenant id.UUID) (show.Activity, error) {
	row, err := q.TenantActivity(ctx, tenant)
	return show.Activity{
		Members:   row.Members,
		Keys:      row.Keys,
		Events:    row.Events,
		LastEvent: db.NotEpoch(row.LastEvent),
		LastKey:   db.NotEpoch(row.LastKey),
	}, err
}

// ReadHoldings reads what a tenant's deletion takes away.
func ReadHoldings(ctx context.Context, q *sql.Queries, tenant id.UUID) (show.Holdings, error) {
	row, err := q.TenantHoldings(ctx, tenant)
	return show.Holdings(row), err
}

// NewTenant describes a tenant to be created.
type NewTenant struct {
	Name          string
	ExternalID    string // the company's own id; empty: none
	StrictTypes   bool
	RetentionDays int               // 0: the platform's setting
	Metadata      map[string]string // already checked
	Rate          *int              // of new endpoints, already checked; nil: the platform's
}

// retention is how many days a new tenant's data is kept.
func retention(ctx context.Context, q *sql.Queries, asked int) (int32, error) {
	if asked != 0 {
		return int32(asked), nil
	}
	platform, err := q.PlatformSettings(ctx)
	return int32(settings.Number(settings.RetentionDays, platform)), err
}

// CreateTenant creates a tenant and its first key, which has every scope of a tenant. text is the key's text, which is
// not stored.
func CreateTenant(ctx context.Context, d *db.DB, t NewTenant, by db.Author) (tenant show.Tenant, text string, err error) {
	tenantID := db.NewID()
	own := TenantChange{Metadata: &t.Metadata, Rate: &t.Rate}
	settings, err := own.setOwn([]byte("{}"), map[string]any{})
	if err != nil {
		return tenant, "", err
	}
	err = d.Console(ctx, func(q *sql.Queries) error {
		days, err := retention(ctx, q, t.RetentionDays)
		if err != nil {
			return err
		}
		err = q.InsertTenant(ctx, sql.InsertTenantParams{
			ID:            tenantID,
			Name:          t.Name,
			StrictTypes:   t.StrictTypes,
			RetentionDays: days,
			CreatedAt:     tenantID.Time(),
			ExternalID:    db.TextOrNull(t.ExternalID),
			Settings:      settings,
		})
		if err = externalInUse(err); err != nil {
			return err
		}
		if tenant, err = FindTenant(ctx, q, tenantID); err != nil {
			return err
		}
		key, keyText, err := makeKey(ctx, q, NewKey{Tenant: &tenantID, Name: "first key", Scopes: access.TenantScopes()})
		if err != nil {
			return err
		}
		text = keyText
		if err := db.Audit(ctx, q, by, db.Audited{
			Tenant:  &tenantID,
			Action:  "tenant.created",
			Kind:    "tenant",
			Object:  id.Tenant.Format(tenantID),
			Details: map[string]any{"name": t.Name, "key": id.Key.Format(key.ID)},
		}); err != nil {
			return err
		}
		return db.Audit(ctx, q, by, keyCreated(key)) // whoever looks for keys finds all of them by one action
	})
	return tenant, text, err
}

// EnsureTenant finds the tenant with an external id, or creates it without a key. Concurrent requests create it once.
func EnsureTenant(ctx context.Context, d *db.DB, t NewTenant, by db.Author) (tenant show.Tenant, created bool, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		tenant, created, err = EnsureTenantIn(ctx, q, t, by)
		return err
	})
	return tenant, created, err
}

// EnsureTenantIn is EnsureTenant within a transaction of the console's role.
func EnsureTenantIn(ctx context.Context, q *sql.Queries, t NewTenant, by db.Author) (tenant show.Tenant, created bool, err error) {
	tenantID := db.NewID()
	days, err := retention(ctx, q, t.RetentionDays)
	if err != nil {
		return tenant, false, err
	}
	n, err := q.InsertTenantOnce(ctx, sql.InsertTenantOnceParams{
		ID:            tenantID,
		Name:          t.Name,
		StrictTypes:   t.StrictTypes,
		RetentionDays: days,
		CreatedAt:     tenantID.Time(),
		ExternalID:    t.ExternalID,
	})
	if err != nil {
		return tenant, false, err
	}
	row, err := q.TenantOfExternalID(ctx, t.ExternalID)
	if err != nil || n == 0 {
		return tenantOf(row), false, err
	}
	return tenantOf(row), true, db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenantID,
		Action:  "tenant.created",
		Kind:    "tenant",
		Object:  id.Tenant.Format(tenantID),
		Details: map[string]any{"name": t.Name, "external_id": t.ExternalID},
	})
}

// externalInUse rejects an external id of another tenant.
func externalInUse(err error) error {
	if !fault.Is(db.Translate(err), "already_exists") {
		return err
	}
	return fault.New(fault.Conflict, "external_id_in_use", "Another tenant has this external id. Choose another id, or change that tenant's id first.")
}

// keyCreated is the audit log's entry for a new key.
func keyCreated(k show.Key) db.Audited {
	return db.Audited{
		Tenant:  k.Tenant,
		Action:  "key.created",
		Kind:    "key",
		Object:  id.Key.Format(k.ID),
		Details: map[string]any{"name": k.Name, "prefix": k.Prefix, "scopes": k.Scopes, "expires_at": k.ExpiresAt},
	}
}

// SetTenantState suspends or resumes a tenant. Every process knows within a second. If the tenant is in the state
// already, nothing changes and nothing is audited.
func SetTenantState(
	ctx context.Context,
	d *db.DB,
	tenant id.UUID,
	state account.TenantState,
	reason string,
	by db.Author,
) (is show.Tenant, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.LockTenant(ctx, tenant)
		if is = tenantOf(row); err != nil || row.State == state {
			return err
		}
		if row, err = q.SetTenantState(ctx, state, tenant); err != nil {
			return err
		}
		is = tenantOf(row)
		if err := q.BumpKeysRevision(ctx); err != nil {
			return err
		}
		if err := q.NotifyPauses(ctx); err != nil {
			return err // its deliveries stop or continue
		}
		kind := notice.TenantResumed
		if state == account.TenantSuspended {
			kind = notice.TenantSuspended
		}
		if err := postHalt(ctx, q, tenant, kind, reason); err != nil {
			return err
		}
		return db.Audit(ctx, q, by, db.Audited{
			Tenant: &tenant,
			Action: string(kind),
			Kind:   "tenant",
			Object: id.Tenant.Format(tenant),
			Reason: reason,
		})
	})
	return is, err
}

// postHalt notifies a tenant that an operator stopped or resumed all of its deliveries, in the same transaction.
func postHalt(ctx context.Context, q *sql.Queries, tenant id.UUID, kind notice.Kind, reason string) error {
	noticeID := db.NewID()
	_, err := PostNotice(ctx, q, Notice{
		ID:      noticeID,
		Tenant:  tenant,
		Kind:    kind,
		Key:     string(kind) + ":" + id.Notice.Format(noticeID),
		Details: notice.HaltDetails{Reason: reason, At: noticeID.Time().UTC()},
	})
	return err
}

// TenantChange lists what a request changes about a tenant; nil leaves a field as it is.
type TenantChange struct {
	Name          *string
	ExternalID    *string // empty removes it
	StrictTypes   *bool
	RetentionDays *int
	Payloads      *bool          // whether viewers can read payloads
	Health        map[string]any // parts of the health policy by name; nil inherits the platform's value
	// The new endpoints' retry policy, already checked; nil inherits the platform's.
	Retries  **endpoint.Settings
	Metadata *map[string]string // already checked; replaces all entries
	Rate     **int              // of new endpoints, already checked; nil inherits the platform's
	Contacts *[]string          // as notice.Contacts returns them; whoever is new is asked to agree
	Links    Links              // for the mails that ask; required with Contacts
	Digest   *bool              // whether a daily digest is sent
	Muted    *[]notice.Kind     // replaces the muted kinds of notices, as notice.MutedKinds returns them
	Limits   map[string]string  // settings.OfTenant by name; an empty text inherits the platform's value
	Seen     string             // the version that the form was based on; empty for any
}

// TenantVersion tells two versions of a tenant's settings apart.
func TenantVersion(t show.Tenant) string {
	return Version(string(t.Settings), strconv.Itoa(t.RetentionDays), t.Name, strconv.FormatBool(t.StrictTypes))
}

// EventsBeyond is how many events a shorter retention would delete, counted by the ledger: the events of days that are
// kept now and would be dropped.
func EventsBeyond(ctx context.Context, q *sql.Queries, tenant id.UUID, days int, now time.Time) (int64, error) {
	row, err := q.GetTenant(ctx, tenant)
	if err != nil || days >= int(row.RetentionDays) {
		return 0, err
	}
	since := func(days int) (int64, error) {
		return q.EventsSince(ctx, tenant, now.UTC().AddDate(0, 0, -days))
	}
	held, err := since(int(row.RetentionDays))
	if err != nil {
		return 0, err
	}
	kept, err := since(days)
	return held - kept, err
}

// ChangeTenant changes a tenant's settings in the caller's transaction. A change without effect is not audited.
func ChangeTenant(ctx context.Context, q *sql.Queries, tenant id.UUID, change TenantChange, by db.Author) (is show.Tenant, err error) {
	row, err := q.LockTenant(ctx, tenant)
	if err != nil {
		return is, err
	}
	if is = tenantOf(row); change.Seen != "" && change.Seen != TenantVersion(is) {
		return is, ErrChanged
	}
	to, changed := change.columns(row), map[string]any{}
	change.name(row, to, changed)
	if changed["external_id"] != nil {
		if err := q.BumpKeysRevision(ctx); err != nil {
			return is, err // caches drop the old external id within a second
		}
	}
	if to.Settings, err = change.settings(to.Settings, changed); err != nil {
		return is, err
	}
	if len(changed) == 0 {
		return is, nil
	}
	if row, err = q.UpdateTenant(ctx, to); err != nil {
		return is, externalInUse(err)
	}
	is = tenantOf(row)
	if changed["health_policy"] != nil {
		if err := q.BumpLanesOf(ctx, tenant); err != nil {
			return is, err
		}
	}
	if changed["contacts"] != nil {
		if err := askContacts(ctx, q, change.Links, is); err != nil {
			return is, err
		}
	}
	return is, db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenant,
		Action:  "tenant.updated",
		Kind:    "tenant",
		Object:  id.Tenant.Format(tenant),
		Details: changed,
	})
}

// MuteNotices mutes a kind of notices for mail and channels, or ends its mute, in the caller's transaction.
func MuteNotices(ctx context.Context, q *sql.Queries, tenant id.UUID, kind notice.Kind, muted bool, by db.Author) error {
	row, err := q.LockTenant(ctx, tenant)
	if err != nil {
		return err
	}
	to := notice.ReadSettings(row.Settings).Mute(kind, muted)
	digest := !to.NoDigest
	_, err = ChangeTenant(ctx, q, tenant, TenantChange{Muted: &to.Muted, Digest: &digest}, by)
	return err
}

// columns are the tenant's columns after the change, without its settings.
func (change TenantChange) columns(row sql.Tenant) sql.UpdateTenantParams {
	to := sql.UpdateTenantParams{
		TenantID:      row.ID,
		Name:          row.Name,
		StrictTypes:   row.StrictTypes,
		RetentionDays: row.RetentionDays,
		Settings:      row.Settings,
		ExternalID:    row.ExternalID,
	}
	if change.Name != nil {
		to.Name = *change.Name
	}
	if change.ExternalID != nil {
		to.ExternalID = db.TextOrNull(*change.ExternalID)
	}
	if change.StrictTypes != nil {
		to.StrictTypes = *change.StrictTypes
	}
	if change.RetentionDays != nil {
		to.RetentionDays = int32(*change.RetentionDays)
	}
	return to
}

// name records the columns that differ, with old and new values, for the audit log.
func (change TenantChange) name(row sql.Tenant, to sql.UpdateTenantParams, changed map[string]any) {
	if to.Name != row.Name {
		changed["name"] = []string{row.Name, to.Name}
	}
	if deref(to.ExternalID) != deref(row.ExternalID) {
		changed["external_id"] = []*string{row.ExternalID, to.ExternalID}
	}
	if to.StrictTypes != row.StrictTypes {
		changed["strict_types"] = []bool{row.StrictTypes, to.StrictTypes}
	}
	if to.RetentionDays != row.RetentionDays {
		changed["retention_days"] = []int32{row.RetentionDays, to.RetentionDays}
	}
}

// settings returns the tenant's settings after the change, and records those that differ.
func (change TenantChange) settings(to json.RawMessage, changed map[string]any) (_ json.RawMessage, err error) {
	if may := change.Payloads; may != nil && *may != access.ViewersReadPayloads(to) {
		if to, err = access.SetViewersReadPayloads(to, *may); err != nil {
			return to, err
		}
		changed["viewers_read_payloads"] = []bool{!*may, *may}
	}
	if len(change.Health) > 0 {
		if to, err = amend(to, change.Health, changed); err != nil {
			return to, err
		}
	}
	if to, err = change.setRetries(to, changed); err != nil {
		return to, err
	}
	if to, err = change.setOwn(to, changed); err != nil {
		return to, err
	}
	return change.lay(to, changed)
}

// setOwn changes the metadata and the rate of new endpoints within settings, and records old and new values.
func (change TenantChange) setOwn(raw []byte, changed map[string]any) (_ []byte, err error) {
	if to := change.Metadata; to != nil {
		if was := account.Metadata(raw); !maps.Equal(was, *to) {
			changed["metadata"] = []map[string]string{was, *to}
			if raw, err = account.SetMetadata(raw, *to); err != nil {
				return nil, err
			}
		}
	}
	if to := change.Rate; to != nil {
		if was := endpoint.OwnRate(raw); (was == nil) != (*to == nil) || was != nil && *was != **to {
			changed["rate_limit"] = []*int{was, *to}
			return endpoint.SetDefaultRate(raw, *to)
		}
	}
	return raw, nil
}

// lay changes the settings of notices and limits, and records old and new values.
func (change TenantChange) lay(raw []byte, changed map[string]any) ([]byte, error) {
	was := notice.ReadSettings(raw)
	to := was
	if change.Contacts != nil && !slices.Equal(*change.Contacts, was.Contacts) {
		to.Contacts = *change.Contacts
		changed["contacts"] = [][]string{was.Contacts, to.Contacts}
	}
	if change.Digest != nil && *change.Digest == was.NoDigest {
		to.NoDigest = !*change.Digest
		changed["digest"] = []bool{!was.NoDigest, *change.Digest}
	}
	if change.Muted != nil && !slices.Equal(*change.Muted, was.Muted) {
		to.Muted = *change.Muted
		changed["muted_notices"] = [][]notice.Kind{was.Muted, to.Muted}
	}
	if changed["contacts"] != nil || changed["digest"] != nil || changed["muted_notices"] != nil {
		var err error
		if raw, err = to.Write(raw); err != nil {
			return nil, err
		}
	}
	if len(change.Limits) == 0 {
		return raw, nil
	}
	out, limits, err := settings.Amend(raw, settings.OfTenant(), change.Limits)
	maps.Copy(changed, pairs(limits))
	return out, err
}

// setRetries changes the default schedule within settings, and records old and new values.
func (change TenantChange) setRetries(raw []byte, changed map[string]any) ([]byte, error) {
	if change.Retries == nil {
		return raw, nil
	}
	to, err := endpoint.SetDefaultRetries(raw, *change.Retries)
	if err != nil {
		return nil, err
	}
	was, is := endpoint.ReadDefaults(0, nil, raw).Settings, endpoint.ReadDefaults(0, nil, to).Settings
	if !was.SameRetries(is) || *change.Retries != nil && !bytes.Equal(raw, to) {
		changed["retry_policy"] = []retry.Schedule{was.Schedule(), is.Schedule()}
	}
	return to, nil
}

// amend changes the health policy within settings, and records old and new values.
func amend(settings []byte, parts, changed map[string]any) ([]byte, error) {
	to, err := health.Amend(settings, "health_policy", parts)
	if err != nil {
		return nil, err
	}
	if was, is := ownPolicy(settings), ownPolicy(to); !bytes.Equal(was, is) {
		changed["health_policy"] = []json.RawMessage{was, is}
	}
	return to, nil
}

// ownPolicy is the part of settings that is a health policy, in a canonical form.
func ownPolicy(settings []byte) json.RawMessage {
	var s struct {
		Health map[string]any `json:"health"`
	}
	_ = json.Unmarshal(settings, &s) // unreadable settings have no policy
	if s.Health == nil {
		s.Health = map[string]any{}
	}
	out, err := json.Marshal(s.Health)
	if err != nil {
		panic(err) // it was read a moment ago
	}
	return out
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
