package queue

import (
	"posthorn/db/seal"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
)

// Links makes the signed links by which receivers get the data of an event without an API key.
type Links struct {
	BaseURL string     // the public URL
	Keys    *seal.Ring // nil: only examples are made
}

// Of is the link of a delivery. It is the same for every attempt, as long as the master key and the public URL are.
func (l Links) Of(tenant, deliveryID id.UUID) string {
	if l.Keys == nil {
		return l.Example()
	}
	return l.BaseURL + delivery.LinkPath + l.Keys.Token(delivery.LinkPurpose, delivery.Link{Tenant: tenant, Delivery: deliveryID}.Text())
}

// Example has the form of a link, and opens nothing.
func (l Links) Example() string { return l.BaseURL + delivery.LinkPath + "TOKEN" }
