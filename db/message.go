package db

import "posthorn/domain/signature"

// Message is the event as the wire formats show it on its way to one endpoint, for the sender and for the page that shows
// what was sent. The ids are in their outer form.
func (e *Event) Message(event, delivery, endpoint string) signature.Message {
	m := signature.Message{
		EventID: event, DeliveryID: delivery, EndpointID: endpoint,
		Type: e.Type, CreatedAt: e.CreatedAt, OccurredAt: e.CreatedAt, Data: e.Data,
	}
	if e.OccurredAt != nil {
		m.OccurredAt = *e.OccurredAt
	}
	if e.Version != nil {
		m.Version = *e.Version
	}
	return m
}
