package api

import (
	"net/http"

	"posthorn/db/accounts"
	"posthorn/domain/fault"
	"posthorn/handlers"
)

var errNoCatalogue = fault.New(fault.NotFound, "catalogue_off", "This platform doesn't publish a catalog. Contact its operator.")

// getCatalogue responds with the platform's own catalog, where it is public.
func (a *api) getCatalogue(c *handlers.Call) error {
	types, on, err := accounts.PublicCatalogue(c.Ctx(), a.DB)
	switch {
	case err != nil:
		return err
	case !on:
		return errNoCatalogue
	}
	return c.Answer(http.StatusOK, Catalogue{Data: views(types, eventTypeView)})
}
