package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/mail"
)

// OpenProxy is the proxy of a tenant's requests among stored ones, with its password; nil: they go directly.
func OpenProxy(rows []sql.EgressProxy, ring *seal.Ring, tenant id.UUID) (*egress.Proxy, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	all := make([]egress.Proxy, len(rows))
	for i, r := range rows {
		var err error
		if all[i], err = openProxy(r, ring); err != nil {
			return nil, err
		}
	}
	return egress.ProxyOf(tenant, all), nil
}

func openProxy(r sql.EgressProxy, ring *seal.Ring) (egress.Proxy, error) {
	p := proxyOf(r)
	if len(r.Sealed) > 0 {
		text, err := ring.Open(r.Sealed, r.TenantID, r.TenantID)
		if err != nil {
			return p, db.Unopened(err)
		}
		p.Password = string(text)
	}
	return p, nil
}

func proxyOf(r sql.EgressProxy) egress.Proxy {
	return egress.Proxy{
		Owner:        r.TenantID,
		Type:         egress.ProxyType(r.Type),
		Address:      r.Address,
		Username:     r.Username,
		ResolveNames: r.ResolveNames,
		Published:    r.Published,
	}
}

func proxyStatus(r sql.EgressProxy, tenant string) egress.ProxyStatus {
	return egress.ProxyStatus{
		Proxy:       proxyOf(r),
		HasPassword: len(r.Sealed) > 0,
		Tenant:      tenant,
		FailedAt:    db.OrZero(r.FailedAt),
		Failure:     r.Failure,
		ChangedAt:   r.ChangedAt,
	}
}

// readProxy is the proxy of a tenant's requests; nil: they go directly.
func readProxy(ctx context.Context, d *db.DB, ring *seal.Ring, tenant id.UUID) (p *egress.Proxy, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		rows, err := q.EgressProxies(ctx, tenant)
		if err == nil {
			p, err = OpenProxy(rows, ring, tenant)
		}
		return err
	})
	return p, err
}

// Proxies are the proxies of the platform and of tenants, without their passwords. The platform's is first.
func Proxies(ctx context.Context, q *sql.Queries) ([]egress.ProxyStatus, error) {
	rows, err := q.ListEgressProxies(ctx)
	list := make([]egress.ProxyStatus, len(rows))
	for i, r := range rows {
		list[i] = proxyStatus(r.EgressProxy, r.TenantName)
	}
	return list, err
}

// ErrNoProxy says that a tenant, or the platform, has no proxy of its own.
var ErrNoProxy = fault.New(fault.NotFound, "egress_proxy_not_found", "There is no egress proxy here.")

// SetProxy stores the proxy of its owner, a tenant or Platform. Lanes are served by it within seconds.
func (ed Editor) SetProxy(ctx context.Context, q *sql.Queries, policy egress.Policy, p egress.Proxy) (egress.ProxyStatus, error) {
	was, tenant, err := ed.lockProxy(ctx, q, p.Owner)
	if err != nil {
		return egress.ProxyStatus{}, err
	}
	if p, err = p.Check(policy, was); err != nil {
		return egress.ProxyStatus{}, err
	}
	set := sql.SetEgressProxyParams{
		TenantID:     p.Owner,
		Type:         string(p.Type),
		Address:      p.Address,
		Username:     p.Username,
		ResolveNames: p.ResolveNames,
		Published:    p.Published,
	}
	if set.Published == nil {
		set.Published = []string{}
	}
	if p.Password != "" {
		set.Sealed = ed.Keys.Seal([]byte(p.Password), p.Owner, p.Owner)
	}
	row, err := q.SetEgressProxy(ctx, set)
	if err != nil {
		return egress.ProxyStatus{}, err
	}
	details := map[string]any{"type": p.Type, "address": p.Address, "username": p.Username, "resolve_names": p.ResolveNames}
	return proxyStatus(row, tenant), ed.changedProxy(ctx, q, p.Owner, "egress_proxy.set", details)
}

// RemoveProxy removes the proxy of a tenant or of Platform.
func (ed Editor) RemoveProxy(ctx context.Context, q *sql.Queries, owner id.UUID) error {
	if _, err := lockOwner(ctx, q, owner); err != nil {
		return err
	}
	n, err := q.RemoveEgressProxy(ctx, owner)
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrNoProxy
	}
	return ed.changedProxy(ctx, q, owner, "egress_proxy.removed", nil)
}

// lockOwner makes changes of an owner's proxy wait for each other, and returns the tenant's name.
func lockOwner(ctx context.Context, q *sql.Queries, owner id.UUID) (tenant string, err error) {
	if owner == Platform {
		_, err = q.LockPlatform(ctx)
		return "", err
	}
	t, err := q.LockTenant(ctx, owner)
	return t.Name, err
}

// lockProxy is lockOwner. It also returns the stored proxy, nil for none.
func (ed Editor) lockProxy(ctx context.Context, q *sql.Queries, owner id.UUID) (was *egress.Proxy, tenant string, err error) {
	if tenant, err = lockOwner(ctx, q, owner); err != nil {
		return nil, "", err
	}
	rows, err := q.EgressProxies(ctx, owner)
	for _, r := range rows {
		if r.TenantID != owner || err != nil {
			continue
		}
		var p egress.Proxy
		if p, err = openProxy(r, ed.Keys); err == nil {
			was = &p
		}
	}
	return was, tenant, err
}

// changedProxy lets the owners of lanes read them again, and audits. A tenant sees what concerns it.
func (ed Editor) changedProxy(ctx context.Context, q *sql.Queries, owner id.UUID, action string, details map[string]any) error {
	entry := db.Audited{Action: action, Kind: "egress_proxy", Details: details}
	if owner == Platform {
		if err := q.BumpAllLanes(ctx); err != nil {
			return err
		}
		return db.Audit(ctx, q, ed.By, entry)
	}
	entry.Tenant, entry.Object = &owner, id.Tenant.Format(owner)
	if _, err := q.BumpRouting(ctx, owner); err != nil {
		return err
	}
	if err := q.BumpLanesOf(ctx, owner); err != nil {
		return err
	}
	return db.Audit(ctx, q, ed.By, entry)
}

// NoteProxyFailure records that a proxy failed.
func NoteProxyFailure(ctx context.Context, d *db.DB, owner id.UUID, failure string) error {
	return d.Worker(ctx, func(q *sql.Queries) error { return q.NoteProxyFailure(ctx, failure, owner) })
}

// PublishedAddresses are the addresses from which proxies send.
func PublishedAddresses(ctx context.Context, d *db.DB) (all []string, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		all, err = q.PublishedAddresses(ctx)
		return err
	})
	return all, err
}

// AlertProxies alerts operators to proxies that fail, once a UTC day each.
func AlertProxies(ctx context.Context, d *db.DB, links accounts.Links, now time.Time) error {
	return d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.FailingProxies(ctx, egress.ProxyFailing.Seconds())
		if err != nil {
			return err
		}
		for _, r := range rows {
			p := proxyStatus(r.EgressProxy, r.TenantName)
			key := "egress_proxy:" + id.Tenant.Format(p.Owner) + ":" + now.UTC().Format(time.DateOnly)
			if err := accounts.AlertOperators(ctx, q, incidents.ProxyFails, key, mail.OperatorAlertData{
				What: "The egress proxy " + p.Address + " fails, and deliveries through it wait",
				Facts: []mail.Fact{
					{Name: "Used by", Value: p.Name()},
					{Name: "Reason", Value: p.Failure},
				},
				Link:     links.ConsoleBase() + "/console/egress",
				LinkText: "Egress proxies",
				At:       p.FailedAt,
			}); err != nil {
				return err
			}
		}
		return nil
	})
}
