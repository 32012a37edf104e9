package event

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// ReferenceType is the content type of an event whose data is in object storage. What is stored as its data is a
// reference: who sends it replaces it by one with a link (docs/adr/0031-links.md). No producer can set this type.
const ReferenceType = "application/vnd.posthorn.reference+json"

// MaxLargePayload is the largest event that POSTHORN_MAX_LARGE_PAYLOAD can permit, in bytes of data: what one request
// can hold.
const MaxLargePayload = 10 << 20

// Reference says what data is in object storage.
type Reference struct {
	Link        string `json:"link,omitempty"` // not stored
	Size        int    `json:"size"`           // bytes
	SHA256      string `json:"sha256"`         // hexadecimal
	ContentType string `json:"content_type,omitempty"`
}

// The errors of object storage.
var (
	ErrNotStored = &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "payload_not_stored",
		RetryAfter: 2,
		Detail:     "The event's data is large and could not be written to object storage. Nothing was stored. Send the event again in a few seconds.",
	}
	ErrNotRead = &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "payload_not_read",
		RetryAfter: 5,
		Detail:     "The event's data is in object storage, which can't be read right now. Try again in a few seconds.",
	}
	// ErrDataDeleted is for who wants the data alone.
	ErrDataDeleted = fault.New(fault.Gone, "event_data_deleted", "The event's data was deleted on request. The event itself is still there, without it.")
	// ErrFirstLarge rejects the first event of a tenant that it would create.
	ErrFirstLarge = fault.New(fault.TooLarge, CodePayloadTooLarge, "An event that creates its tenant can have at most 262,144 bytes of data. Create the tenant first.")
)

// Refer is the reference to data of a content type; empty: JSON.
func Refer(data []byte, contentType string) Reference {
	sum := sha256.Sum256(data)
	return Reference{Size: len(data), SHA256: hex.EncodeToString(sum[:]), ContentType: contentType}
}

// ParseReference reads stored data that has ReferenceType.
func ParseReference(data []byte) (r Reference, err error) {
	err = json.Unmarshal(data, &r)
	return r, err
}

// Encode writes the reference. The same reference has the same bytes.
func (r Reference) Encode() []byte {
	text, _ := json.Marshal(r) // texts and a number
	return text
}

// Holds reports whether data is what the reference was made of.
func (r Reference) Holds(data []byte) bool {
	is := Refer(data, r.ContentType)
	return is.Size == r.Size && is.SHA256 == r.SHA256
}

// ObjectName is the name of an event's data in object storage.
func ObjectName(tenant, event id.UUID) string {
	return fmt.Sprintf("payloads/%s/%s", id.Tenant.Format(tenant), id.Event.Format(event))
}
