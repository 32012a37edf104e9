package admin

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/console"
)

const hostsMost = 200

func (a *admin) listHosts(c *handlers.Call) error {
	p, err := c.Page(handlers.List{
		Name:    "hosts",
		Rows:    hostsMost,
		Whole:   true,
		Filters: []handlers.Filter{handlers.BySearch},
		Choices: []handlers.Choice{{Name: "state", Words: []string{"", "failing"}}},
	})
	v := console.HostsView{Part: p.Given.Get("q"), State: p.Given.Get("state")}
	if err != nil {
		return err
	}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		hosts, err := endpoints.Hosts(c.Ctx(), q, p.Search, v.State != "", hostsMost+1)
		v.Most = len(hosts) > hostsMost
		for _, h := range hosts[:min(len(hosts), hostsMost)] {
			v.Hosts = append(v.Hosts, hostLine(h))
		}
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Endpoint health", "health")
	return c.Render(http.StatusOK, console.Hosts(v))
}

func hostLine(h incidents.Host) console.HostLine {
	return console.HostLine{Host: h, Href: endpointsAt(h.Name), Pause: pauseOfScope(pause.Host, h.Name)}
}

// listSickEndpoints shows the failing endpoints of all tenants, or all endpoints at one host.
func (a *admin) listSickEndpoints(c *handlers.Call) error {
	p, err := c.Page(handlers.List{
		Name:    "endpoints",
		Rows:    hostsMost,
		Whole:   true,
		Filters: []handlers.Filter{handlers.ByHost},
	})
	if err != nil {
		return err
	}
	v := console.SickView{Host: p.Host}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		found, err := endpoints.ListPlatform(c.Ctx(), q, nil, p.Host, hostsMost+1)
		v.Most = len(found) > hostsMost
		v.Endpoints = endpointLines(found[:min(len(found), hostsMost)])
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Endpoint health", "health")
	return c.Render(http.StatusOK, console.Sick(v))
}

func endpointLines(found []show.PlatformEndpoint) []console.EndpointLine {
	lines := make([]console.EndpointLine, len(found))
	for i, e := range found {
		lines[i] = console.EndpointLine{
			PlatformEndpoint: e,
			Pause:            pauseOfScope(pause.Endpoint, id.Endpoint.Format(e.ID)),
		}
	}
	return lines
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
