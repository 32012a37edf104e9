package endpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"posthorn/domain/characters"
	"posthorn/domain/egress"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/filter"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/retry"
	"posthorn/domain/signature"
	"posthorn/domain/words"
)

// Check validates an endpoint's settings and returns them as they are stored: the URL in its normal form, the filter
// without white space, event types and channels once each. The error is a *fault.Error that names every wrong field
// with its valid values.
func (s Settings) Check(policy egress.Policy) (Settings, error) {
	s = s.Clone()
	var c collector
	c.travel(&s, policy)
	if s.ExternalID != "" && !id.ValidExternal(id.Endpoint, s.ExternalID) {
		c.refuse("external_id", "external_id_malformed", fmt.Sprintf(externalRule, id.MaxExternal))
	}
	c.text("description", s.Description, maxDescription)
	c.subscription(&s)
	c.wire(&s, policy)
	c.retries(s)
	c.simple(s)
	c.batches(s)
	if !validVersion(s.PayloadVersion) {
		c.refuse("payload_version", "payload_version_malformed", versionRule)
	}
	c.metadata(s.Metadata)
	if len(c.fields) > 0 {
		return Settings{}, fault.InvalidFields(c.fields)
	}
	return s, nil
}

const externalRule = "An external id has 1 to %d characters, no control characters and no white space at either end, and doesn't have the form of a generated id."

var versionRule = fmt.Sprintf("A payload version can have 1 to %d letters, digits, and the characters . _ -, such as 2026-01-31.", maxVersion)

// CheckSubscription is Check of event types, channels and filter alone, and gives these as they are stored.
func (s Settings) CheckSubscription() (Settings, error) {
	s = s.Clone()
	var c collector
	c.subscription(&s)
	if len(c.fields) > 0 {
		return Settings{}, fault.InvalidFields(c.fields)
	}
	return s, nil
}

// CheckTransformation is Check of the transformation alone.
func (s Settings) CheckTransformation() error {
	var c collector
	c.transformation(s, s.Wire().HeaderNames())
	if len(c.fields) > 0 {
		return fault.InvalidFields(c.fields)
	}
	return nil
}

// CheckRoom says whether a tenant with so many endpoints can have one more.
func CheckRoom(has, most int) error {
	if has < most {
		return nil
	}
	return fault.New(fault.Conflict, "endpoints_limit", fmt.Sprintf(
		"This tenant can have %s and has %s. Delete one that you don't need, or ask the operator of this platform for more.",
		many(most), words.Number(has)))
}

// many is a number of endpoints: "1 endpoint".
func many(n int) string {
	if n == 1 {
		return "1 endpoint"
	}
	return words.Number(n) + " endpoints"
}

// collector gathers the faults of all fields, so that a caller fixes them in one go.
type collector struct{ fields []fault.Field }

func (c *collector) refuse(field, code, detail string) {
	c.fields = append(c.fields, fault.Field{Name: field, Code: code, Detail: detail})
}

// add takes over the fields of another package's refusal.
func (c *collector) add(err error) {
	var f *fault.Error
	if errors.As(err, &f) {
		c.fields = append(c.fields, f.Fields...)
	}
}

func (c *collector) subscription(s *Settings) {
	s.EventTypes, s.Channels = once(s.EventTypes), once(s.Channels)
	switch {
	case len(s.EventTypes) == 0, len(s.EventTypes) > maxEventTypes:
		c.refuse("event_types", "event_types_count", fmt.Sprintf(
			`An endpoint has 1 to %d event types; this one has %d. "*" means all.`, maxEventTypes, len(s.EventTypes)))
	default:
		for _, p := range s.EventTypes {
			if err := filter.ValidPattern(p); err != nil {
				c.add(err)
				break
			}
		}
	}
	if len(s.Channels) > maxChannels {
		c.refuse("channels", "channels_count", fmt.Sprintf("An endpoint can have at most %d channels; this one has %d.", maxChannels, len(s.Channels)))
	}
	if slices.ContainsFunc(s.Channels, func(name string) bool { return !event.ValidChannel(name) }) {
		c.refuse("channels", "channel_malformed", fmt.Sprintf(
			"A channel can have 1 to %d letters, digits, and the characters . _ - : / @", event.MaxName))
	}
	f, err := filter.Compile([]byte(s.Filter))
	if err != nil {
		c.add(err)
		return
	}
	var compact bytes.Buffer
	if f == nil || json.Compact(&compact, []byte(s.Filter)) != nil {
		s.Filter = ""
		return
	}
	s.Filter = compact.String()
}

func (c *collector) wire(s *Settings, policy egress.Policy) {
	if !s.Format.Valid() {
		c.refuse("format", "format_unknown", "Unknown format. Use "+either(append(texts(signature.Formats()), string(signature.Templated)))+".")
	}
	c.rendering(*s)
	c.shape(*s)
	c.public(*s)
	var own []string
	if err := signature.ValidPrefix(s.Prefix); err != nil {
		c.add(err)
	} else {
		own = s.Wire().HeaderNames()
	}
	c.auth(s, own, policy)
	c.tls(s)
	c.transformation(*s, own)
	if err := egress.CheckHeaders(s.Headers.Values(), own...); err != nil {
		c.add(err)
	}
}

// transformation checks what the endpoint makes of its events. Headers that it sets can't be the format's, nor custom
// ones.
func (c *collector) transformation(s Settings, own []string) {
	if s.Transformation == nil {
		return
	}
	if s.Kind.Pulls() || s.Kind == Listen {
		c.refuse("transformation", "transformation_unwanted", fmt.Sprintf(
			"An endpoint of the kind %s has no transformation: nothing is sent to it. Leave transformation out.", s.Kind))
		return
	}
	if s.Auth != nil && !s.Auth.Tokens() {
		own = append(slices.Clone(own), s.Auth.HeaderName())
	}
	if err := s.Transformation.Check(!s.Kind.Broker(), own...); err != nil {
		c.add(err)
	}
	for name := range s.Transformation.Headers {
		for _, custom := range s.Headers.Names() {
			if strings.EqualFold(name, custom) {
				c.refuse("transformation.headers", "custom_header_refused", fmt.Sprintf(
					"The header %s is a custom header of the endpoint, too. Remove one of the two.", name))
			}
		}
	}
}

// rendering checks what some formats alone have.
func (c *collector) rendering(s Settings) {
	c.oneOf("type_field", string(s.TypeField), texts(signature.TypeFields()))
	if s.TypeField != signature.TypeAsType && s.Format != signature.XWebhook {
		c.refuse("type_field", "type_field_unwanted", fmt.Sprintf(
			"type_field applies only to the format x-webhook. With the format %s, leave it out or set it to type.", s.Format))
	}
	if s.Rotation == "" {
		return
	}
	c.oneOf("rotation_signatures", string(s.Rotation), texts(signature.Rotations()))
	if s.Rotation == signature.SignAll && s.Format.OneSlot() {
		c.refuse("rotation_signatures", "rotation_signatures_unwanted", fmt.Sprintf(
			"The format %s can carry only one signature. Set rotation_signatures to one, or leave it out.", s.Format))
	}
}

// shape checks what the endpoint changes about its format, and the secret of its second signature.
func (c *collector) shape(s Settings) {
	if s.Shape == nil && s.Format != signature.Templated {
		return
	}
	if s.Kind.Broker() {
		c.refuse("wire", "wire_unwanted", fmt.Sprintf("An endpoint of the kind %s has no wire settings. Leave wire out.", s.Kind))
		return
	}
	if err := s.Shape.Check(s.Format, s.Prefix); err != nil {
		c.add(err)
		return
	}
	if s.Shape == nil || s.Shape.AlsoSign == nil || s.AlsoSecret == "" {
		return
	}
	if _, err := s.Shape.AlsoSign.Wire().ParseKey(s.AlsoSecret); err != nil {
		c.refuse("wire.also_sign.secret", "secret_refused", "The secret can't sign in the format of also_sign.")
	}
}

// public checks whether the endpoint's requests have room for the signature with the tenant's keys.
func (c *collector) public(s Settings) {
	c.oneOf("public_signature", string(s.Public), FieldNamed("public_signature").Values())
	switch {
	case s.Public == NoPublic:
	case s.Kind.Pulls() && !s.Public.Fits(s.Kind):
		c.refuse("public_signature", "public_signature_unwanted", "A feed has no request whose method and URL can be signed. Set public_signature to v1a, or leave it out.")
	case s.Kind.Pulls() && s.Format != signature.Standard:
		c.refuse("public_signature", "public_signature_unwanted", fmt.Sprintf(
			"The format %s has no v1a. Set format to standard, or leave public_signature out.", s.Format))
	case !s.Public.Fits(s.Kind):
		c.refuse("public_signature", "public_signature_unwanted", fmt.Sprintf(
			"An endpoint of the kind %s has no public-key signature. Leave public_signature out.", s.Kind))
	case s.Public.V1a() && s.Format != signature.Standard:
		c.refuse("public_signature", "public_signature_unwanted", fmt.Sprintf(
			"The format %s has no v1a. Set public_signature to rfc9421, or format to standard.", s.Format))
	case s.Public.Message():
		for _, name := range s.Wire().HeaderNames() {
			if httpsig.IsField(name) {
				c.refuse("public_signature", "public_signature_unwanted", fmt.Sprintf(
					"The endpoint's format sets the header %s, which this signature needs. Choose another name in wire.", name))
				return
			}
		}
	}
}

func (c *collector) retries(s Settings) {
	if s.RetryPolicy != Custom {
		if _, ok := retry.Named(s.RetryPolicy); !ok {
			c.refuse("retry_policy.name", "retry_policy_unknown", "Unknown retry policy. Use "+either(append(retry.Names(), Custom))+".")
		}
		if len(s.RetryDelays) > 0 {
			c.refuse(
				"retry_policy.delays",
				"retry_delays_unwanted",
				"A named schedule has its own delays. Leave delays out, or use the name custom.",
			)
		}
		if s.RetryJitter != nil {
			c.refuse(
				"retry_policy.jitter",
				"retry_jitter_unwanted",
				"A named schedule has its own jitter. Leave jitter out, or use the name custom.",
			)
		}
		return
	}
	if _, err := s.schedule(); err != nil {
		c.add(err)
	}
}

// simple checks the choices and numbers of the table of fields. What is read by format has checks of its own.
func (c *collector) simple(s Settings) {
	for _, f := range fields {
		switch value := f.at(&s); {
		case f.Type == Choice && slices.Contains([]string{"ordering", "verification", "when_held", "large_payloads"}, f.Name):
			c.oneOf(f.Name, *value[0].(*string), f.Values())
		case f.Type == Number:
			n, given := value[0].(*int)
			if pointer, is := value[0].(**int); is {
				n, given = *pointer, *pointer != nil
			}
			if given && (*n < f.Low || *n > f.High) {
				c.refuse(f.Name, "out_of_range", fmt.Sprintf("%s must be from %s to %s%s.", f.Name, words.Number(f.Low), words.Number(f.High), f.Range))
			}
		}
	}
}

func (c *collector) oneOf(field, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		c.refuse(field, field+"_unknown", fmt.Sprintf("%s must be %s.", field, either(allowed)))
	}
}

func (c *collector) text(field, value string, most int) {
	switch {
	case utf8.RuneCountInString(value) > most:
		c.refuse(field, "out_of_range", fmt.Sprintf("%s can have at most %s characters.", field, words.Number(most)))
	case !clean(value):
		c.refuse(field, "text_malformed", field+" contains a control character or invalid UTF-8. Remove it.")
	}
}

func (c *collector) metadata(m map[string]string) {
	if len(m) > maxMetadata {
		c.refuse("metadata", "out_of_range", fmt.Sprintf("metadata can have at most %d entries; this has %d.", maxMetadata, len(m)))
		return
	}
	for _, key := range sortedKeys(m) {
		if key == "" || utf8.RuneCountInString(key) > maxMetadataKey || !clean(key) {
			c.refuse("metadata", "text_malformed", fmt.Sprintf("A metadata key must have 1 to %d characters, without control characters.", maxMetadataKey))
			continue
		}
		c.text("metadata."+key, m[key], maxMetadataVal)
	}
}

// clean reports whether PostgreSQL, a page and a mail can hold a text.
func clean(text string) bool {
	return characters.Lines(text)
}

// once drops repetitions and keeps the order. A list that is too long for any field stays as it is, to be refused.
func once(list []string) []string {
	if len(list) > 10*maxEventTypes {
		return list
	}
	out := make([]string, 0, len(list))
	for _, one := range list {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

func validVersion(v string) bool {
	return len(v) <= maxVersion && !strings.ContainsFunc(v, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	})
}

// printable makes a name that a client chose fit for a field's name.
func printable(name string) string {
	if len(name) > 64 || !clean(name) || strings.ContainsAny(name, "\r\n\t") {
		return strconv.QuoteToASCII(name[:min(len(name), 64)])
	}
	return name
}

// Names are the names of the headers, in order.
func (h Headers) Names() []string { return sortedKeys(h) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// sorted puts the fields of a map's walk in an order that is the same every time.
func sorted(fields []fault.Field) []fault.Field {
	slices.SortFunc(fields, func(a, b fault.Field) int { return cmp.Compare(a.Name, b.Name) })
	return fields
}

func texts[W ~string](list []W) []string {
	out := make([]string, len(list))
	for i, f := range list {
		out[i] = string(f)
	}
	return out
}

func either(options []string) string {
	if len(options) == 1 {
		return options[0]
	}
	last := len(options) - 1
	return strings.Join(options[:last], ", ") + " or " + options[last]
}
