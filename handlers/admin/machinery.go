package admin

import (
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
	"posthorn/handlers"
	"posthorn/views/console"
)

const hostsMost = 200

func (a *admin) listHosts(c *handlers.Call) error {
	v := console.HostsView{Part: strings.TrimSpace(c.Query("q")), State: word(c, "state", "failing")}
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		rows, err := q.ConsoleHosts(c.Ctx(), sql.ConsoleHostsParams{
			SilentSeconds: incidents.Silent.Seconds(),
			Part:          v.Part, Failing: v.State != "", Most: hostsMost + 1,
		})
		v.Most = len(rows) > hostsMost
		for _, r := range rows[:min(len(rows), hostsMost)] {
			v.Hosts = append(v.Hosts, hostLine(r))
		}
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Endpoint health", "health")
	return c.Render(http.StatusOK, console.Hosts(v))
}

func hostLine(r sql.ConsoleHostsRow) console.HostLine {
	line := console.HostLine{Href: endpointsAt(r.Host), Pause: pauseOfScope(pause.Host, r.Host), Host: incidents.Host{
		Name: r.Host, Endpoints: r.Endpoints, Tenants: r.Tenants, Active: r.Active, Disabled: r.Disabled,
		Paused: r.Paused, BreakersOpen: r.BreakersOpen, Failing: r.Failing,
	}}
	if r.LastFailureAt.Unix() > 0 {
		line.LastFailure = r.LastFailureAt
	}
	return line
}

// listSickEndpoints shows the failing endpoints of all tenants, or all endpoints at one host.
func (a *admin) listSickEndpoints(c *handlers.Call) error {
	v := console.SickView{Host: strings.ToLower(strings.TrimSpace(c.Query("host")))}
	var rows []sql.ConsoleEndpointsRow
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		rows, err = q.ConsoleEndpoints(c.Ctx(), sql.ConsoleEndpointsParams{Host: v.Host, Most: hostsMost + 1})
		if err != nil {
			return err
		}
		v.Most = len(rows) > hostsMost
		v.Endpoints, err = endpointLines(c, q, rows[:min(len(rows), hostsMost)])
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Endpoint health", "health")
	return c.Render(http.StatusOK, console.Sick(v))
}

func endpointLines(c *handlers.Call, q *db.Tx, rows []sql.ConsoleEndpointsRow) ([]console.EndpointLine, error) {
	ids := make([]id.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	states, err := endpoints.ConditionsCrossTenant(c.Ctx(), q, ids)
	if err != nil {
		return nil, err
	}
	lines := make([]console.EndpointLine, len(rows))
	for i, r := range rows {
		of, is := id.Endpoint.Format(r.ID), states[r.ID]
		lines[i] = console.EndpointLine{
			ID: of, URL: egress.Mask(r.URL), Tenant: r.TenantName, TenantPath: tenantPath(r.TenantID),
			Condition: is.Condition,
			Failures:  r.Failures, LastStatus: int(r.LastStatus), LastFailure: delivery.Failure(r.LastFailure),
			Pause: pauseOfScope(pause.Endpoint, of),
		}
		if r.LastFailureAt != nil {
			lines[i].FailedAt = *r.LastFailureAt
		}
	}
	return lines, nil
}

func (a *admin) showQueue(c *handlers.Call) error {
	v := console.QueueView{Shell: c.Shell("Queue and workers", "queue")}
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		workers, err := q.ConsoleWorkers(c.Ctx(), incidents.Silent.Seconds())
		if err != nil {
			return err
		}
		for _, w := range workers {
			line := console.WorkerLine{
				ID: id.Worker.Format(w.ID), Name: w.Name, Dead: w.Dead, Silent: w.Silent,
				Started: w.StartedAt, Lanes: w.Lanes,
			}
			if w.BeatAt != nil {
				line.Beat = *w.BeatAt
			}
			v.Workers = append(v.Workers, line)
		}
		ages, err := q.PendingByAge(c.Ctx(), incidents.Silent.Seconds())
		if err != nil {
			return err
		}
		for _, age := range ages {
			v.Ages[age.Bucket].Waiting += age.N
			v.Ages[age.Bucket].Ready += age.Ready
		}
		shares, err := q.ConsoleShares(c.Ctx(), pageRows)
		if err != nil {
			return err
		}
		for _, s := range shares {
			v.Shares = append(v.Shares, console.ShareLine{
				Tenant: s.Name, TenantPath: tenantPath(s.ID), Endpoints: s.Endpoints, Attempts: s.Attempts,
				OfAttempts: s.AllAttempts, Microseconds: s.Us, OfMicroseconds: s.AllUs,
			})
		}
		lanes, err := q.ConsoleLanes(c.Ctx(), pageRows)
		if err != nil {
			return err
		}
		ids := make([]id.UUID, len(lanes))
		for i, l := range lanes {
			ids[i] = l.EndpointID
		}
		states, err := endpoints.ConditionsCrossTenant(c.Ctx(), q, ids)
		for _, l := range lanes {
			is := states[l.EndpointID]
			line := console.LaneLine{
				Tenant: l.TenantName, TenantPath: tenantPath(l.TenantID), Endpoint: id.Endpoint.Format(l.EndpointID),
				URL: egress.Mask(l.URL), Condition: is.Condition, Waiting: l.Waiting, Oldest: l.Oldest, Owner: l.Owner,
			}
			line.Pause = pauseOfScope(pause.Endpoint, line.Endpoint)
			if is.Ready {
				line.Ready = l.Ready // as by age above
			}
			if l.LeasedAt != nil {
				line.Leased = *l.LeasedAt
			}
			v.Lanes = append(v.Lanes, line)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, console.Queue(v))
}
