package endpoints

import (
	"cmp"
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/show"
)

// Hosts reads the hosts of all tenants' endpoints, the worst first: those with a part in their names, or with failing
// endpoints alone.
func Hosts(ctx context.Context, q *sql.Queries, part string, failing bool, limit int) ([]incidents.Host, error) {
	rows, err := q.ConsoleHosts(ctx, sql.ConsoleHostsParams{
		SilentSeconds: incidents.Silent.Seconds(),
		Part:          part,
		Failing:       failing,
		Limit:         int32(limit),
	})
	hosts := make([]incidents.Host, len(rows))
	for i, r := range rows {
		hosts[i] = incidents.Host{
			Name:         r.Host,
			Endpoints:    r.Endpoints,
			Tenants:      r.Tenants,
			Active:       r.Active,
			Disabled:     r.Disabled,
			Paused:       r.Paused,
			BreakersOpen: r.BreakersOpen,
			Failing:      r.Failing,
			Unverified:   r.Unverified,
			LastFailure:  db.NotEpoch(r.LastFailureAt),
		}
		if r.LastStatus != 0 || r.LastFailure != 0 {
			hosts[i].Response = delivery.AnswerText(int(r.LastStatus), delivery.Failure(r.LastFailure))
		}
	}
	return hosts, err
}

// ListPlatform reads the failing endpoints of all tenants, or all of one tenant or at one host, the worst first.
func ListPlatform(ctx context.Context, q *sql.Queries, tenant *id.UUID, host string, limit int) ([]show.PlatformEndpoint, error) {
	rows, err := q.ConsoleEndpoints(ctx, sql.ConsoleEndpointsParams{Tenant: tenant, Host: host, Limit: int32(limit)})
	if err != nil {
		return nil, err
	}
	ids := make([]id.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	states, err := Conditions(ctx, q, nil, ids)
	found := make([]show.PlatformEndpoint, len(rows))
	for i, r := range rows {
		lane := states[r.ID]
		found[i] = show.PlatformEndpoint{
			ID:          r.ID,
			TenantID:    r.TenantID,
			Tenant:      r.TenantName,
			URL:         egress.Mask(r.URL),
			Name:        cmp.Or(r.Description, egress.Mask(r.URL)),
			Condition:   lane.Condition,
			Failures:    lane.Failures,
			LastStatus:  int(r.LastStatus),
			LastFailure: delivery.Failure(r.LastFailure),
			FailedAt:    lane.Record.Failed,
		}
	}
	return found, err
}

// Lanes reads the lanes with the most deliveries. Of one that something keeps from being sent to, none is ready.
func Lanes(ctx context.Context, q *sql.Queries, limit int) ([]show.Lane, error) {
	rows, err := q.ConsoleLanes(ctx, int32(limit))
	if err != nil {
		return nil, err
	}
	ids := make([]id.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.EndpointID
	}
	states, err := Conditions(ctx, q, nil, ids)
	lanes := make([]show.Lane, len(rows))
	for i, r := range rows {
		lanes[i] = show.Lane{
			TenantID:   r.TenantID,
			Tenant:     r.TenantName,
			EndpointID: r.EndpointID,
			URL:        egress.Mask(r.URL),
			Name:       cmp.Or(r.Description, egress.Mask(r.URL)),
			Condition:  states[r.EndpointID].Condition,
			Waiting:    r.Waiting,
			Oldest:     r.Oldest,
			Owner:      r.Owner,
			LeasedAt:   r.LeasedAt,
		}
		if l := states[r.EndpointID]; l.Ready(l.At) {
			lanes[i].Ready = r.Ready
		}
	}
	return lanes, err
}
