package handlers

import (
	"posthorn/db/deliveries"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// ofStoredDay explains why an event or a delivery that the path names was not found, if it is of a day that the tenant
// has in storage. Any id of such a day gets the same response: nobody learns which ids there are.
func (c *Call) ofStoredDay(err error) error {
	if !fault.Is(err, fault.ErrNotFound.Code) || c.Actor.Tenant.IsZero() || c.kit.db == nil {
		return err
	}
	for param, kind := range map[string]id.Kind{"event_id": id.Event, "delivery_id": id.Delivery} {
		named, malformed := kind.Parse(c.Param(param))
		if malformed != nil {
			continue
		}
		explained := err
		if failed := c.Tx(func(q *sql.Queries) error {
			explained = deliveries.Missing(c.Ctx(), q, c.Actor.Tenant, named, err)
			return nil
		}); failed == nil {
			return explained
		}
	}
	return err
}
