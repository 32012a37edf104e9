package accounts

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// Operational is the data of an operational event.
type Operational struct {
	Tenant   string          `json:"tenant_id"`
	Notice   string          `json:"notice_id,omitempty"`
	Endpoint string          `json:"endpoint_id,omitempty"`
	Details  json.RawMessage `json:"details"` // of the notice's kind
}

// PlatformTenant is the platform's own tenant, which gets operational events. The zero id means that there is none.
func PlatformTenant(ctx context.Context, q *sql.Queries) (id.UUID, error) {
	settings, err := q.PlatformSettings(ctx)
	if err != nil {
		return id.UUID{}, err
	}
	return platformTenant(settings), nil
}

func platformTenant(settings []byte) id.UUID {
	var s struct {
		Tenant string `json:"tenant"`
	}
	_ = json.Unmarshal(settings, &s) // written by SetPlatformTenant alone
	tenantID, _ := id.Tenant.Parse(s.Tenant)
	return tenantID
}

// EnsurePlatformTenant creates the platform's own tenant unless there is one. text is the key of a new tenant, which is
// shown only this time; it is empty if the tenant existed.
func EnsurePlatformTenant(ctx context.Context, d *db.DB, by db.Author) (tenant id.UUID, text string, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		settings, err := q.LockForPlatformTenant(ctx)
		if err != nil {
			return err
		}
		if tenant = platformTenant(settings); !tenant.IsZero() {
			return nil
		}
		tenant = db.NewID()
		if err := q.InsertTenant(ctx, sql.InsertTenantParams{
			ID:            tenant,
			Name:          "Posthorn",
			RetentionDays: 90,
			CreatedAt:     tenant.Time(),
		}); err != nil {
			return err
		}
		if _, text, err = makeKey(ctx, q, NewKey{Tenant: &tenant, Name: "first key", Scopes: access.TenantScopes()}); err != nil {
			return err
		}
		if err := q.SetPlatformTenant(ctx, id.Tenant.Format(tenant)); err != nil {
			return err
		}
		return db.Audit(ctx, q, by, db.Audited{Tenant: &tenant, Action: "platform.tenant_created", Kind: "tenant", Object: id.Tenant.Format(tenant)})
	})
	return tenant, text, err
}

// RelayNotices emits at most `most` new notices as events of the platform's tenant, and of their own tenant where an
// endpoint asks for them, in the transaction that marks them, so each is emitted once. It also marks notices that
// become no event. It returns how many it handled.
func RelayNotices(ctx context.Context, d *db.DB, links Links, most int32) (n int, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		to, err := PlatformTenant(ctx, q)
		if err != nil {
			return err
		}
		rows, err := q.TakeUnrelayed(ctx, most)
		if n = len(rows); err != nil || n == 0 {
			return err
		}
		active, err := mayEmit(ctx, q, to)
		if err != nil {
			return err
		}
		var tenants, ids []id.UUID
		for _, r := range rows {
			tenants = append(tenants, r.NoticeRow.TenantID)
			ids = append(ids, r.NoticeRow.ID)
		}
		channels, err := readChannels(ctx, q, tenants)
		if err != nil {
			return err
		}
		for _, row := range rows {
			r := row.NoticeRow
			if err := channels.notify(ctx, q, links, row); err != nil {
				return err
			}
			// The platform's own endpoints get no events about themselves: an endpoint that fails would get an endless
			// series of events about its failures.
			if !active || r.TenantID == to || !r.Kind.OfPlatform() {
				continue
			}
			o := Operational{Tenant: id.Tenant.Format(r.TenantID), Notice: id.Notice.Format(r.ID), Details: r.Details}
			if r.EndpointID != nil {
				o.Endpoint = id.Endpoint.Format(*r.EndpointID)
			}
			if err := emitOperational(ctx, q, to, operationalEvent{
				string(r.Kind), o.Notice, r.CreatedAt,
				o,
			}); err != nil {
				return err
			}
		}
		return q.MarkRelayed(ctx, tenants, ids)
	})
	return n, err
}

// mayEmit reports whether the platform has a tenant that accepts events.
func mayEmit(ctx context.Context, q *sql.Queries, to id.UUID) (bool, error) {
	if to.IsZero() {
		return false, nil
	}
	t, err := q.GetTenant(ctx, to)
	if db.IsNoRows(err) {
		return false, nil
	}
	return err == nil && t.State == account.TenantActive, err
}

// operationalEvent is an event of the platform's tenant before it is emitted.
type operationalEvent struct {
	kind string // the event's type
	key  string // the idempotency key, without its prefix
	at   time.Time
	data Operational
}

func emitOperational(ctx context.Context, q *sql.Queries, to id.UUID, e operationalEvent) error {
	data, err := json.Marshal(e.data)
	if err != nil {
		return err
	}
	_, err = q.EmitOperational(ctx, sql.EmitOperationalParams{
		Tenant:         id.Tenant.Format(to),
		Type:           e.kind,
		Data:           string(data),
		IdempotencyKey: "operational:" + e.key,
		OccurredAt:     e.at,
	})
	return err
}

// AnnounceDeadLetters emits at most `most` dead letters as delivery.failed, as RelayNotices does with notices. What
// nobody subscribes to is only marked.
func AnnounceDeadLetters(ctx context.Context, d *db.DB, links Links, most int32) (n int, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		to, err := PlatformTenant(ctx, q)
		if err != nil {
			return err
		}
		wanted, err := wantsFailures(ctx, q, to)
		if err != nil {
			return err
		}
		if !wanted {
			if some, err := q.SomeAlertChannel(ctx); err != nil || !some {
				if err == nil {
					var skipped int64
					skipped, err = q.SkipUnannounced(ctx, most)
					n = int(skipped)
				}
				return err
			}
		}
		rows, err := q.TakeUnannounced(ctx, most)
		if n = len(rows); err != nil || n == 0 {
			return err
		}
		var tenants, deliveries []id.UUID
		for _, r := range rows {
			tenants = append(tenants, r.TenantID)
			deliveries = append(deliveries, r.DeliveryID)
		}
		channels, err := readChannels(ctx, q, tenants)
		if err != nil {
			return err
		}
		for _, r := range rows {
			f, err := failureOf(r)
			if err != nil {
				return err
			}
			mutes := notice.ReadSettings(r.TenantSettings)
			silenced := mutes.Silences(notice.DeliveryFailed, muteOf(r.MutedAt, r.MutedUntil), r.FailedAt)
			if _, err := channels.alert(ctx, q, links, f.posted(), silenced); err != nil {
				return err
			}
			if !wanted || r.TenantID == to {
				continue
			}
			if err := f.toPlatform(ctx, q, to); err != nil {
				return err
			}
		}
		return q.MarkAnnounced(ctx, tenants, deliveries)
	})
	return n, err
}

// failure is a dead letter on its way to those who subscribe.
type failure struct {
	row     sql.TakeUnannouncedRow
	details notice.FailedDetails
	text    json.RawMessage
}

func failureOf(r sql.TakeUnannouncedRow) (failure, error) {
	f := failure{
		row: r,
		details: notice.FailedDetails{
			Endpoint:    id.Endpoint.Format(r.EndpointID),
			URL:         egress.Mask(r.URL),
			Delivery:    id.Delivery.Format(r.DeliveryID),
			EventType:   r.EventType,
			Reason:      r.Reason.String(),
			Attempts:    int(r.Attempts),
			LastStatus:  int(r.LastStatus),
			LastFailure: delivery.Failure(r.LastFailure).String(),
			FailedAt:    r.FailedAt,
		},
	}
	if !r.EventID.IsZero() {
		f.details.Event = id.Event.Format(r.EventID)
	}
	text, err := json.Marshal(f.details)
	f.text = text
	return f, err
}

// toPlatform emits it in the platform's tenant.
func (f failure) toPlatform(ctx context.Context, q *sql.Queries, to id.UUID) error {
	// A delivery that fails again after a replay fails at another time.
	key := f.details.Delivery + ":" + f.row.FailedAt.UTC().Format("20060102T150405.000000")
	return emitOperational(ctx, q, to, operationalEvent{string(notice.DeliveryFailed), key, f.row.FailedAt, Operational{
		Tenant:   id.Tenant.Format(f.row.TenantID),
		Endpoint: f.details.Endpoint,
		Details:  f.text,
	}})
}

// posted is it as a notice of its own tenant.
func (f failure) posted() notice.Posted {
	return notice.Posted{
		Kind:     notice.DeliveryFailed,
		ID:       f.details.Delivery,
		Tenant:   f.row.TenantID,
		Endpoint: &f.row.EndpointID,
		At:       f.row.FailedAt,
		Details:  f.text,
	}
}

// wantsFailures reports whether an endpoint of the platform's tenant subscribes to delivery.failed.
func wantsFailures(ctx context.Context, q *sql.Queries, to id.UUID) (bool, error) {
	active, err := mayEmit(ctx, q, to)
	if err != nil || !active {
		return false, err
	}
	subscriptions, err := q.PlatformSubscriptions(ctx, to)
	return slices.ContainsFunc(subscriptions, func(patterns []string) bool {
		return filter.MatchType(patterns, string(notice.DeliveryFailed))
	}), err
}
