package signature

import (
	"bytes"
	"encoding/json"
	"time"
)

// Batch is a request with several events: its body is what each event's own body would be, as a JSON array or as lines,
// and its headers and signature are those of one message whose id names the batch.
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

// LinesType is the content type of a batch that has a line of JSON for each event.
const LinesType = "application/x-ndjson"

// AppendItem appends a body to those of a batch, whose content type so far is batchType. The first starts an array if
// that is empty, and lines if it is LinesType. AppendBatchEnd completes it.
func AppendItem(batch []byte, batchType string, body []byte, bodyType string) (longer []byte, newType string) {
	if batchType == LinesType {
		return append(append(batch, line(body)...), '\n'), LinesType
	}
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

// line is JSON without line breaks, which can only be between its values.
func line(body []byte) []byte {
	var one bytes.Buffer
	if !bytes.ContainsAny(body, "\r\n") || json.Compact(&one, body) != nil {
		return body
	}
	return one.Bytes()
}

// AppendBatchEnd ends a batch of a content type.
func AppendBatchEnd(batch []byte, batchType string) []byte {
	if batchType == LinesType {
		return batch
	}
	return append(batch, ']')
}
