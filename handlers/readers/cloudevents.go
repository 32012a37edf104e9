package readers

import (
	"encoding/json"

	"posthorn/db/feeds"
	"posthorn/domain/id"
	"posthorn/handlers/api"
)

// cloudEvent is an event as CloudEvents 1.0 has it. Names of extensions are lowercase letters and digits.
type cloudEvent struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Time            api.Time        `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	DataVersion     string          `json:"dataversion,omitempty"`
	PartitionKey    string          `json:"partitionkey,omitempty"`
	Traceparent     string          `json:"traceparent,omitempty"`
	EventID         string          `json:"eventid"`
	Data            json.RawMessage `json:"data"`
}

// cloudEvents is a batch. The id of each is its cursor, so that a client of HTTP Feeds continues after it.
func (h *handler) cloudEvents(endpointID id.UUID, events []feeds.Event) []cloudEvent {
	source := h.BaseURL + api.Root + "/feeds/" + id.Endpoint.Format(endpointID)
	batch := make([]cloudEvent, len(events))
	for i, e := range events {
		batch[i] = cloudEventOf(e, source)
	}
	return batch
}

func cloudEventOf(e feeds.Event, source string) cloudEvent {
	out := cloudEvent{
		SpecVersion:     "1.0",
		ID:              e.Place.String(),
		Source:          source,
		Type:            e.Type,
		Time:            api.Time(e.AcceptedAt),
		DataContentType: "application/json",
		DataVersion:     e.Version,
		PartitionKey:    e.Key,
		Traceparent:     e.Traceparent,
		EventID:         e.OwnID,
		Data:            e.Data,
	}
	if !e.OccurredAt.IsZero() {
		out.Time = api.Time(e.OccurredAt)
	}
	if e.ContentType != "" {
		out.DataContentType = e.ContentType
	}
	return out
}
