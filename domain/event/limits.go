package event

import "time"

// The limits of an emission.
const (
	DefaultMaxPayload = 256 << 10 // bytes of data
	DefaultMaxDepth   = 64        // arrays and objects nested within the data
	maxKey            = 128       // bytes of an ordering key
	MaxName           = 128       // characters of a type or of a channel
	maxChannels       = 10
	MaxVersion        = 64
	maxContentType    = 255 // characters of a content type
	maxIdempotencyKey = 255
	maxDelay          = 30 * 24 * time.Hour // how far ahead deliver_at can be
	// a deliver_at in the past by less is a clock that differs, and worth no warning
	lateAfter = time.Minute
)

// The codes of refusals. Those without a field concern the body as a whole.
const (
	CodeNotJSON           = "not_json"
	CodeNotUTF8           = "not_utf8"
	CodeTooDeep           = "too_deep"
	CodeUnpairedSurrogate = "unpaired_surrogate"
	CodeNotObject         = "not_object"
	CodeUnknownField      = "unknown_field"
	CodeDuplicateField    = "duplicate_field"
	CodeFieldType         = "field_type"
	CodeTypeMissing       = "type_missing"
	CodeTypeMalformed     = "type_malformed"
	CodeTypeReserved      = "type_reserved"
	CodeDataMissing       = "data_missing"
	CodePayloadTooLarge   = "payload_too_large"
	CodeKeyMalformed      = "key_malformed"
	CodeChannelsCount     = "channels_count"
	CodeChannelMalformed  = "channel_malformed"
	CodeTimeMalformed     = "time_malformed"
	CodeTimeRange         = "time_range"
	CodeExpiry            = "expiry_malformed"
	CodeVersionMalformed  = "version_malformed"
	CodeIdempotencyKey    = "idempotency_key_malformed"
	CodeEventID           = "event_id_malformed"
	CodeContentType       = "content_type_malformed"
	CodeBatchCount        = "batch_count"
)

// Limits are the platform's settings for one emission; a zero field means the default.
type Limits struct {
	MaxPayload int  // bytes of data
	MaxDepth   int  // arrays and objects nested within the data; at most 1,000
	Reserved   bool // Posthorn itself emits: it has types of its own
}
