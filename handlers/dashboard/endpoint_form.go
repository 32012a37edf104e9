package dashboard

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/retry"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// mostTypes bounds the event types that a form lists with checkboxes. The others can be typed.
const mostTypes = 200

func knownTypes(c *handlers.Call, q *db.Tx, limit int) (names []string, err error) {
	known, err := events.Types(c.Ctx(), q, c.Actor.Tenant, show.Range{Limit: limit, Ascending: true})
	for _, t := range known.Rows {
		names = append(names, t.Name)
	}
	return names, err
}

// formOf shows settings in the form.
func formOf(s endpoint.Settings, catalogue []string) pages.EndpointForm {
	f := pages.EndpointForm{
		Kind: string(s.Kind), Kafka: kafkaForm(s), URL: s.URL, Description: s.Description,
		All: slices.Equal(s.EventTypes, []string{"*"}), Filter: filterText(s.Filter),
		Channels: strings.Join(s.Channels, ", "), Format: string(s.Format), Prefix: s.Prefix, RetryPolicy: s.RetryPolicy,
		TypeField: string(s.TypeField), Rotation: string(s.Rotation),
		RetryJitter:       strconv.FormatFloat(endpoint.DefaultJitter, 'f', -1, 64),
		RetryClientErrors: s.RetryClientErrors, Timeout: strconv.Itoa(s.TimeoutSeconds),
		InFlight:  strconv.Itoa(s.MaxInFlight),
		RateLimit: orEmptyNumber(s.RateLimit), Burst: orEmptyNumber(s.Burst), Ordering: s.Ordering,
		PayloadVersion: s.PayloadVersion,
		AcceptConflict: s.AcceptConflict, CircuitBreaker: s.CircuitBreaker, SendTraceparent: s.SendTraceparent,
		Verification: s.Verification, WhenHeld: s.WhenHeld, SecretType: string(endpoint.HMAC), Catalogue: catalogue,
	}
	var patterns, delays, headers, metadata []string
	for key, value := range s.Metadata {
		metadata = append(metadata, key+": "+value)
	}
	slices.Sort(metadata)
	f.Metadata = strings.Join(metadata, "\n")
	for _, t := range s.EventTypes {
		if slices.Contains(catalogue, t) {
			f.Types = append(f.Types, t)
		} else if !f.All {
			patterns = append(patterns, t)
		}
	}
	if s.RetryPolicy == endpoint.Custom && len(s.RetryDelays) == 0 {
		f.RetryPolicy = retry.Once
	}
	if s.RetryJitter != nil {
		f.RetryJitter = strconv.FormatFloat(*s.RetryJitter, 'f', -1, 64)
	}
	for _, d := range s.RetryDelays {
		delays = append(delays, strconv.Itoa(d))
	}
	for name, h := range s.Headers {
		value := h.Value
		if s.Headers.Hidden(name) {
			value = endpoint.Marker
		}
		headers = append(headers, name+": "+value)
	}
	slices.Sort(headers)
	f.Patterns, f.RetryDelays, f.Headers = strings.Join(patterns, "\n"), strings.Join(delays, " "), strings.Join(headers, "\n")
	return f
}

// filled is the form as it was sent, so that the person can fix it.
func filled(in url.Values, catalogue []string, cause error) (pages.EndpointForm, error) {
	wrong, err := handlers.WrongFields(cause), handlers.NotInput(cause)
	return pages.EndpointForm{
		Kind: in.Get("kind"), URL: in.Get("url"),
		Kafka: pages.KafkaForm{
			Servers: in.Get("kafka_servers"), Topic: in.Get("kafka_topic"), TLS: in.Has("kafka_tls"), CA: in.Get("kafka_ca"), Mechanism: in.Get("kafka_mechanism"),
			Username: in.Get("kafka_username"),
		},
		Description: in.Get("description"), All: in.Get("scope") == "all", Types: in["types"], Patterns: in.Get("patterns"),
		Filter: in.Get("filter"), Channels: in.Get("channels"), Format: in.Get("format"), Prefix: in.Get("prefix"), RetryPolicy: in.Get("retry_policy"),
		RetryDelays: in.Get("retry_delays"), RetryJitter: in.Get("retry_jitter"), TypeField: in.Get("type_field"), Rotation: in.Get("rotation_signatures"),
		RetryClientErrors: in.Has("retry_client_errors"), Timeout: in.Get("timeout_seconds"),
		InFlight: in.Get("max_in_flight"), RateLimit: in.Get("rate_limit"), Burst: in.Get("burst"), Ordering: in.Get("ordering"),
		PayloadVersion: in.Get("payload_version"), AcceptConflict: in.Has("accept_conflict"), CircuitBreaker: in.Has("circuit_breaker"), SendTraceparent: in.Has("send_traceparent"),
		Verification: in.Get("verification"),
		WhenHeld:     in.Get("when_held"), SecretType: in.Get("secret_type"), Metadata: in.Get("metadata"),
		Headers: in.Get("custom_headers"), Catalogue: catalogue, Wrong: wrong,
	}, err
}

// settingsOf lays the form over settings. It leaves validation to Check: an invalid number becomes one out of its
// range.
func settingsOf(in url.Values, s endpoint.Settings) (endpoint.Settings, error) {
	s = s.Clone()
	s.Description = strings.TrimSpace(in.Get("description"))
	if s.Kind == endpoint.Kafka {
		if err := kafkaOf(in, &s); err != nil {
			return s, err
		}
	} else {
		s.URL = strings.TrimSpace(in.Get("url"))
	}
	s.EventTypes, s.Channels = typesOf(in), split(in.Get("channels"))
	wireOf(in, &s)
	if err := retriesOf(in, &s); err != nil {
		return s, err
	}
	s.RetryClientErrors, s.AcceptConflict = in.Has("retry_client_errors"), in.Has("accept_conflict")
	s.CircuitBreaker, s.SendTraceparent = in.Has("circuit_breaker"), in.Has("send_traceparent")
	s.TimeoutSeconds, s.MaxInFlight = number(in.Get("timeout_seconds")), number(in.Get("max_in_flight"))
	s.RateLimit, s.Burst = orNoNumber(in.Get("rate_limit")), orNoNumber(in.Get("burst"))
	s.PayloadVersion = strings.TrimSpace(in.Get("payload_version"))
	if in.Has("filter") { // the settings page leaves it to the filter's own
		s.Filter = filterJSON(in.Get("filter"))
	}
	if in.Has("when_held") {
		s.WhenHeld = in.Get("when_held")
	}
	var err error
	if in.Has("metadata") {
		if s.Metadata, err = metadataOf(in.Get("metadata")); err != nil {
			return s, err
		}
	}
	given, err := headersOf(in.Get("custom_headers"))
	if err != nil {
		return s, err
	}
	s.Headers, err = s.Headers.Replace(given, nil)
	return s, err
}

// wireOf reads how requests are rendered and signed. It ignores fields that the format does not have.
func wireOf(in url.Values, s *endpoint.Settings) {
	s.SetFormat(signature.Format(in.Get("format")))
	s.Prefix, s.Ordering, s.Verification = in.Get("prefix"), in.Get("ordering"), in.Get("verification")
	if s.Format == signature.XWebhook && in.Has("type_field") {
		s.TypeField = signature.TypeField(in.Get("type_field"))
	}
	if !s.Format.OneSlot() && in.Has("rotation_signatures") {
		s.Rotation = signature.Rotation(in.Get("rotation_signatures"))
	}
}

// retriesOf reads the schedule.
func retriesOf(in url.Values, s *endpoint.Settings) error {
	s.RetryPolicy, s.RetryDelays, s.RetryJitter = in.Get("retry_policy"), nil, nil
	if s.RetryPolicy != endpoint.Custom {
		return nil
	}
	for _, text := range split(in.Get("retry_delays")) {
		s.RetryDelays = append(s.RetryDelays, number(text))
	}
	if len(s.RetryDelays) == 0 {
		return fault.InvalidField("retry_policy.delays", "retry_delays_count", "Enter at least one delay, or select once for a single attempt.")
	}
	if text := strings.TrimSpace(in.Get("retry_jitter")); text != "" {
		jitter, err := strconv.ParseFloat(text, 64)
		if err != nil {
			jitter = -1 // which no schedule permits
		}
		s.RetryJitter = &jitter
	}
	return nil
}

// kafkaForm shows a topic in the form. TLS is on by default.
func kafkaForm(s endpoint.Settings) pages.KafkaForm {
	k, ok := s.Connection.(*endpoint.KafkaConnection)
	if !ok {
		return pages.KafkaForm{TLS: true}
	}
	f := pages.KafkaForm{Servers: strings.Join(k.Servers, "\n"), Topic: k.Topic, TLS: k.TLS, CA: k.CA}
	if k.SASL != nil {
		f.Mechanism, f.Username, f.PasswordIsOnRecord = k.SASL.Mechanism, k.SASL.Username, true
	}
	return f
}

// kafkaOf reads the fields of a topic.
func kafkaOf(in url.Values, s *endpoint.Settings) error {
	before, _ := s.Connection.(*endpoint.KafkaConnection)
	k := &endpoint.KafkaConnection{
		Servers: split(in.Get("kafka_servers")), Topic: strings.TrimSpace(in.Get("kafka_topic")), TLS: in.Has("kafka_tls"),
		CA: in.Get("kafka_ca"),
	}
	if mechanism := in.Get("kafka_mechanism"); mechanism != "" {
		k.SASL = &endpoint.SASL{Mechanism: mechanism, Username: in.Get("kafka_username"), Password: in.Get("kafka_password")}
	}
	s.Connection = k
	return before.Keep(k)
}

// typesOf are the checked and the typed patterns.
func typesOf(in url.Values) []string {
	if in.Get("scope") == "all" {
		return []string{"*"}
	}
	return append(slices.Clone(in["types"]), split(in.Get("patterns"))...)
}

func split(text string) []string {
	return append([]string{}, strings.FieldsFunc(text, func(r rune) bool {
		return r == ' ' || r == ',' || r == '\n' ||
			r == '\r' || r == '\t'
	})...)
}

// number reads a number. An invalid one is -1, which no setting permits.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return -1
	}
	return n
}

func orNoNumber(text string) *int {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	n := number(text)
	return &n
}

func orEmptyNumber(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// filterText is a filter as people write it: an expression without quotation marks, or a JSON object.
func filterText(saved string) string {
	var expression string
	if json.Unmarshal([]byte(saved), &expression) == nil {
		return expression
	}
	return saved
}

// filterJSON is a filter as it is saved: a text that starts with a brace is JSON, any other is an expression.
func filterJSON(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasPrefix(text, "{") {
		return text
	}
	out, err := json.Marshal(text)
	if err != nil {
		return text // a text is always JSON
	}
	return string(out)
}

// headersOf reads "Name: value", one per line.
func headersOf(text string) (map[string]*string, error) {
	pairs, ok := pairsOf(text)
	if !ok {
		return nil, fault.InvalidField("custom_headers", "custom_header_refused", "Enter one header per line, as Name: value.")
	}
	given := make(map[string]*string, len(pairs))
	for name, value := range pairs {
		given[name] = &value
	}
	return given, nil
}

// metadataOf reads "key: value", one per line.
func metadataOf(text string) (map[string]string, error) {
	pairs, ok := pairsOf(text)
	if !ok {
		return nil, fault.InvalidField("metadata", "text_malformed", "Enter one entry per line, as key: value.")
	}
	return pairs, nil
}

func pairsOf(text string) (pairs map[string]string, ok bool) {
	pairs = map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if name, value = strings.TrimSpace(name), strings.TrimSpace(value); !found || name == "" {
			return nil, false
		}
		pairs[name] = value
	}
	return pairs, true
}
