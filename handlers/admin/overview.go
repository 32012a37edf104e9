package admin

import (
	"net/http"
	"net/url"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
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
	var found endpoints.Overview
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		found, err = endpoints.ReadOverview(c.Ctx(), q, pageRows, glance)
		return err
	})
	if err != nil {
		return err
	}
	facts, load := found.Facts(a.Now(), glance), found.Load
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
	for _, o := range load.Late {
		v.Oldest = append(v.Oldest, console.OldestLine{
			Tenant:   o.Name,
			Path:     tenantPath(o.ID),
			ReadyFor: o.For(a.Now()),
			Lanes:    o.Lanes,
			URL:      o.URL,
			Name:     o.Endpoint,
			Endpoint: id.Endpoint.Format(o.EndpointID),
			Owner:    o.Owner,
		})
	}
	for _, h := range found.Hosts {
		v.Hosts = append(v.Hosts, hostLine(h))
	}
	for _, l := range load.Loads(glance) {
		v.Loads = append(v.Loads, console.LoadLine{TenantLoad: l, Path: tenantPath(l.TenantID)})
	}
	for _, f := range incidents.Find(facts, components.Many) {
		v.Findings = append(v.Findings, console.FindingLine{Finding: f, Links: findingLinks(f, v)})
	}
	return c.Render(http.StatusOK, console.Overview(v))
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
	case incidents.MoveStopped:
		return []components.LinkProps{link("Homes", Root+"/homes")}
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
