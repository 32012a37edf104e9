package signature

import "time"

// Batch is a request with several events: its body is a JSON array of what each event's own body would be, and its
// headers and signature are those of one message whose id names the batch.
type Batch struct {
	ID     string `json:"id"` // bat_...; another one in each request
	Events int    `json:"events"`
}

// BatchType is the event type of a batch, in the formats that have one in a header.
const BatchType = "event.batch"

// Message is the batch as its headers show it. of is one of its events.
func (b Batch) Message(of Message, at time.Time) Message {
	return Message{EventID: b.ID, DeliveryID: b.ID, EndpointID: of.EndpointID, Type: BatchType, CreatedAt: at, TypeField: of.TypeField, Bare: of.Bare}
}

// CloudEvents in a batch (CloudEvents JSON format 1.0.2, section 4).
const (
	cloudEvent  = "application/cloudevents+json"
	cloudEvents = "application/cloudevents-batch+json"
)

// AppendItem appends a body to those of a batch, whose content type so far is batchType; empty: it is the first.
// AppendBatchEnd completes it.
func AppendItem(batch []byte, batchType string, body []byte, bodyType string) (longer []byte, newType string) {
	mark := byte(',')
	if len(batch) == 0 {
		mark = '['
	}
	newType = ContentType
	if bodyType == cloudEvent && batchType != ContentType {
		newType = cloudEvents
	}
	return append(append(batch, mark), body...), newType
}

// AppendBatchEnd ends the array.
func AppendBatchEnd(batch []byte) []byte { return append(batch, ']') }
