package handlers

import (
	"posthorn/db/deliveries"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
)

// Deliveries is the list of a tenant's deliveries, on every surface.
var Deliveries = List{
	Name:     "deliveries",
	Of:       id.Delivery,
	Back:     true,
	Statuses: delivery.Selections(),
	Filters:  []Filter{BySince, ByUntil, ByType, ByChannel, ByEndpoint, ByArchived, ByWait, ByJob, ByBatch, ByStoredDay},
}

// Deliveries is the list of deliveries that a page asks for.
func (p Page) Deliveries() deliveries.ListOptions {
	return deliveries.ListOptions{
		Range:     p.Range,
		Status:    p.Status,
		EventType: p.Type,
		Channel:   p.Channel,
		Tenant:    p.Tenant,
		Endpoint:  p.Endpoint,
		Host:      p.Host,
		Job:       p.Job,
		Batch:     p.Batch,
		Wait:      p.Wait,
		Archived:  p.Archived,
	}
}
