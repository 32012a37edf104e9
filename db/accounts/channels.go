package accounts

import (
	"context"
	"encoding/json"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/filter"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// channels are the endpoints of some tenants that ask for notices of their own tenant, and their patterns.
type channels map[id.UUID]map[id.UUID][]string

// readChannels reads the channels of tenants that can emit. A tenant can be named several times.
func readChannels(ctx context.Context, q *sql.Queries, tenants []id.UUID) (channels, error) {
	rows, err := q.AlertChannels(ctx, tenants)
	found := channels{}
	for _, r := range rows {
		if found[r.TenantID] == nil {
			found[r.TenantID] = map[id.UUID][]string{}
		}
		found[r.TenantID][r.ID] = r.EventTypes
	}
	return found, err
}

// want reports whether a channel of the tenant asks for a notice. Notices about a channel are for mail alone: two
// channels that fail would send each other one after the other, without an end.
func (c channels) want(p notice.Posted) bool {
	of := c[p.Tenant]
	if p.Endpoint != nil {
		if _, isChannel := of[*p.Endpoint]; isChannel {
			return false
		}
	}
	for _, patterns := range of {
		if filter.MatchType(patterns, p.Kind.EventType()) {
			return true
		}
	}
	return false
}

// notify sends a notice to the channels of its tenant that ask for it, and records that it did.
func (c channels) notify(ctx context.Context, q *sql.Queries, links Links, row sql.TakeUnrelayedRow) error {
	r := row.NoticeRow
	mutes := notice.ReadSettings(row.TenantSettings)
	sent, err := c.alert(ctx, q, links, notice.Posted{
		Kind:     r.Kind,
		ID:       id.Notice.Format(r.ID),
		Tenant:   r.TenantID,
		Endpoint: r.EndpointID,
		At:       r.CreatedAt,
		Details:  r.Details,
	}, mutes.Silences(r.Kind, muteOf(row.MutedAt, row.MutedUntil), r.CreatedAt))
	if err != nil || !sent {
		return err
	}
	return q.MarkAlerted(ctx, r.TenantID, r.ID)
}

// alert emits a notice in its own tenant, if a channel asks for it and it is not silenced, and reports whether it did.
// The end of an alert that is open at the channels is not silenced: their incident would stay open. The event has no
// idempotency key: a key that a tenant can name could be used before.
func (c channels) alert(ctx context.Context, q *sql.Queries, links Links, p notice.Posted, silenced bool) (bool, error) {
	if !c.want(p) {
		return false, nil
	}
	if silenced {
		if open, err := alertOpen(ctx, q, p); err != nil || !open {
			return false, err
		}
	}
	alert := notice.AlertOf(p, links.tenantPage(p.Tenant))
	data, err := json.Marshal(alert)
	if err != nil {
		return false, err
	}
	_, err = q.EmitAlert(ctx, sql.EmitAlertParams{
		Tenant:     id.Tenant.Format(p.Tenant),
		Type:       p.Kind.EventType(),
		Data:       string(data),
		Key:        alert.DedupKey,
		OccurredAt: p.At,
	})
	return err == nil, err
}

// alertOpen reports whether a notice ends an alert that channels were sent.
func alertOpen(ctx context.Context, q *sql.Queries, p notice.Posted) (bool, error) {
	if p.Kind.Status() != notice.Resolved {
		return false, nil
	}
	var names []string
	for _, k := range p.Kind.Together() {
		names = append(names, string(k))
	}
	last, err := q.LastAlert(ctx, sql.LastAlertParams{TenantID: p.Tenant, EndpointID: p.Endpoint, Kinds: names})
	if db.IsNoRows(err) {
		return false, nil
	}
	return err == nil && last.Status() == notice.Triggered, err
}

// muteOf is the mute of an endpoint's alerts; nil: none, or without an end.
func muteOf(at, until *time.Time) health.Mute {
	return health.Mute{At: db.OrZero(at), Until: db.OrZero(until)}
}
