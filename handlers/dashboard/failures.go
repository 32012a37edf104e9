package dashboard

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/domain/access"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// failuresOf are an endpoint's newest failures by their response, as far as the reader sees responses.
func (a *dashboard) failuresOf(c *handlers.Call, q *db.Tx, e show.Endpoint) (pages.FailuresView, error) {
	payloads, err := a.readsPayloads(c, q)
	if err != nil {
		return pages.FailuresView{}, err
	}
	found, err := deliveries.Failures(c.Ctx(), q, c.Actor.Tenant, e.ID, payloads)
	return pages.FailuresView{
		Root:     root(c),
		Href:     endpointPath(c, e.ID) + "/failures",
		Acts:     c.Actor.May(access.ActOnDeliveries),
		Failures: found,
	}, err
}

// showFailures shows an endpoint's failures by their response, or with ?group= the deliveries of one group.
func (a *dashboard) showFailures(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var v pages.FailuresPage
	err := c.Tx(func(q *db.Tx) error {
		e, err := endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID)
		if err != nil {
			return err
		}
		v.EndpointHead = a.head(c, e, "deliveries")
		v.Failures, err = a.failuresOf(c, q, e)
		return err
	})
	if err != nil {
		return err
	}
	if v.Key = c.Query("group"); v.Key != "" {
		v.Chosen = v.Failures.Group(v.Key)
	}
	return c.Render(http.StatusOK, pages.EndpointFailures(v))
}
