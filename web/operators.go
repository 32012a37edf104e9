package main

import (
	"context"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	mails "posthorn/domain/mail"
)

type operatorCreateCommand struct {
	Email string `required:"" placeholder:"ADDRESS" help:"The person's email address."`
	JSON  bool   `name:"json" help:"Print JSON: operator_id, email and link."`
}

type operatorLinkCommand struct {
	Email string `required:"" placeholder:"ADDRESS" help:"The operator's email address."`
	JSON  bool   `name:"json" help:"Print JSON: operator_id, email and link."`
}

// Run adds an operator, with a line in the audit log, and prints the link by which they set their password.
func (c operatorCreateCommand) Run(ctx context.Context, a *app) error {
	return a.operatorLink(ctx, c.Email, c.JSON, "operator.created", func(q *db.Tx, email string) (id.UUID, error) {
		operator, err := accounts.CreateOperator(ctx, q, email)
		if fault.Is(err, "already_exists") {
			err = fault.New(fault.Conflict, "already_exists", "There is an operator with the address "+email+" already. `posthorn operator link` makes a new link for them.")
		}
		return operator, err
	})
}

// Run makes a new link for an operator who has lost the password or the second factor.
func (c operatorLinkCommand) Run(ctx context.Context, a *app) error {
	return a.operatorLink(ctx, c.Email, c.JSON, "operator.link_created", func(q *db.Tx, email string) (id.UUID, error) {
		operator, err := accounts.Find(ctx, q, account.Operator, email)
		if db.IsMissing(err) {
			err = fault.New(fault.NotFound, fault.ErrNotFound.Code, "There is no operator with the address "+email+".")
		}
		return operator.ID, err
	})
}

func operatorAddress(typed string) (string, error) {
	address, err := mail.ParseAddress(typed)
	if err != nil || address.Name != "" || len(address.Address) > 254 {
		return "", fault.New(fault.Invalid, "email_invalid", "--email is not an e-mail address. Write it as ada@example.com.")
	}
	if email, err := account.Mailbox(address.Address); err == nil {
		return email, nil
	}
	return strings.ToLower(address.Address), nil // at a host name without a dot, perhaps
}

// operatorLink makes a link that sets an operator's password, prints it, and mails it where mails can be sealed.
func (a *app) operatorLink(
	ctx context.Context,
	address string,
	asJSON bool,
	action string,
	find func(q *db.Tx, email string) (id.UUID, error),
) error {
	email, err := operatorAddress(address)
	if err != nil {
		return err
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	var operator, link string
	err = a.withStoreAndDatabase(ctx, func(s *store, d *db.DB) error {
		ring, noRing := openRing(ctx, &cfg, s, d)
		return d.Console(ctx, func(q *db.Tx) error {
			operatorID, err := find(q, email)
			if err != nil {
				return err
			}
			operator = id.Operator.Format(operatorID)
			token, err := accounts.MakeLink(ctx, q, accounts.NewLink{
				Purpose:  accounts.LinkOperator,
				Operator: &operatorID,
				Email:    email,
				Life:     account.OperatorLife,
			})
			if err != nil {
				return err
			}
			link = cfg.consoleURL(cfg.publicURL()) + "/console/setup?token=" + url.QueryEscape(token)
			if noRing == nil {
				expires := time.Now().Add(account.OperatorLife).UTC().Truncate(time.Second)
				_, err := accounts.QueueMail(ctx, q, accounts.Mail{
					Key:  "operator:" + id.Operator.Format(db.NewID()),
					To:   email,
					Kind: mails.OperatorAccess,
					Keys: ring,
					Data: mails.OperatorAccessData{
						Server:  serverName(cfg.publicURL()),
						By:      author().ID,
						New:     action == "operator.created",
						Link:    link,
						Expires: expires,
					},
				})
				if err != nil {
					return err
				}
			}
			return db.Audit(ctx, q, author(), db.Audited{Action: action, Kind: "operator", Object: operator})
		})
	})
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string]string{"operator_id": operator, "email": email, "link": link})
	}
	what := "New link for operator " + email
	if action == "operator.created" {
		what = "Operator " + email + " created"
	}
	a.printf("%s (%s). Set a password with this one-time link (valid for 24 hours):\n%s\n", what, operator, link)
	return nil
}

// serverName is the host of this server, as people know it.
func serverName(base string) string {
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		return u.Host
	}
	return base
}
