package api

import (
	"encoding/json"
	"net/http"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/domain/catalogue"
	"posthorn/domain/fault"
	"posthorn/handlers"
)

var errNoCatalogue = fault.New(fault.NotFound, "catalogue_off", "This platform doesn't publish a catalog. Contact its operator.")

// getCatalogue responds with the platform's own catalog if it is public.
func (a *api) getCatalogue(c *handlers.Call) error {
	types, on, err := events.PublicCatalogue(c.Ctx(), a.DB)
	switch {
	case err != nil:
		return err
	case !on:
		return errNoCatalogue
	}
	return c.Answer(http.StatusOK, Catalogue{Data: views(types, eventTypeView)})
}

// exportCatalogue responds with the tenant's own event types as one document.
func (a *api) exportCatalogue(c *handlers.Call) error {
	var words []string
	for _, d := range catalogue.Documents() {
		words = append(words, string(d))
	}
	p, err := c.Page(handlers.List{Name: "catalogue", Whole: true, Choices: []handlers.Choice{{Name: "format", Words: words}}})
	if err != nil {
		return err
	}
	var document []byte
	err = c.Tx(func(q *db.Tx) error {
		document, err = events.PublishCatalogue(c.Ctx(), q, c.Actor.Tenant, catalogue.Document(p.Chosen["format"]))
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, json.RawMessage(document))
}
