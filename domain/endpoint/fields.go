package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"posthorn/domain/fault"
	"posthorn/domain/signature"
)

// FieldType is how a field is written as text, in forms and on a command line.
type FieldType int

// The types.
const (
	Text    FieldType = iota
	Number            // empty or none: no value, if the field is optional
	Switch            // on or off
	Choice            // one of the field's options
	List              // with commas or white space between
	Pairs             // name: value, one per line
	Special           // an object; surfaces that have it write it in their own way
)

// Option is a value to choose.
type Option struct{ Value, Label, Hint string }

// Field is one setting of an endpoint. The API, the dashboard's form, the command line, `apply` and `export` read and
// write each setting by its row in the table.
type Field struct {
	Name        string // in the API, in files, and in forms
	Type        FieldType
	Kind        Kind     // the only one that has it; empty: not one alone
	Optional    bool     // null is a value: none
	Options     []Option // of Choice, the default first
	Low, High   int      // of Number; High also of Text, in characters
	Range       string   // what a refusal says after the range
	Label       string   // on pages
	Hint        string   // on pages, below the field; of Pairs, how an entry is written and a comma come first
	Unit        string   // on pages, of a number
	Group       Group    // on pages
	Brief       string   // on pages, in the line of its group: the value is %s; of a Switch that is on; empty: not there
	Without     string   // the same without a value, or of a Switch that is off
	Placeholder string
	Flag        string // of the command line; empty: the name with hyphens
	Help        string // of the command line; empty: it has no flag
	EmptyIsNone bool   // a file leaves out the empty value, which is the default
	Routes      bool   // it decides which events the endpoint receives
	Unsent      bool   // it changes nothing about a delivery

	set  func(*Settings, json.RawMessage) error
	show func(Settings) any // as JSON; nil: the value. A result of nothing is left out
}

// nothing is what show returns for a field that is only written.
type nothing struct{}

// Fields is the table, in the order in which a patch is applied.
func Fields() []Field { return fields }

// Label is what people call a field of the API: the label of a setting, or its name in words.
func Label(name string) string {
	for _, f := range fields {
		if f.Name == name && f.Label != "" {
			return f.Label
		}
	}
	name = strings.TrimSuffix(strings.NewReplacer("_", " ", ".", " ").Replace(name), " seconds")
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// Values are the values of a choice, without that of none.
func (f Field) Values() (values []string) {
	for _, o := range f.Options {
		if o.Value != "" {
			values = append(values, o.Value)
		}
	}
	return values
}

// FieldNamed is the row of a field of the table.
func FieldNamed(name string) Field {
	return fields[slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })]
}

// Values are the values of a choice, the default first.
func Values(name string) []string { return FieldNamed(name).Values() }

// at are pointers to what the row has in Settings, its value first.
func (f Field) at(s *Settings) (all []any) {
	v := reflect.ValueOf(s).Elem()
	for _, i := range tagged[f.Name] {
		all = append(all, v.Field(i).Addr().Interface())
	}
	return all
}

// tagged are the fields of Settings by the name of their row.
var tagged = func() map[string][]int {
	by := map[string][]int{}
	for i, t := 0, reflect.TypeFor[Settings](); i < t.NumField(); i++ {
		name := t.Field(i).Tag.Get("row")
		for name := range strings.SplitSeq(name, ",") {
			by[name] = append(by[name], i)
		}
	}
	return by
}()

// Patch changes the fields that are given as JSON. Check validates the result.
func (s *Settings) Patch(given map[string]json.RawMessage) error {
	before := *s
	*s = s.Clone() // JSON is read into what pointers and lists have
	for _, f := range fields {
		raw, is := given[f.Name]
		if !is {
			continue
		}
		if f.set == nil {
			if err := json.Unmarshal(raw, f.at(s)[0]); err != nil {
				return fault.InvalidField(f.Name, "body_malformed", f.Name+" has another type.")
			}
		} else if err := f.set(s, raw); err != nil {
			return err
		}
	}
	if err := s.keepSecret(before, given["auth"] != nil); err != nil {
		return err
	}
	if err := s.keepVariables(before, given["transformation"]); err != nil {
		return err
	}
	return s.patchHeaders(given["custom_headers"], given["sensitive_headers"])
}

// Shown is the settings as JSON shows them, by name. Values that are hidden are null.
func (s Settings) Shown() map[string]any {
	out := map[string]any{}
	for _, f := range fields {
		v := f.value(s)
		if v != (nothing{}) {
			out[f.Name] = v
		}
	}
	return out
}

func (f Field) value(s Settings) any {
	if f.show != nil {
		return f.show(s)
	}
	v := reflect.ValueOf(f.at(&s)[0]).Elem()
	switch {
	case f.Optional && v.Kind() == reflect.String && v.IsZero():
		return nil
	case v.Kind() == reflect.Slice && v.IsNil():
		return []string{}
	case v.Kind() == reflect.Map && v.IsNil():
		return map[string]string{}
	}
	return v.Interface()
}

// Diff names the fields in which two settings differ, as the contract names them.
func (s Settings) Diff(other Settings) (names []string) {
	if s.Kind != other.Kind {
		names = append(names, "kind")
	}
	return append(names, s.differ(other, func(Field) bool { return true })...)
}

func (s Settings) differ(other Settings, about func(Field) bool) (names []string) {
	for _, f := range fields {
		if f.Kind != "" && f.Kind != s.Kind && f.Kind != other.Kind {
			continue // the same connection is of another kind's row
		}
		if about(f) && !slices.EqualFunc(f.at(&s), f.at(&other), sameValue) {
			names = append(names, f.Name)
		}
	}
	return names
}

// sameValue compares what two pointers of the same type point to. Empty lists and maps are none.
func sameValue(a, b any) bool {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	if k := x.Kind(); (k == reflect.Slice || k == reflect.Map) && x.Len() == 0 {
		return y.Len() == 0
	}
	return reflect.DeepEqual(x.Interface(), y.Interface())
}

// Routes reports whether two settings route events alike.
func (s Settings) Routes(other Settings) bool {
	return len(s.differ(other, func(f Field) bool { return f.Routes })) == 0
}

// Sends reports whether two settings send events alike.
func (s Settings) Sends(other Settings) bool {
	return len(s.differ(other, func(f Field) bool { return !f.Unsent })) == 0
}

// Text is a field's value as a form shows it. A hidden value is the marker.
func (f Field) Text(s Settings) string {
	v := reflect.ValueOf(f.at(&s)[0]).Elem()
	switch of := v.Interface().(type) {
	case bool:
		return map[bool]string{true: "on", false: "off"}[of]
	case []string:
		return strings.Join(of, ", ")
	case map[string]string:
		return pairsText(of)
	case Headers:
		pairs := make(map[string]string, len(of))
		for name, value := range of.Shown() {
			if pairs[name] = Marker; value != nil {
				pairs[name] = *value
			}
		}
		return pairsText(pairs)
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	return fmt.Sprint(v.Interface())
}

func pairsText(pairs map[string]string) string {
	lines := make([]string, 0, len(pairs))
	for _, name := range sortedKeys(pairs) {
		lines = append(lines, name+": "+pairs[name])
	}
	return strings.Join(lines, "\n")
}

// Parse reads a field's text as JSON. A number that is none is -1, which no field permits: Check says what it permits.
func (f Field) Parse(text string) (json.RawMessage, error) {
	var v any = text
	trimmed := strings.TrimSpace(text)
	switch none := trimmed == "" || trimmed == "none"; {
	case f.Optional && none:
		v = nil
	case f.Type == Number:
		n, err := strconv.Atoi(trimmed)
		if err != nil {
			n = -1
		}
		v = n
	case f.Type == Switch:
		v = trimmed == "on" || trimmed == "true"
	case f.Type == List:
		v = Split(text)
	case f.Type == Pairs:
		pairs, ok := ReadPairs(text)
		if !ok {
			entry, _, _ := strings.Cut(f.Hint, ",")
			return nil, fault.InvalidField(f.Name, "text_malformed", "Enter one entry per line, as "+entry+".")
		}
		v = pairs
	case f.Type == Text:
		v = trimmed
	}
	return encodeJSON(v), nil
}

// Split reads a list with commas or white space between.
func Split(text string) []string {
	return append([]string{}, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,\n\r\t", r) })...)
}

// ReadPairs reads "name: value", one per line.
func ReadPairs(text string) (pairs map[string]string, ok bool) {
	pairs = map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !found || name == "" {
			return nil, false
		}
		pairs[name] = strings.TrimSpace(value)
	}
	return pairs, true
}

// encodeJSON is JSON with the signs of expressions as they are.
func encodeJSON(v any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // texts, numbers and lists alone
	}
	return bytes.TrimSpace(out.Bytes())
}

// fields is the table. A row needs a column (queries/endpoints.sql) and a rule in Check.
var fields = []Field{
	{
		Name:   "preset",
		Type:   Special,
		Unsent: true,
		set:    setPreset,
		show:   func(Settings) any { return nothing{} },
	},
	{
		Name: "url",
		Type: Special,
		set:  setURL,
	},
	{
		Name: "kafka",
		Type: Special,
		Kind: Kafka,
		set:  setKafka,
		show: showKafka,
	},
	{
		Name: "rabbitmq",
		Type: Special,
		Kind: RabbitMQ,
		set:  setRabbitMQ,
		show: showRabbitMQ,
	},
	{
		Name: "sqs",
		Type: Special,
		Kind: SQS,
		set:  setSQS,
		show: showSQS,
	},
	{
		Name: "s3",
		Type: Special,
		Kind: S3,
		set:  setS3,
		show: showS3,
	},
	{
		Name:     "external_id",
		Optional: true,
		Unsent:   true,
		set: setOptional(func(s *Settings) *string { return &s.ExternalID },
			fault.InvalidField("external_id", "external_id_malformed", "An external id is not empty. Give null for none.")),
	},
	{
		Name:        "description",
		Label:       "Description",
		High:        maxDescription,
		Help:        "What it is for.",
		EmptyIsNone: true,
		Unsent:      true,
	},
	{
		Name:        "event_types",
		Type:        List,
		Placeholder: "TYPE",
		Help:        "Event types: full names, patterns such as order.*, or *.",
		Routes:      true,
	},
	{
		Name:        "filter",
		Optional:    true,
		Label:       "Filter",
		Hint:        "A CEL expression over type, data, and channels, or a JSON object of values that must match.",
		Placeholder: "data.total > 100.0",
		Help:        "A CEL expression over type, data and channels; none removes it.",
		Routes:      true,
		set: func(s *Settings, raw json.RawMessage) error {
			if s.Filter = string(raw); s.Filter == "null" {
				s.Filter = ""
			}
			return nil
		},
		show: func(s Settings) any {
			if s.Filter == "" {
				return nil
			}
			return json.RawMessage(s.Filter)
		},
	},
	{
		Name:        "channels",
		Type:        List,
		Label:       "Channels",
		Hint:        "Separate with commas, 10 at most. Only events on these channels are delivered.",
		Placeholder: "CHANNEL",
		Help:        "Only events of these channels.",
		EmptyIsNone: true,
		Routes:      true,
	},
	{
		Name:        "prefix",
		Group:       Signing,
		Brief:       "prefix %s",
		Label:       "Header prefix",
		Help:        "Prefix of the format's header names.",
		EmptyIsNone: true,
	},
	{
		Name:        "format",
		Group:       Signing,
		Brief:       "%s",
		Type:        Choice,
		Options:     formatOptions(),
		Label:       "Format",
		Hint:        "How requests are built and signed. Keep Standard Webhooks unless your receiver already verifies another format.",
		Placeholder: "FORMAT",
		Help:        "Wire format: ${enum}.",
		set: func(s *Settings, raw json.RawMessage) error {
			s.SetFormat(signature.Format(unquote(raw)))
			return nil
		},
	},
	{
		Name:  "type_field",
		Group: Signing,
		Type:  Choice,
		Options: []Option{
			{Value: string(signature.TypeAsType), Label: "type"},
			{Value: string(signature.TypeAsEvent), Label: "event"},
			{Value: string(signature.TypeAsBoth), Label: "Both type and event"},
		},
		Label:       "Event type field in the body",
		Hint:        "Choose event for receivers that read body.event.",
		Placeholder: "NAME",
		Help:        "Name of the event type in x-webhook bodies: ${enum}.",
	},
	{
		Name:     "rotation_signatures",
		Group:    Signing,
		Type:     Choice,
		Optional: true,
		Options: []Option{
			{Value: "", Label: "The format's default"},
			{Value: string(signature.SignOne), Label: "One signature: the old secret until you switch"},
			{Value: string(signature.SignAll), Label: "One signature for each live secret"},
		},
		Label:       "Signatures during a rotation",
		Hint:        "By default, standard and t-v1 send one for each live secret; x-webhook sends one.",
		Placeholder: "WHICH",
		Help:        "Signatures while a secret is rotated: ${enum}.",
		set: func(s *Settings, raw json.RawMessage) error {
			s.Rotation = signature.Rotation(unquote(raw)) // null: the format's default
			return nil
		},
		show: func(s Settings) any { return s.Format.Rotation(s.Rotation) },
	},
	{
		Name:  "public_signature",
		Group: Signing,
		Brief: "public-key signature: %s",
		Type:  Choice,
		Options: []Option{
			{Value: string(NoPublic), Label: "None"},
			{Value: string(RFC9421), Label: RFC9421.Label()},
			{Value: string(V1a), Label: "Standard Webhooks v1a"},
			{Value: string(BothPublic), Label: "Both"},
		},
		Label:       "Public-key signature",
		Hint:        "An additional signature that receivers verify with your public keys, without a secret.",
		Placeholder: "WHICH",
		Help:        "Additional signature with the tenant's keys: ${enum}.",
	},
	{
		Name: "wire",
		Type: Special,
		set:  setWire,
		show: func(s Settings) any { return s.Shape },
	},
	{
		Name:  "retry_policy",
		Group: Retries,
		Type:  Special,
		set:   setRetries,
		show:  func(s Settings) any { return s.Retries() },
	},
	{
		Name:  "retry_client_errors",
		Group: Retries,
		Brief: "4xx responses too",
		Type:  Switch,
		Label: "Retry 4xx responses too",
		Hint:  "If off, a 400 or 422 fails the delivery immediately.",
		Help:  "Whether every 4xx response is retried: ${enum}.",
	},
	{
		Name:        "expires_after_seconds",
		Group:       Retries,
		Brief:       "expires after %s s",
		Type:        Number,
		Optional:    true,
		Low:         1,
		High:        MaxExpiry,
		Range:       " seconds",
		Label:       "Expires after",
		Unit:        "seconds",
		Hint:        "What is not delivered by then is not sent anymore. Empty: it never expires. An event's own expiry goes first.",
		Flag:        "expires-after",
		Placeholder: "SECONDS",
		Help:        "Seconds after which an event that was not delivered expires, 1 to 2592000; none: never.",
		Routes:      true,
	},
	{
		Name:        "timeout_seconds",
		Group:       Limits,
		Brief:       "timeout %s s",
		Type:        Number,
		Low:         MinTimeout,
		High:        MaxTimeout,
		Range:       " seconds",
		Label:       "Timeout",
		Unit:        "seconds",
		Flag:        "timeout",
		Placeholder: "SECONDS",
		Help:        "Timeout of a request, 1 to 30 seconds.",
	},
	{
		Name:        "max_in_flight",
		Group:       Limits,
		Brief:       "%s concurrent",
		Type:        Number,
		Low:         1,
		High:        MaxInFlight,
		Range:       " requests",
		Label:       "Max concurrent requests",
		Unit:        "requests",
		Placeholder: "N",
		Help:        "Concurrent requests, 1 to 100.",
	},
	{
		Name:        "rate_limit",
		Group:       Limits,
		Brief:       "%s requests/s",
		Without:     "no rate limit",
		Type:        Number,
		Optional:    true,
		Low:         1,
		High:        MaxRate,
		Range:       " requests per second, or null for unlimited",
		Label:       "Rate limit",
		Hint:        "Empty: no limit.",
		Unit:        "requests/s",
		Placeholder: "N",
		Help:        "Requests per second; none removes the limit.",
	},
	{
		Name:     "burst",
		Group:    Limits,
		Brief:    "burst of %s",
		Type:     Number,
		Optional: true,
		Low:      1,
		High:     MaxRate,
		Range:    " requests, or null for twice the rate",
		Label:    "Burst",
		Hint:     "Empty: twice the rate.",
		Help:     "Requests that can start at once after a quiet time; none is twice the rate.",
		Unit:     "requests",
		show: func(s Settings) any {
			if n := s.EffectiveBurst(); n > 0 {
				return n
			}
			return nil
		},
	},
	{
		Name:        "batch_max_events",
		Group:       Batches,
		Brief:       "up to %s events in a request",
		Without:     "each event has its own request",
		Type:        Number,
		Optional:    true,
		Low:         2,
		High:        MaxBatchEvents,
		Range:       " events, or null for none",
		Label:       "Max events in a request",
		Hint:        "Empty: each event has its own request. Otherwise the body is an array of events.",
		Unit:        "events",
		Placeholder: "N",
		Help:        "Events in one request, 2 to 1000; none: each has its own.",
	},
	{
		Name:        "batch_max_wait_ms",
		Group:       Batches,
		Brief:       "after %s ms",
		Type:        Number,
		Optional:    true,
		Low:         0,
		High:        MaxBatchWait,
		Range:       " milliseconds",
		Label:       "Max wait for more",
		Hint:        "Empty: 1,000 ms.",
		Unit:        "ms",
		Placeholder: "MS",
		Help:        "Milliseconds that the first event of a batch waits for more, up to 60000.",
	},
	{
		Name:        "batch_max_bytes",
		Group:       Batches,
		Brief:       "up to %s bytes",
		Type:        Number,
		Optional:    true,
		Low:         MinBatchBytes,
		High:        MaxBatchBytes,
		Range:       " bytes",
		Label:       "Max body",
		Hint:        "Empty: 1,048,576 bytes. A longer event has a request of its own.",
		Unit:        "bytes",
		Placeholder: "BYTES",
		Help:        "Bytes of a batch's body, 1024 to 8388608.",
	},
	{
		Name:  "ordering",
		Group: Advanced,
		Brief: "order: %s",
		Type:  Choice,
		Options: []Option{
			{Value: "none", Label: "None: as fast as possible"},
			{Value: "key", Label: "By key: events with the same key in order"},
			{Value: "strict", Label: "Strict: all events in order"},
		},
		Label:       "Order",
		Placeholder: "ORDER",
		Help:        "Order of delivery: ${enum}.",
		Routes:      true,
	},
	{
		Name:     "payload_version",
		Group:    Advanced,
		Brief:    "payload version %s",
		Optional: true,
		Label:    "Payload version",
		Help:     "Only events of this version of their type; none is any.",
		Routes:   true,
		set: setOptional(func(s *Settings) *string { return &s.PayloadVersion },
			fault.InvalidField("payload_version", "payload_version_malformed", "A payload version must not be empty. Use null for any version.")),
	},
	{
		Name:  "accept_conflict",
		Group: Retries,
		Brief: "409 is delivered",
		Type:  Switch,
		Label: "Treat 409 as delivered",
		Hint:  "For receivers that reject duplicates with 409.",
		Help:  "Whether a 409 counts as delivered: ${enum}.",
	},
	{
		Name:    "circuit_breaker",
		Group:   Retries,
		Brief:   "circuit breaker",
		Without: "no circuit breaker",
		Type:    Switch,
		Label:   "Circuit breaker",
		Hint:    "After 10 failures in a row, deliveries wait and one probe at a time is sent. Without it, each delivery keeps to its retry schedule.",
		Help:    "Whether deliveries wait while the endpoint fails, with one probe at a time: ${enum}.",
	},
	{
		Name:    "send_traceparent",
		Group:   Advanced,
		Brief:   "trace context",
		Without: "no trace context",
		Type:    Switch,
		Label:   "Send trace context",
		Hint:    "Adds the W3C headers traceparent and tracestate to requests for events that are part of a trace.",
		Help:    "Whether requests carry the event's trace context: ${enum}.",
	},
	{
		Name:  "verification",
		Group: Signing,
		Brief: "verification: %s",
		Type:  Choice,
		Options: []Option{
			{"challenge", "Echo a challenge", "A signed POST; the response body is the challenge, as plain text or JSON."},
			{"challenge_get", "Echo a challenge by GET", "A GET with ?challenge=; the response body is the challenge."},
			{"options", "CloudEvents handshake by OPTIONS", "The response has WebHook-Allowed-Origin. WebHook-Allowed-Rate lowers the rate limit."},
			{"simple", "Any 2xx response", "For receivers that can't echo a challenge."},
		},
		Label:       "Verification",
		Placeholder: "HOW",
		Help:        "How the endpoint is verified: ${enum}.",
		Unsent:      true,
		set: func(s *Settings, raw json.RawMessage) error {
			if s.Kind.Broker() && unquote(raw) != "simple" {
				return fault.InvalidField("verification", "verification_unknown", fmt.Sprintf(
					"A %s endpoint is verified by writing a message, not with a challenge. Leave verification out.", s.Kind))
			}
			s.Verification = unquote(raw)
			return nil
		},
	},
	{
		Name:  "when_held",
		Group: Advanced,
		Brief: "when inactive: %s",
		Type:  Choice,
		Options: []Option{
			{Value: Hold, Label: "Hold: deliveries wait until the endpoint is active again"},
			{Value: Drop, Label: "Drop: no deliveries are created"},
		},
		Label:       "When inactive",
		Placeholder: "WHAT",
		Help:        "What becomes of events while the endpoint is not active: ${enum}.",
		Routes:      true,
	},
	{
		Name:  "large_payloads",
		Group: Advanced,
		Brief: "large payloads: %s",
		Type:  Choice,
		Options: []Option{
			{Value: RejectLarge, Label: "Reject: the delivery fails"},
			{Value: LinkLarge, Label: "Link: the body has a signed link to the data"},
		},
		Label:       "Large payloads",
		Hint:        "Of events above the usual limit, where this server permits them. Filters and transformations see the size of such data, not its content.",
		Placeholder: "WHAT",
		Help:        "What becomes of events whose data is too large for a request: ${enum}.",
	},
	{
		Name:  "auth",
		Group: Access,
		Type:  Special,
		set:   setAuth,
		show:  showAuth,
	},
	{
		Name:  "tls",
		Group: Access,
		Type:  Special,
		set:   setTLS,
		show:  showTLS,
	},
	{
		Name: "transformation", // on a page of its own
		Type: Special,
		set:  setTransformation,
		show: func(s Settings) any { return s.Transformation.Shown() },
	},
	{
		Name:        "custom_headers",
		Group:       Advanced,
		Brief:       "custom headers: %s",
		Type:        Pairs,
		Label:       "Custom headers",
		Hint:        "Name: value, one per line. A value shown as *** stays unchanged.",
		Placeholder: "X-Team: payments",
		Flag:        "header",
		Help:        "A custom header; repeat the flag for more. Replaces all existing headers.",
		EmptyIsNone: true,
		set:         func(*Settings, json.RawMessage) error { return nil }, // by patchHeaders, with the next one
		show:        func(s Settings) any { return s.Headers.Shown() },
	},
	{
		Name:        "sensitive_headers",
		Type:        List,
		EmptyIsNone: true,
		set:         func(*Settings, json.RawMessage) error { return nil },
		show:        func(s Settings) any { return s.Headers.Marked() },
	},
	{
		Name:        "metadata",
		Group:       Advanced,
		Brief:       "metadata: %s",
		Type:        Pairs,
		Label:       "Metadata",
		Hint:        "key: value, one per line. Visible only to you; receivers don't see it.",
		Placeholder: "customer: 42",
		Help:        "Custom metadata; repeat the flag for more. Replaces all existing entries.",
		EmptyIsNone: true,
		Unsent:      true,
		set: func(s *Settings, raw json.RawMessage) error {
			s.Metadata = map[string]string{} // the new entries replace all
			return json.Unmarshal(raw, &s.Metadata)
		},
	},
}
