package admin

import (
	"net/http"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/domain/account"
	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

const hostsMost = 200

func (a *admin) listHosts(c *handlers.Call) error {
	v := console.HostsView{Part: strings.TrimSpace(c.Query("q"))}
	err := a.DB.Console(c.Ctx(), func(q *db.Queries) error {
		rows, err := q.ConsoleHosts(c.Ctx(), db.ConsoleHostsParams{Part: v.Part, Most: hostsMost + 1})
		v.Most = len(rows) > hostsMost
		for _, r := range rows[:min(len(rows), hostsMost)] {
			line := console.HostLine{
				Host: r.Host, Endpoints: r.Endpoints, Tenants: r.Tenants, Active: r.Active, Disabled: r.Disabled, BreakersOpen: r.BreakersOpen, Failing: r.Failing,
			}
			if r.LastFailureAt.Unix() > 0 {
				line.LastFailure = r.LastFailureAt
			}
			v.Hosts = append(v.Hosts, line)
		}
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Endpoint health", "health")
	return c.Render(http.StatusOK, console.Hosts(v))
}

func (a *admin) showQueue(c *handlers.Call) error {
	v := console.QueueView{Shell: c.Shell("Queue and workers", "queue")}
	err := a.DB.Console(c.Ctx(), func(q *db.Queries) error {
		workers, err := q.ConsoleWorkers(c.Ctx())
		if err != nil {
			return err
		}
		for _, w := range workers {
			v.Workers = append(v.Workers, console.WorkerLine{ID: id.Worker.Format(w.ID), Name: w.Name, Dead: w.Dead, Started: w.StartedAt, Lanes: w.Lanes})
		}
		shares, err := q.ConsoleShares(c.Ctx(), pageRows)
		if err != nil {
			return err
		}
		for _, s := range shares {
			v.Shares = append(v.Shares, console.ShareLine{
				Tenant: s.Name, TenantPath: tenantPath(s.ID), Endpoints: s.Endpoints, Attempts: s.Attempts, OfAttempts: s.AllAttempts, Microseconds: s.Us, OfMicroseconds: s.AllUs,
			})
		}
		lanes, err := q.ConsoleLanes(c.Ctx(), pageRows)
		for _, l := range lanes {
			state, tone := laneState(l)
			v.Lanes = append(v.Lanes, console.LaneLine{
				Tenant: l.TenantName, TenantPath: tenantPath(l.TenantID), Endpoint: id.Endpoint.Format(l.EndpointID), URL: egress.Mask(l.URL),
				State: state, Tone: tone, Waiting: l.Waiting, Ready: l.Ready, Oldest: l.Oldest, Owner: l.Owner,
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, console.Queue(v))
}

// laneState says in a word why a lane's deliveries wait.
func laneState(l db.ConsoleLanesRow) (string, components.Tone) {
	switch {
	case l.Status == "disabled":
		return "disabled", components.Bad
	case l.Held:
		return "held: " + l.Status, components.Warning
	case l.PausedBy == string(pause.Suspended):
		return "waits: the tenant is suspended", components.Warning
	case l.PausedBy != "":
		return "waits: dispatch is paused", components.Warning
	case health.State(l.BreakerState) != health.Closed:
		return "breaker open", components.Bad
	case l.ConsecutiveFailures > 0:
		return "failing", components.Warning
	}
	return "running", components.Good
}

func (a *admin) listJobs(c *handlers.Call) error {
	var jobs []db.ConsoleJobsRow
	v := console.JobsView{}
	err := a.DB.Console(c.Ctx(), func(q *db.Queries) (err error) {
		if jobs, err = q.ConsoleJobs(c.Ctx(), db.ConsoleJobsParams{Before: before(c, id.Job), Most: pageRows + 1}); err != nil {
			return err
		}
		chores, err := q.ConsoleChores(c.Ctx())
		for _, one := range chores {
			v.Chores = append(v.Chores, console.ChoreLine{Name: one.Name, Done: one.DoneAt})
		}
		return err
	})
	if err != nil {
		return err
	}
	jobs, v.Next = older(c, id.Job, jobs, func(r db.ConsoleJobsRow) id.UUID { return r.ID })
	tones := map[string]components.Tone{"done": components.Good, "failed": components.Bad, "running": components.Info}
	for _, j := range jobs {
		v.Jobs = append(v.Jobs, console.JobLine{
			ID: id.Job.Format(j.ID), Kind: strings.ReplaceAll(string(j.Kind), "_", " "), State: string(j.State), Tone: tones[string(j.State)], Tenant: j.TenantName,
			TenantPath: tenantPath(j.TenantID), Done: j.Done, Expected: j.Expected, Reason: j.Reason, Failure: j.Failure, Created: j.CreatedAt,
		})
	}
	v.Shell = c.Shell("Jobs", "jobs")
	return c.Render(http.StatusOK, console.Jobs(v))
}

func (a *admin) listMails(c *handlers.Call) error {
	v := console.MailsView{Root: Root + "/mail", State: word(c, "state", "waiting", "sent", "failed", "dropped")}
	var rows []db.ConsoleMailsRow
	err := a.DB.Console(c.Ctx(), func(q *db.Queries) (err error) {
		rows, err = q.ConsoleMails(c.Ctx(), db.ConsoleMailsParams{Before: before(c, id.Mail), State: v.State, Most: pageRows + 1})
		return err
	})
	if err != nil {
		return err
	}
	rows, v.Next = older(c, id.Mail, rows, func(r db.ConsoleMailsRow) id.UUID { return r.ID })
	tones := map[string]components.Tone{"sent": components.Good, "failed": components.Bad, "waiting": components.Info}
	for _, m := range rows {
		state := m.State
		if state == "failed" {
			state = "given up"
		}
		v.Mails = append(v.Mails, console.MailLine{
			ID: id.Mail.Format(m.ID), Recipient: account.MaskEmail(m.Recipient), Kind: strings.ReplaceAll(string(m.Kind), "_", " "), State: state,
			Tone: tones[m.State], Tenant: m.TenantName, Error: m.LastError, Tries: int(m.Tries), Created: m.CreatedAt, Again: m.State == "failed",
		})
	}
	v.Shell = c.Shell("Mail", "mail")
	return c.Render(http.StatusOK, console.Mails(v))
}

// sendMailAgain gives a mail that was given up another chain of tries.
func (a *admin) sendMailAgain(c *handlers.Call) error {
	u, err := c.ID(id.Mail, "mail_id")
	if err != nil {
		return err
	}
	err = a.DB.Console(c.Ctx(), func(q *db.Queries) error {
		n, err := q.SendMailAgain(c.Ctx(), u)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.Conflict, "mail_not_given_up", "This mail is not given up any more: somebody has sent it again, or it is gone.")
		}
		return q.Audit(c.Ctx(), c.Author(), db.Audited{Action: "mail.sent_again", Kind: "mail", Object: id.Mail.Format(u)})
	})
	if err != nil {
		return err
	}
	c.Flash("The mail is on its way again.")
	return c.Redirect(Root + "/mail")
}

func (a *admin) listAudit(c *handlers.Call) error {
	v := console.AuditView{Action: strings.TrimSpace(c.Query("action")), Actor: word(c, "actor", "operator", "member", "key", "system", "command", "portal")}
	var rows []db.ConsoleAuditRow
	err := a.DB.Console(c.Ctx(), func(q *db.Queries) (err error) {
		rows, err = q.ConsoleAudit(c.Ctx(), db.ConsoleAuditParams{Before: before(c, id.Audit), Action: v.Action, Actor: v.Actor, Most: pageRows + 1})
		return err
	})
	if err != nil {
		return err
	}
	rows, v.Next = older(c, id.Audit, rows, func(r db.ConsoleAuditRow) id.UUID { return r.ID })
	for _, r := range rows {
		line := console.AuditLine{
			At: r.At.In(time.UTC), Actor: r.ActorKind, ActorID: r.ActorID, Action: r.Action, Object: strings.TrimSpace(r.ObjectKind + " " + r.ObjectID),
			Tenant: r.TenantName, Address: r.Address, Reason: r.Reason,
		}
		if r.TenantID != nil {
			line.TenantPath = tenantPath(*r.TenantID)
		}
		v.Lines = append(v.Lines, line)
	}
	v.Shell = c.Shell("Audit log", "audit")
	return c.Render(http.StatusOK, console.Audit(v))
}
