package cli

import (
	"context"

	"posthorn/client"
)

// subscriptionsCommands manage the subscriptions of AI clients.
type subscriptionsCommands struct {
	List   subscriptionListCommand   `cmd:"" help:"List subscriptions of AI clients, newest first."`
	Revoke subscriptionRevokeCommand `cmd:"" help:"End a subscription, and tell its client."`
}

type subscriptionListCommand struct {
	shared
	Principal string `placeholder:"NAME" help:"Only those of this principal."`
}

// Run lists subscriptions.
func (c subscriptionListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	var rows []client.Subscription
	for one, err := range sdk.Subscriptions(ctx, client.ListSubscriptionsParams{Principal: nonEmpty(c.Principal)}) {
		if err != nil {
			return err
		}
		rows = append(rows, one)
	}
	return listing[client.Subscription]{
		empty: "No subscriptions.",
		head:  []string{"SUBSCRIPTION", "PRINCIPAL", "EVENT", "ARGUMENTS", "STATE", "EXPIRES", "ENDPOINT"},
		row: func(v client.Subscription) []string {
			return []string{v.ID, v.Principal, v.EventType, string(v.Arguments), v.Condition, local(v.ExpiresAt), v.EndpointID}
		},
	}.print(c.shared, e, rows, nil)
}

type subscriptionRevokeCommand struct {
	shared
	ID string `arg:"" name:"subscription" help:"The subscription's id (sub_...)."`
}

// Run revokes a subscription.
func (c subscriptionRevokeCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	if err := sdk.RevokeSubscription(ctx, c.ID); err != nil {
		return err
	}
	return c.show(e, map[string]string{"revoked": c.ID}, func() { e.printf("%s is revoked.\n", c.ID) })
}
