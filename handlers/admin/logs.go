package admin

import (
	"cmp"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/domain/bulk"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/console"
)

func (a *admin) listJobs(c *handlers.Call) error {
	states := []string{
		"",
		string(bulk.Queued),
		string(bulk.Running),
		string(bulk.Done),
		string(bulk.Canceled),
		string(bulk.Failed),
	}
	found, err := handlers.ReadList(c, handlers.List{
		Name:    "jobs",
		Of:      id.Job,
		Rows:    pageRows,
		Filters: []handlers.Filter{handlers.ByTenant},
		Choices: []handlers.Choice{{Name: "state", Words: states}},
	}, a.console(c), func(q *db.Tx, p handlers.Page) (show.Page[show.PlatformJob], error) {
		return deliveries.PlatformJobs{Tenant: tenantOrNone(p), State: p.Chosen["state"]}.List(c.Ctx(), q, p.Range)
	})
	if err != nil {
		return err
	}
	v := console.JobsView{
		Shell:  c.Shell("Jobs", "jobs"),
		State:  found.Given.Get("state"),
		Tenant: found.Given.Get("tenant"),
		Wrong:  found.Wrong,
		Jobs:   found.Rows,
		Next:   found.Older,
	}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		v.Periodic, err = deliveries.ListPeriodic(c.Ctx(), q)
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(found.Status(), console.Jobs(v))
}

func (a *admin) listMails(c *handlers.Call) error {
	found, err := handlers.ReadList(c, handlers.List{
		Name:    "mails",
		Of:      id.Mail,
		Rows:    pageRows,
		Filters: []handlers.Filter{handlers.ByTenant},
		Choices: []handlers.Choice{{Name: "state", Words: []string{"", "waiting", "sent", "failed", "dropped"}}},
	}, a.console(c), func(q *db.Tx, p handlers.Page) (show.Page[show.Mail], error) {
		return accounts.MailList{Tenant: tenantOrNone(p), State: p.Chosen["state"]}.List(c.Ctx(), q, p.Range)
	})
	if err != nil {
		return err
	}
	return c.Render(found.Status(), console.Mails(console.MailsView{
		Shell:  c.Shell("Mail", "mail"),
		Root:   Root + "/mail",
		State:  found.Given.Get("state"),
		Tenant: found.Given.Get("tenant"),
		Wrong:  found.Wrong,
		Mails:  found.Rows,
		Next:   found.Older,
	}))
}

// tenantOrNone is the tenant of a list's filter.
func tenantOrNone(p handlers.Page) *id.UUID {
	if p.Tenant.IsZero() {
		return nil
	}
	return &p.Tenant
}

// sendMailAgain starts a new series of tries for a mail that failed permanently.
func (a *admin) sendMailAgain(c *handlers.Call) error {
	mailID := c.PathID("mail_id")
	if err := accounts.ResendMail(c.Ctx(), a.DB, mailID, c.Author()); err != nil {
		return err
	}
	return c.Done(Root+"/mail", "The email will be sent again.")
}

// doer names an actor: an operator's name, or else the kind of the actor and its id.
func doer(kind, of string, names map[string]string) string {
	return cmp.Or(names[of], strings.TrimSpace(kind+" "+of))
}

func (a *admin) listAudit(c *handlers.Call) error {
	var operators map[string]string
	found, err := handlers.ReadList(c, handlers.List{
		Name:    "audit",
		Of:      id.Audit,
		Rows:    pageRows,
		Filters: []handlers.Filter{handlers.ByAction, handlers.ByTenant},
		Choices: []handlers.Choice{{
			Name:  "actor",
			Words: []string{"", "operator", "member", "key", "system", "command", "portal"},
		}},
	}, a.console(c), func(q *db.Tx, p handlers.Page) (page show.Page[show.AuditEntry], err error) {
		if operators, err = accounts.OperatorNames(c.Ctx(), q); err != nil {
			return page, err
		}
		return db.PlatformAudit{Tenant: tenantOrNone(p), Action: p.Action, Actor: p.Chosen["actor"]}.List(c.Ctx(), q, p.Range)
	})
	if err != nil {
		return err
	}
	return c.Render(found.Status(), console.Audit(console.AuditView{
		Shell:     c.Shell("Audit log", "audit"),
		Action:    found.Given.Get("action"),
		Actor:     found.Given.Get("actor"),
		Tenant:    found.Given.Get("tenant"),
		Wrong:     found.Wrong,
		Entries:   found.Rows,
		Operators: operators,
		Next:      found.Older,
	}))
}
