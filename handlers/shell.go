package handlers

import (
	"context"
	"strings"
	"sync"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/domain/settings"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// Shell holds the parts around a page's content: the tenant, the signed-in person, the navigation's entry, and the
// result of the last action, which is shown once.
func (c *Call) Shell(title, active string) layout.Shell {
	s := c.plainShell(title, active)
	if texts := c.flashes(); len(texts) > 0 {
		s.Flash = layout.Flash{Tone: components.Good, Text: strings.Join(texts, " ")}
	}
	if !c.Actor.Tenant.IsZero() {
		s.Unread = c.unread()
		s.Warnings = append(c.halts(), s.Warnings...)
		if job := c.watched(); !job.IsZero() {
			page := "/t/" + s.Tenant.ID + "/bulk-jobs/" + id.Job.Format(job)
			if !below(page, c.Request.URL.Path) {
				s.Watch = page
			}
		}
	}
	s.Status = !s.Portal && !s.Operator && s.Person.Email != "" && c.kit.statusPage(c.Ctx())
	return s
}

// plainShell is Shell without reads of the database, for pages that say that the database is unavailable.
func (c *Call) plainShell(title, active string) layout.Shell {
	s := layout.Shell{
		Title:    title,
		Active:   active,
		Theme:    Theme(c.Request),
		Role:     c.Actor.Role,
		Warnings: c.warnings,
		Homes:    c.kit.sessions != nil && c.kit.sessions.home != "",
	}
	if !c.Actor.Tenant.IsZero() {
		s.Suspended = c.Actor.Suspended
		s.Tenant = layout.Tenant{ID: id.Tenant.Format(c.Actor.Tenant), Name: c.Actor.TenantName}
		for _, t := range c.tenants {
			if t.Tenant != c.Actor.Tenant {
				s.Tenant.Others = append(s.Tenant.Others, layout.TenantLink{ID: id.Tenant.Format(t.Tenant), Name: t.Name})
			}
		}
	}
	switch a, p := &c.Actor, c.portal(); {
	case p != nil:
		s.Portal, s.Parts, s.Brand, s.Accent, s.Return = true, p.Parts, p.Brand, strings.TrimPrefix(p.Accent, "#"), p.ReturnURL
		if s.Nameless = p.ID.IsZero(); a.Session != nil {
			s.Remaining = a.Session.Remaining
		}
		s.View = viewOf(a)
	case a.Viewing != nil:
		s.Operator, s.Person = true, layout.Person{Name: a.Operator.Name, Email: account.Shown(a.Operator.Email)}
		s.View = viewOf(a)
	case !a.Operator.ID.IsZero():
		s.Operator, s.Person = true, layout.Person{Name: a.Operator.Name, Email: account.Shown(a.Operator.Email)}
	default:
		s.Person = layout.Person{Name: a.Person.Name, Email: account.Shown(a.Person.Email)}
	}
	return s
}

// viewOf is the visit of an operator; nil for everybody else.
func viewOf(a *Actor) *layout.View {
	if a.Viewing == nil {
		return nil
	}
	return &layout.View{Until: a.Viewing.Until, Reason: a.Viewing.Reason, Acting: a.Viewing.Acting}
}

// statusPage caches whether operators publish the platform's status page.
type statusPage struct {
	mu    sync.Mutex
	on    bool
	until time.Time
}

// statusPage reports whether pages link to the status page. The setting is read once a minute for all requests. During
// the read, and if it fails, the last known value applies.
func (k *Kit) statusPage(ctx context.Context) bool {
	k.status.mu.Lock()
	now := k.now()
	if now.Before(k.status.until) {
		defer k.status.mu.Unlock()
		return k.status.on
	}
	k.status.until = now.Add(5 * time.Second) // for concurrent requests, and if it fails
	k.status.mu.Unlock()
	raw, err := accounts.Platform(ctx, k.sessions.db)
	k.status.mu.Lock()
	defer k.status.mu.Unlock()
	if err == nil {
		k.status.on, k.status.until = settings.Word(settings.StatusPage, raw) != settings.Off, now.Add(time.Minute)
	}
	return k.status.on
}

// unread is how many notices the member has not read, for the navigation. It is 0 on parts of pages, and if it can't
// be read.
func (c *Call) unread() int {
	if c.Actor.Member.IsZero() || c.Fragment() {
		return 0
	}
	n, err := accounts.CountUnread(c.Ctx(), c.kit.sessions.db, c.Actor.Tenant, c.Actor.Member, c.Actor.Role)
	if err != nil {
		c.kit.log.Debug("unread notices not counted", "error", err)
		return 0
	}
	return int(n)
}
