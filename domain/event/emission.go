// Package event holds what can be emitted: the shape of an event as a producer posts it, and its limits. It reads each
// body once and keeps the data's exact bytes, so that duplicate keys, number spellings and white space inside the data
// reach the receiver as they were sent.
package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/fault"
)

// Emission is an event as its producer describes it.
type Emission struct {
	Type string
	// one JSON value, byte for byte as received, without the white space around it; part of the parsed body
	Data           []byte
	Key            string    // ordering key; empty: none
	Channels       []string  // each once, in the order received
	OccurredAt     time.Time // the producer's time, UTC; zero when it gave none
	DeliverAt      time.Time // not before, UTC; zero is at once, and so is a time that has passed
	ExpiresAt      time.Time // not after, UTC; zero is never
	Late           bool      // deliver_at was more than lateAfter in the past: worth a warning
	Version        string    // of the payload; empty: none
	IdempotencyKey string    // from the body; a request's Idempotency-Key header is the caller's affair
	// the producer's own id of the event, which receivers see instead of Posthorn's; empty: none
	EventID       string
	EventIDUnsent bool   // EventID is for finding the event alone: receivers see Posthorn's id
	ContentType   string // of a payload that is text, and the data a JSON string of it; empty: JSON
	CreateTenant  bool   // a tenant that the request names by an unknown external id is created

	keyField span // the field idempotency_key in the body, with a comma; empty where it is absent or null
}

// span is a part of a body.
type span struct{ from, to int }

// Parse reads one emission, a JSON object of type, data and optionally key, channels, occurred_at, deliver_at,
// version, idempotency_key, event_id, send_event_id, content_type, create_tenant and expires_at or expires_in (an
// optional field can be null). now bounds deliver_at. Emission.Data aliases body, which must not change afterwards.
// Every refusal is a *fault.Error with one of the codes above and the field.
//
// Data can be any JSON value. Half of a surrogate pair written as an escape ("\ud83d" alone) is refused although it
// passes JSON's grammar: it is no Unicode text, and receivers with strict parsers could never read the event (RFC 8259
// section 8.2, RFC 7493 section 2.1).
func Parse(body []byte, lim Limits, now time.Time) (Emission, error) {
	if lim.MaxPayload <= 0 {
		lim.MaxPayload = DefaultMaxPayload
	}
	if lim.MaxDepth <= 0 {
		lim.MaxDepth = DefaultMaxDepth
	}
	p := parser{scanner: scanner{body: body, most: min(lim.MaxDepth, 1000)}, now: now, reserved: lim.Reserved}
	if err := p.emission(); err != nil {
		return Emission{}, err
	}
	if len(p.out.Data) > lim.MaxPayload {
		return Emission{}, &fault.Error{
			Kind:   fault.TooLarge,
			Code:   CodePayloadTooLarge,
			Detail: fmt.Sprintf("The data has %d bytes; the maximum is %d. Send a reference to the rest instead.", len(p.out.Data), lim.MaxPayload),
			Fields: []fault.Field{{Name: "data", Code: CodePayloadTooLarge, Detail: fmt.Sprintf("At most %d bytes.", lim.MaxPayload)}},
		}
	}
	return p.out, nil
}

// parser reads the fields of an emission while the scanner checks the JSON that holds them.
type parser struct {
	scanner

	out      Emission
	now      time.Time
	reserved bool // the types that are Posthorn's own are accepted
	seen     fields
	// how long the event is worth to be delivered; zero: it does not say
	expiresIn time.Duration
}

// fields is the set of top-level fields met so far.
type fields uint16

const (
	fieldType fields = 1 << iota
	fieldData
	fieldKey
	fieldChannels
	fieldOccurredAt
	fieldDeliverAt
	fieldVersion
	fieldIdempotencyKey
	fieldEventID
	fieldCreateTenant
	fieldSendEventID
	fieldContentType
	fieldExpiresAt
	fieldExpiresIn
)

func (p *parser) emission() error {
	p.space()
	if p.peek() != '{' {
		if err := p.value(0); err != nil {
			return err
		}
		return fault.New(fault.Invalid, CodeNotObject, `An event must be a JSON object with the fields "type" and "data".`)
	}
	p.at++
	p.space()
	for first := true; !p.take('}'); first = false {
		comma, key := p.at, p.out.keyField
		if !first {
			if !p.take(',') {
				return p.unexpected("a comma or }")
			}
			p.space()
			if key.to > 0 && p.seen&(p.seen-1) == 0 { // the key is the first field
				p.out.keyField.to = p.at
			}
		}
		if err := p.field(); err != nil {
			return err
		}
		if key.to == 0 && p.out.IdempotencyKey != "" {
			p.out.keyField = span{from: comma, to: p.at}
		}
		p.space()
	}
	p.space()
	if p.at < len(p.body) {
		return p.unexpected("the end")
	}
	return p.required()
}

func (p *parser) required() error {
	var wrong []fault.Field
	if p.out.Type == "" {
		wrong = append(wrong, fault.Field{Name: "type", Code: CodeTypeMissing, Detail: `Add the event's type, such as "type": "order.completed".`})
	}
	if p.seen&fieldData == 0 {
		wrong = append(wrong, fault.Field{Name: "data", Code: CodeDataMissing, Detail: `Add the event's data, such as "data": {}.`})
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong)
	}
	if p.out.ContentType != "" && p.out.Data[0] != '"' {
		return fault.InvalidField("data", CodeContentType, "With a content_type the data must be a string: the text to send. Leave content_type out to send JSON.")
	}
	if p.out.EventID != "" && !p.out.EventIDUnsent {
		if err := CheckEventID(p.out.EventID); err != nil {
			return err
		}
	}
	return p.expiry()
}

// expiry completes expires_at. The time that expires_in gives begins when the event can be delivered.
func (p *parser) expiry() error {
	from := p.now
	if p.out.DeliverAt.After(from) {
		from = p.out.DeliverAt
	}
	switch at := p.out.ExpiresAt; {
	case p.expiresIn > 0 && !at.IsZero():
		return fault.InvalidField("expires_in", CodeExpiry, "Send either expires_in or expires_at.")
	case p.expiresIn > 0:
		p.out.ExpiresAt = from.Add(p.expiresIn).UTC()
	case at.Sub(p.now) > maxDelay:
		return fault.InvalidField("expires_at", CodeTimeRange, "expires_at can be at most 30 days in the future.")
	case !at.IsZero() && !p.out.DeliverAt.IsZero() && !at.After(p.out.DeliverAt):
		return fault.InvalidField("expires_at", CodeExpiry, "expires_at must be later than deliver_at.")
	}
	return nil
}

func (p *parser) field() error {
	if p.peek() != '"' {
		return p.unexpected("a field name in quotes")
	}
	raw, err := p.text()
	if err != nil {
		return err
	}
	p.space()
	if !p.take(':') {
		return p.unexpected("a colon")
	}
	p.space()
	switch string(decoded(raw)) {
	case "type":
		return p.textField(fieldType, "type", &p.out.Type, p.checkType)
	case "data":
		return p.dataField()
	case "key":
		return p.textField(fieldKey, "key", &p.out.Key, checkKey)
	case "channels":
		return p.channelsField()
	case "occurred_at":
		return p.timeField(fieldOccurredAt, "occurred_at", &p.out.OccurredAt)
	case "deliver_at":
		return p.deliverAtField()
	case "version":
		return p.textField(fieldVersion, "version", &p.out.Version, checkVersion)
	case "idempotency_key":
		return p.textField(fieldIdempotencyKey, "idempotency_key", &p.out.IdempotencyKey, CheckIdempotencyKey)
	case "event_id":
		return p.textField(fieldEventID, "event_id", &p.out.EventID, CheckUnsentID)
	case "send_event_id":
		sent := true
		err := p.boolField(fieldSendEventID, "send_event_id", &sent)
		p.out.EventIDUnsent = !sent
		return err
	case "content_type":
		return p.textField(fieldContentType, "content_type", &p.out.ContentType, checkContentType)
	case "create_tenant":
		return p.boolField(fieldCreateTenant, "create_tenant", &p.out.CreateTenant)
	case "expires_at":
		return p.timeField(fieldExpiresAt, "expires_at", &p.out.ExpiresAt)
	case "expires_in":
		return p.secondsField(fieldExpiresIn, "expires_in", &p.expiresIn)
	}
	shown := string(decoded(raw))
	if len(shown) > 64 {
		shown = strings.ToValidUTF8(shown[:64], "") + "..."
	}
	return fault.InvalidField(shown, CodeUnknownField, fmt.Sprintf(
		"There is no field %q. An event has type, data, key, channels, occurred_at, deliver_at, version, idempotency_key, event_id, send_event_id, content_type, create_tenant, expires_at and expires_in; everything else belongs into data.", shown))
}

// once refuses a second field of one name: parsers disagree on which of two wins.
func (p *parser) once(f fields, name string) error {
	if p.seen&f != 0 {
		return fault.InvalidField(name, CodeDuplicateField, fmt.Sprintf("The field %q appears twice. Send it once.", name))
	}
	p.seen |= f
	return nil
}

// stringOrNull passes over the value of a string field; nil is null.
func (p *parser) stringOrNull(name string) ([]byte, error) {
	switch p.peek() {
	case '"':
		raw, err := p.text()
		if err != nil {
			return nil, err
		}
		return raw, nil
	case 'n':
		return nil, p.literal("null")
	}
	if err := p.value(0); err != nil {
		return nil, err
	}
	return nil, fault.InvalidField(name, CodeFieldType, fmt.Sprintf("The field %q must be a string.", name))
}

func (p *parser) textField(f fields, name string, into *string, check func(string) error) error {
	if err := p.once(f, name); err != nil {
		return err
	}
	raw, err := p.stringOrNull(name)
	if err != nil || raw == nil {
		return err
	}
	*into = string(decoded(raw))
	return check(*into)
}

func (p *parser) boolField(f fields, name string, into *bool) error {
	if err := p.once(f, name); err != nil {
		return err
	}
	switch p.peek() {
	case 't':
		*into = true
		return p.literal("true")
	case 'f':
		*into = false
		return p.literal("false")
	case 'n':
		return p.literal("null")
	}
	if err := p.value(0); err != nil {
		return err
	}
	return fault.InvalidField(name, CodeFieldType, fmt.Sprintf("The field %q must be true or false.", name))
}

func (p *parser) secondsField(f fields, name string, into *time.Duration) error {
	if err := p.once(f, name); err != nil {
		return err
	}
	if p.peek() == 'n' {
		return p.literal("null")
	}
	from := p.at
	if err := p.value(0); err != nil {
		return err
	}
	n, err := strconv.Atoi(string(p.body[from:p.at]))
	if most := int(maxDelay.Seconds()); err != nil || n < 1 || n > most {
		return fault.InvalidField(name, CodeExpiry, fmt.Sprintf("The field %q must be a whole number of seconds from 1 to %d.", name, most))
	}
	*into = time.Duration(n) * time.Second
	return nil
}

func (p *parser) dataField() error {
	if err := p.once(fieldData, "data"); err != nil {
		return err
	}
	start := p.at
	if err := p.value(0); err != nil {
		return err
	}
	p.out.Data = p.body[start:p.at:p.at]
	return nil
}

func (p *parser) channelsField() error {
	if err := p.once(fieldChannels, "channels"); err != nil {
		return err
	}
	if p.peek() == 'n' {
		return p.literal("null")
	}
	if p.peek() != '[' {
		return p.notStrings()
	}
	p.at++
	p.space()
	for first := true; !p.take(']'); first = false {
		if !first {
			if !p.take(',') {
				return p.unexpected("a comma or ]")
			}
			p.space()
		}
		if p.peek() != '"' {
			return p.notStrings()
		}
		raw, err := p.text()
		if err != nil {
			return err
		}
		if err := p.channel(string(decoded(raw))); err != nil {
			return err
		}
		p.space()
	}
	return nil
}

// notStrings refuses other values in the place of channels. A value that is not JSON is reported first.
func (p *parser) notStrings() error {
	if err := p.value(0); err != nil {
		return err
	}
	return fault.InvalidField("channels", CodeFieldType, `The field "channels" must be an array of strings.`)
}

func (p *parser) channel(name string) error {
	if !ValidChannel(name) {
		return fault.InvalidField("channels", CodeChannelMalformed, fmt.Sprintf(
			"A channel can have 1 to %d letters, digits, and the characters . _ - : / @", MaxName))
	}
	if slices.Contains(p.out.Channels, name) {
		return nil
	}
	if len(p.out.Channels) == maxChannels {
		return fault.InvalidField("channels", CodeChannelsCount, fmt.Sprintf("An event can have at most %d channels.", maxChannels))
	}
	p.out.Channels = append(p.out.Channels, name)
	return nil
}

func (p *parser) timeField(f fields, name string, into *time.Time) error {
	if err := p.once(f, name); err != nil {
		return err
	}
	raw, err := p.stringOrNull(name)
	if err != nil || raw == nil {
		return err
	}
	at, ok := parseTime(decoded(raw))
	if !ok {
		return fault.InvalidField(name, CodeTimeMalformed, fmt.Sprintf(
			"The field %q must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z.", name))
	}
	// From 1970, because the zero time would read as "not given"; to 9999, because RFC 3339 ends there, also in UTC.
	if at = at.UTC(); at.Year() < 1970 || at.Year() > 9999 {
		return fault.InvalidField(name, CodeTimeRange, fmt.Sprintf("The field %q must be between the years 1970 and 9999.", name))
	}
	*into = at
	return nil
}

// parseTime reads an RFC 3339 time. The standard library reads more than that (golang.org/issue/54580): one-digit
// hours, a comma before the fraction, offsets of 24 hours. Other readers of the event would stumble over them.
func parseTime(text []byte) (time.Time, bool) {
	var at time.Time
	n := len(text)
	if n < len("2006-01-02T15:04:05Z") || text[13] != ':' || text[19] == ',' || at.UnmarshalText(text) != nil {
		return at, false
	}
	if text[n-1] == 'Z' {
		return at, true
	}
	return at, string(text[n-5:n-3]) < "24" && string(text[n-2:]) < "60"
}

func (p *parser) deliverAtField() error {
	if err := p.timeField(fieldDeliverAt, "deliver_at", &p.out.DeliverAt); err != nil {
		return err
	}
	switch wait := p.out.DeliverAt.Sub(p.now); {
	case wait > maxDelay:
		return fault.InvalidField("deliver_at", CodeTimeRange, "deliver_at can be at most 30 days in the future.")
	case wait <= 0:
		p.out.Late = wait < -lateAfter && !p.out.DeliverAt.IsZero()
		p.out.DeliverAt = time.Time{}
	}
	return nil
}

// decoded is the text between the quotes of a checked string, its escapes resolved; mostly there are none.
func decoded(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	var text string
	quoted := append(append(append(make([]byte, 0, len(raw)+2), '"'), raw...), '"')
	if err := json.Unmarshal(quoted, &text); err != nil {
		return raw // never: the scanner has passed it, as the fuzz test holds
	}
	return []byte(text)
}
