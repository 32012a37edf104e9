package main

import (
	"context"
	"net/mail"
	"strings"

	"posthorn/db"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

type operatorCreateCommand struct {
	Email string `required:"" placeholder:"ADDRESS" help:"The person's e-mail address."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run adds an operator, with a line in the audit log.
func (c operatorCreateCommand) Run(ctx context.Context, a *app) error {
	address, err := mail.ParseAddress(c.Email)
	if err != nil || address.Name != "" || len(address.Address) > 254 {
		return fault.New(fault.Invalid, "email_invalid", "--email is not an e-mail address. Write it as ada@example.com.")
	}
	email := strings.ToLower(address.Address)
	u := db.NewID()
	err = a.withDatabase(ctx, func(d *db.DB) error {
		return d.Console(ctx, func(q *db.Queries) error {
			made, err := q.InsertOperator(ctx, db.InsertOperatorParams{ID: u, Email: email, CreatedAt: u.Time()})
			if err != nil {
				return err
			}
			if made == 0 {
				return fault.New(fault.Conflict, "already_exists", "There is an operator with the address "+email+" already.")
			}
			return audit(ctx, q, nil, "operator.created", "operator", id.Operator.Format(u))
		})
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(map[string]string{"operator_id": id.Operator.Format(u), "email": email})
	}
	a.printf("%s is an operator now (%s).\n", email, id.Operator.Format(u))
	return nil
}
