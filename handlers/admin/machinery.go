package admin

import (
	"cmp"
	"maps"
	"net/http"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
	"posthorn/views/pages"
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

func (a *admin) listJobs(c *handlers.Call) error {
	var jobs []sql.ConsoleJobsRow
	e := readCrossTenant(c, id.Job)
	v := console.JobsView{State: word(c, "state", "queued", "running", "done", "canceled", "failed"), Tenant: e.filter.Tenant, Wrong: e.wrong["tenant"]}
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		if v.Wrong == "" {
			jobs, err = q.ConsoleJobs(c.Ctx(), sql.ConsoleJobsParams{
				Before: before(c, id.Job), State: v.State,
				Tenant: e.tenant, Most: pageRows + 1,
			})
		}
		if err != nil {
			return err
		}
		periodic, err := q.ConsolePeriodic(c.Ctx())
		for _, one := range periodic {
			v.Periodic = append(v.Periodic, console.PeriodicLine{Name: one.Name, Done: one.DoneAt})
		}
		return err
	})
	if err != nil {
		return err
	}
	jobs, v.Next = older(c, id.Job, jobs, func(r sql.ConsoleJobsRow) id.UUID { return r.ID })
	tones := map[string]components.Tone{"done": components.Good, "failed": components.Bad, "running": components.Info}
	for _, j := range jobs {
		v.Jobs = append(v.Jobs, console.JobLine{
			ID: id.Job.Format(j.ID), Kind: pages.JobName(j.Kind), State: string(j.State), Tone: tones[string(j.State)],
			Tenant:     j.TenantName,
			TenantPath: tenantPath(j.TenantID), Done: j.Done, Expected: j.Expected, Reason: j.Reason,
			Failure: j.Failure, Created: j.CreatedAt,
		})
	}
	v.Shell = c.Shell("Jobs", "jobs")
	return c.Render(statusOf(v.Wrong), console.Jobs(v))
}

func (a *admin) listMails(c *handlers.Call) error {
	e := readCrossTenant(c, id.Mail)
	v := console.MailsView{Root: Root + "/mail", State: word(c, "state", "waiting", "sent", "failed", "dropped"), Tenant: e.filter.Tenant, Wrong: e.wrong["tenant"]}
	var rows []sql.ConsoleMailsRow
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		if v.Wrong == "" {
			rows, err = q.ConsoleMails(c.Ctx(), sql.ConsoleMailsParams{
				Before: before(c, id.Mail), State: v.State,
				Tenant: e.tenant, Most: pageRows + 1,
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	rows, v.Next = older(c, id.Mail, rows, func(r sql.ConsoleMailsRow) id.UUID { return r.ID })
	tones := map[string]components.Tone{"sent": components.Good, "failed": components.Bad, "waiting": components.Info}
	for _, m := range rows {
		state := m.State
		if state == "failed" {
			state = "failed"
		}
		v.Mails = append(v.Mails, console.MailLine{
			ID: id.Mail.Format(m.ID), Recipient: account.MaskEmail(m.Recipient),
			Kind: strings.ReplaceAll(string(m.Kind), "_", " "), State: state,
			Tone: tones[m.State], Tenant: m.TenantName, Error: m.LastError, Tries: int(m.Tries), Created: m.CreatedAt,
			Again: m.State == "failed",
		})
		if m.TenantID != nil {
			v.Mails[len(v.Mails)-1].TenantPath = tenantPath(*m.TenantID)
		}
	}
	v.Shell = c.Shell("Mail", "mail")
	return c.Render(statusOf(v.Wrong), console.Mails(v))
}

// sendMailAgain starts a new series of tries for a mail that failed permanently.
func (a *admin) sendMailAgain(c *handlers.Call) error {
	mailID, err := c.ID(id.Mail, "mail_id")
	if err != nil {
		return err
	}
	if err := accounts.ResendMail(c.Ctx(), a.DB, mailID, c.Author()); err != nil {
		return err
	}
	c.Flash("The email will be sent again.")
	return c.Redirect(Root + "/mail")
}

// statusOf is the HTTP status of a list: 400 if its filter is invalid.
func statusOf(wrong string) int {
	if wrong != "" {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// operatorNames are the names of the operators by id.
func operatorNames(c *handlers.Call, q *db.Tx) (map[string]string, error) {
	rows, err := q.ConsoleOperators(c.Ctx())
	names := make(map[string]string, len(rows))
	for _, o := range rows {
		names[id.Operator.Format(o.ID)] = cmp.Or(o.Name, o.Email)
	}
	return names, err
}

// auditRefs are the objects and authors of a page of the audit log that belong to tenants.
func auditRefs(rows []sql.ConsoleAuditRow) (refs []db.AuditRef) {
	for _, r := range rows {
		if r.TenantID != nil {
			refs = append(refs, db.AuditRef{Tenant: *r.TenantID, Kind: r.ObjectKind, ID: r.ObjectID},
				db.AuditRef{Tenant: *r.TenantID, Kind: r.ActorKind, ID: r.ActorID})
		}
	}
	return refs
}

// doer names an actor: an operator's name, or else the kind of the actor and its id.
func doer(kind, of string, names map[string]string) string {
	return cmp.Or(names[of], strings.TrimSpace(kind+" "+of))
}

func (a *admin) listAudit(c *handlers.Call) error {
	e := readCrossTenant(c, id.Audit)
	v := console.AuditView{
		Action: strings.TrimSpace(c.Query("action")), Actor: word(c, "actor", "operator", "member", "key", "system", "command", "portal"),
		Tenant: e.filter.Tenant, Wrong: e.wrong["tenant"],
	}
	var rows []sql.ConsoleAuditRow
	var names map[string]string
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		if v.Wrong != "" {
			return nil
		}
		if names, err = operatorNames(c, q); err != nil {
			return err
		}
		rows, err = q.ConsoleAudit(c.Ctx(), sql.ConsoleAuditParams{
			Before: before(c, id.Audit), Action: v.Action,
			Actor: v.Actor, Tenant: e.tenant, Most: pageRows + 1,
		})
		if err != nil {
			return err
		}
		found, err := db.AuditNames(c.Ctx(), q, auditRefs(rows))
		maps.Copy(names, found)
		return err
	})
	if err != nil {
		return err
	}
	rows, v.Next = older(c, id.Audit, rows, func(r sql.ConsoleAuditRow) id.UUID { return r.ID })
	for _, r := range rows {
		line := console.AuditLine{
			At: r.At.In(time.UTC), Actor: r.ActorKind, ActorID: r.ActorID, ActorName: names[r.ActorID],
			Action: r.Action, Object: r.ObjectID,
			ObjectName: pages.ObjectName(r.ObjectKind, r.ObjectID, names, r.Details), Tenant: r.TenantName,
			Address: r.Address, Reason: r.Reason,
		}
		if r.TenantID != nil {
			line.TenantPath = tenantPath(*r.TenantID)
		}
		v.Lines = append(v.Lines, line)
	}
	v.Shell = c.Shell("Audit log", "audit")
	return c.Render(statusOf(v.Wrong), console.Audit(v))
}
