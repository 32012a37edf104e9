package admin

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

const (
	// waitingMost is up to how many waiting deliveries are counted (queries/console.sql).
	waitingMost = 200_000
	// glance is how many lines of a kind the overview shows.
	glance = 5
)

func (a *admin) overview(c *handlers.Call) error {
	var load show.PlatformLoad
	var hosts []incidents.Host
	var proxies []egress.ProxyStatus
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		if load, err = queue.PlatformLoad(c.Ctx(), q, pageRows); err != nil {
			return err
		}
		if hosts, err = endpoints.Hosts(c.Ctx(), q, "", true, glance); err != nil {
			return err
		}
		proxies, err = endpoints.Proxies(c.Ctx(), q)
		return err
	})
	if err != nil {
		return err
	}
	t := load.Totals
	v := console.OverviewView{
		Shell:         c.Shell("Overview", "overview"),
		Tenants:       t.Tenants,
		Suspended:     t.Suspended,
		Endpoints:     t.Endpoints,
		DisabledToday: t.DisabledToday,
		BreakersOpen:  t.BreakersOpen,
		Workers:       t.Workers,
		Waiting:       t.Waiting,
		WaitingMost:   t.Waiting >= waitingMost,
		DeadLetters:   t.DeadLetters,
		MailsFailed:   t.MailsFailed,
		Rejected:      t.Rejected,
	}
	facts := incidents.Facts{
		Workers:       t.Workers,
		WorkersLost:   t.WorkersLost,
		Discrepancies: t.BooksDiffer,
		Rejected:      t.Rejected,
		Mails:         t.MailsFailed,
	}
	for _, p := range proxies {
		if p.Failing(a.Now()) {
			facts.Proxies = append(facts.Proxies, p.Address)
		}
	}
	for _, o := range load.Late {
		line := console.OldestLine{
			Tenant:   o.Name,
			Path:     tenantPath(o.ID),
			ReadyFor: max(a.Now().Sub(o.ReadyAt), 0).Round(time.Millisecond),
			Lanes:    o.Lanes,
			URL:      o.URL,
			Name:     o.Endpoint,
			Endpoint: id.Endpoint.Format(o.EndpointID),
			Owner:    o.Owner,
		}
		v.Oldest = append(v.Oldest, line)
		facts.Late = append(facts.Late, incidents.Waiting{Tenant: o.Name, For: line.ReadyFor})
	}
	for _, h := range hosts {
		v.Hosts = append(v.Hosts, hostLine(h))
		facts.Hosts = append(facts.Hosts, h)
	}
	v.Loads = loads(load)
	for _, l := range v.Loads {
		facts.Loads = append(facts.Loads, l.Load)
	}
	for _, f := range incidents.Find(facts, components.Many) {
		v.Findings = append(v.Findings, console.FindingLine{Finding: f, Links: findingLinks(f, v)})
	}
	return c.Render(http.StatusOK, console.Overview(v))
}

// loads are the tenants with the largest shares of the slots or of the ready deliveries, largest first.
func loads(of show.PlatformLoad) []console.LoadLine {
	byTenant := map[id.UUID]*console.LoadLine{}
	line := func(tenantID id.UUID, name string) *console.LoadLine {
		if byTenant[tenantID] == nil {
			byTenant[tenantID] = &console.LoadLine{
				Load: incidents.Load{Tenant: name},
				Path: tenantPath(tenantID),
				ID:   id.Tenant.Format(tenantID),
			}
		}
		return byTenant[tenantID]
	}
	for _, b := range of.Backlogs {
		l := line(b.ID, b.Name)
		l.Waiting, l.Ready, l.Queue = b.Waiting, b.Ready, float64(b.Ready)/float64(max(b.AllReady, 1))
	}
	for _, r := range of.Shares {
		l := line(r.ID, r.Name)
		l.InFlight, l.Capacity = r.InFlight(), max(of.Totals.Workers, 1)*delivery.WorkerSlots
		l.Slots = l.InFlight / float64(l.Capacity)
	}
	var all []console.LoadLine
	for _, l := range byTenant {
		l.Alone = len(byTenant) == 1
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b console.LoadLine) int { return a.Compare(b) })
	return all[:min(len(all), glance)]
}

// findingLinks link to the object of a finding and to the form that pauses it.
func findingLinks(f incidents.Finding, v console.OverviewView) []components.LinkProps {
	link := func(label, href string) components.LinkProps {
		return components.LinkProps{Label: label, Href: href, Small: true}
	}
	queue := link("Queue and workers", Root+"/queue")
	switch f.Kind {
	case incidents.Discrepancy:
		return []components.LinkProps{link("Books", Root+"/books")}
	case incidents.ProxyFails:
		return []components.LinkProps{link("Egress proxies", egressPath)}
	case incidents.LateTenant:
		return []components.LinkProps{link("Open tenant", v.Oldest[f.At].Path), queue}
	case incidents.DownHost:
		return []components.LinkProps{
			link("View endpoints", endpointsAt(v.Hosts[f.At].Name)),
			link("Pause host", pauseOfScope(pause.Host, v.Hosts[f.At].Name)),
		}
	case incidents.Noisy:
		l := v.Loads[f.At]
		return []components.LinkProps{link("Open tenant", l.Path), link("Pause tenant", pauseOfScope(pause.Tenant, l.ID)), queue}
	case incidents.Rejected:
		return []components.LinkProps{link("Outbox", Root+"/outbox")}
	case incidents.Mails:
		return []components.LinkProps{link("Mail", Root+"/mail?state=failed")}
	default: // workers
		return []components.LinkProps{queue}
	}
}

// endpointsAt is the page of the endpoints at a host.
func endpointsAt(host string) string {
	return Root + "/health/endpoints?" + url.Values{"host": {host}}.Encode()
}

// pauseOfScope is the form for a pause, filled in.
func pauseOfScope(scope pause.Scope, of string) string {
	return pausesPath + "?" + url.Values{"scope": {string(scope)}, "of": {of}}.Encode() + "#pause"
}

func tenantPath(tenantID id.UUID) string { return Root + "/tenants/" + id.Tenant.Format(tenantID) }
