package api

import (
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/subscriptions"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/handlers/mcp"
)

// connectionTime is how long a test of a connection can take: each of its three requests has 10 s.
const connectionTime = 40 * time.Second

// testNewConnection tests the connection of an endpoint that is not saved.
func (a *api) testNewConnection(c *handlers.Call) error {
	var in EndpointInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var s endpoint.Settings
	err := c.Tx(func(q *db.Tx) error {
		defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.Settings.EndpointsPerTenant)
		if err != nil {
			return err
		}
		s, err = in.apply(defaults.Settings, a.Egress)
		return err
	})
	if err != nil {
		return err
	}
	f := endpoints.Facts{Settings: s}
	if in.Secret != nil {
		own, err := endpoint.ImportSecret(s.Wire(), *in.Secret)
		if err != nil {
			return err
		}
		f.Secrets = []endpoints.Secret{{Text: own.Text}}
	}
	return a.connect(c, f)
}

// testConnection tests the connection of an endpoint, with the settings of the body over its own.
func (a *api) testConnection(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in EndpointPatch
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var f endpoints.Facts
	err := c.Tx(func(q *db.Tx) (err error) {
		if f, err = endpoints.ToTest(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID); err != nil {
			return err
		}
		if err := f.Settings.CheckConnection(); err != nil {
			return err
		}
		if f.Settings, err = in.apply(f.Settings, a.Egress); err != nil {
			return err
		}
		return f.CheckSecrets()
	})
	if err != nil {
		return err
	}
	return a.connect(c, f)
}

func (a *api) connect(c *handlers.Call, f endpoints.Facts) error {
	if err := f.Settings.CheckConnection(); err != nil {
		return err
	}
	if err := f.Complete(c.Ctx(), a.DB, a.Keys, c.Actor.Tenant, a.BaseURL); err != nil {
		return err
	}
	steps, err := a.Tester.Test(c.Ctx(), f)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, encodeConnection(steps))
}

// encodeConnection is a test of a connection in the API's form.
func encodeConnection(steps []show.ConnectionStep) ConnectionTest {
	v := ConnectionTest{OK: show.StepsOK(steps), Steps: []ConnectionStep{}}
	for _, s := range steps {
		v.Steps = append(v.Steps, ConnectionStep{
			Name:       ConnectionStepName(s.Name),
			State:      ConnectionStepState(s.State),
			DurationMs: float32(s.Took.Microseconds()) / 1000,
			Detail:     s.Detail,
		})
	}
	return v
}

// listSubscriptions lists the subscriptions of AI clients.
func (a *api) listSubscriptions(c *handlers.Call) error {
	l := handlers.List{Name: "subscriptions", Filters: []handlers.Filter{handlers.ByPrincipal}}
	return list(c, l, func(q *db.Tx, p handlers.Page) (show.Page[show.Subscription], error) {
		return a.subscriptions(c).List(c.Ctx(), q, p.Principal, p.Range)
	}, encodeSubscription)
}

func (a *api) subscriptions(c *handlers.Call) subscriptions.Store {
	return subscriptions.Store{Tenant: c.Actor.Tenant, Keys: a.Keys, By: c.Author(), Now: a.Now()}
}

// revokeSubscription ends a subscription and tells its client.
func (a *api) revokeSubscription(c *handlers.Call) error {
	if err := c.NoBody(); err != nil {
		return err
	}
	var last endpoints.Facts
	err := c.Tx(func(q *db.Tx) (err error) {
		last, err = a.subscriptions(c).Remove(c.Ctx(), q, c.Param("subscription_id"))
		return err
	})
	if err != nil {
		return err
	}
	if err := last.Complete(c.Ctx(), a.DB, a.Keys, c.Actor.Tenant, a.BaseURL); err != nil {
		return err
	}
	mcp.Terminate(c.Ctx(), a.Tester, last)
	return c.AnswerNothing()
}

func encodeSubscription(s show.Subscription) Subscription {
	return Subscription{
		ID:          s.ID,
		Principal:   s.Principal,
		EventType:   s.EventType,
		Arguments:   s.Arguments,
		EndpointID:  id.Endpoint.Format(s.Endpoint.ID),
		URL:         s.Endpoint.MaskedURL(),
		Status:      EndpointStatus(s.Endpoint.Status),
		Condition:   string(s.Endpoint.Condition.State),
		ExpiresAt:   Time(s.ExpiresAt),
		RefreshedAt: Time(s.RefreshedAt),
		CreatedAt:   Time(s.CreatedAt),
	}
}
