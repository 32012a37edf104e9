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

// alert emits a notice in its own tenant, if a channel asks for it and no mute keeps it from being sent. The event has
// no idempotency key: a key that a tenant can name could be used before.
func (c channels) alert(ctx context.Context, q *sql.Queries, links Links, p notice.Posted, mute health.Mute) error {
	if p.Kind.Muted(mute, p.At) || !c.want(p) {
		return nil
	}
	data, err := json.Marshal(notice.AlertOf(p, links.tenantPage(p.Tenant)))
	if err != nil {
		return err
	}
	_, err = q.EmitAlert(ctx, sql.EmitAlertParams{
		Tenant:     id.Tenant.Format(p.Tenant),
		Type:       p.Kind.EventType(),
		Data:       string(data),
		OccurredAt: p.At,
	})
	return err
}

// muteOf is the mute of an endpoint's alerts; nil: none, or without an end.
func muteOf(at, until *time.Time) health.Mute {
	return health.Mute{At: db.OrZero(at), Until: db.OrZero(until)}
}
