package admin

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/domain/delivery"
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
	p, err := c.Page(handlers.List{
		Name:    "queue",
		Rows:    pageRows,
		Whole:   true,
		Choices: []handlers.Choice{{Name: "all", Words: []string{"", "lanes", "shares"}}},
	})
	if err != nil {
		return err
	}
	v := console.QueueView{Shell: c.Shell("Queue and workers", "queue"), All: p.Chosen["all"]}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		if v.Workers, err = queue.Workers(c.Ctx(), q); err != nil {
			return err
		}
		for _, w := range v.Workers {
			if !w.Dead && !w.Silent {
				v.Slots += delivery.WorkerSlots
			}
		}
		if v.Ages, err = queue.Ages(c.Ctx(), q); err != nil {
			return err
		}
		if v.Shares, err = queue.Shares(c.Ctx(), q, pageRows); err != nil {
			return err
		}
		lanes, err := endpoints.Lanes(c.Ctx(), q, pageRows)
		for _, l := range lanes {
			form := pauseOfScope(pause.Endpoint, id.Endpoint.Format(l.EndpointID))
			v.Lanes = append(v.Lanes, console.LaneLine{Lane: l, Pause: form})
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, console.Queue(v))
}
