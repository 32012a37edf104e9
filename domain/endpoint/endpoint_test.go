package endpoint_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/domain/transform"
)

// good is a valid set of settings that each case spoils in one place.
func good() endpoint.Settings {
	s := endpoint.ReadDefaults(50, nil, nil).Settings
	s.URL = "https://hooks.example.com/in"
	return s
}

func number(n int) *int { return &n }

func TestValuesOutsideTheirRangeAreRefusedWithTheRange(t *testing.T) {
	t.Parallel()
	type change = func(*endpoint.Settings)
	long := func(n int) string { return strings.Repeat("a", n) }
	tests := []struct {
		name   string
		change change
		field  string // empty: accepted
		says   string // part of the detail
	}{
		{"as it comes", func(*endpoint.Settings) {}, "", ""},
		{"a kind that is none", func(s *endpoint.Settings) { s.Kind = "pigeon" }, "kind", "Use http"},
		{"rate 1", func(s *endpoint.Settings) { s.RateLimit = number(1) }, "", ""},
		{"rate 100,000", func(s *endpoint.Settings) { s.RateLimit = number(100_000) }, "", ""},
		{"rate unlimited", func(s *endpoint.Settings) { s.RateLimit = nil }, "", ""},
		{"rate 0", func(s *endpoint.Settings) { s.RateLimit = number(0) }, "rate_limit", "from 1 to 100,000"},
		{"rate 100,001", func(s *endpoint.Settings) { s.RateLimit = number(100_001) }, "rate_limit", "from 1 to 100,000"},
		{"rate of 2^40", func(s *endpoint.Settings) { s.RateLimit = number(1 << 40) }, "rate_limit", "from 1 to 100,000"},
		{"burst 1", func(s *endpoint.Settings) { s.Burst = number(1) }, "", ""},
		{"burst 0", func(s *endpoint.Settings) { s.Burst = number(0) }, "burst", "from 1 to 100,000"},
		{"burst 100,001", func(s *endpoint.Settings) { s.Burst = number(100_001) }, "burst", "from 1 to 100,000"},
		{"in flight 1", func(s *endpoint.Settings) { s.MaxInFlight = 1 }, "", ""},
		{"in flight 100", func(s *endpoint.Settings) { s.MaxInFlight = 100 }, "", ""},
		{"in flight 0", func(s *endpoint.Settings) { s.MaxInFlight = 0 }, "max_in_flight", "from 1 to 100"},
		{"in flight 101", func(s *endpoint.Settings) { s.MaxInFlight = 101 }, "max_in_flight", "from 1 to 100"},
		{"time-out 1", func(s *endpoint.Settings) { s.TimeoutSeconds = 1 }, "", ""},
		{"time-out 30", func(s *endpoint.Settings) { s.TimeoutSeconds = 30 }, "", ""},
		{"time-out 0", func(s *endpoint.Settings) { s.TimeoutSeconds = 0 }, "timeout_seconds", "from 1 to 30 seconds"},
		{"time-out 31", func(s *endpoint.Settings) { s.TimeoutSeconds = 31 }, "timeout_seconds", "from 1 to 30 seconds"},
		{"time-out below 0", func(s *endpoint.Settings) { s.TimeoutSeconds = -1 }, "timeout_seconds", "from 1 to 30 seconds"},
		{"no event types", func(s *endpoint.Settings) { s.EventTypes = nil }, "event_types", "1 to 100"},
		{"101 event types", func(s *endpoint.Settings) { s.EventTypes = numbered(101) }, "event_types", "1 to 100"},
		{"100 event types", func(s *endpoint.Settings) { s.EventTypes = numbered(100) }, "", ""},
		{"a star in the middle", func(s *endpoint.Settings) { s.EventTypes = []string{"a.*.b"} }, "event_types", "order.*"},
		{"10 channels", func(s *endpoint.Settings) { s.Channels = numbered(10) }, "", ""},
		{"11 channels", func(s *endpoint.Settings) { s.Channels = numbered(11) }, "channels", "at most 10"},
		{"a channel with a space", func(s *endpoint.Settings) { s.Channels = []string{"a b"} }, "channels", "1 to 128"},
		{"an expression", func(s *endpoint.Settings) { s.Filter = `"data.amount > 100"` }, "", ""},
		{"a broken expression", func(s *endpoint.Settings) { s.Filter = `"data.amount >"` }, "filter", ""},
		{"a filter that is a number", func(s *endpoint.Settings) { s.Filter = `7` }, "filter", "string"},
		{"1,000 characters", func(s *endpoint.Settings) { s.Description = strings.Repeat("é", 1000) }, "", ""},
		{"1,001 characters", func(s *endpoint.Settings) { s.Description = long(1001) }, "description", "1,000 characters"},
		{"a NUL", func(s *endpoint.Settings) { s.Description = "a\x00b" }, "description", "control character"},
		{"a line break", func(s *endpoint.Settings) { s.Description = "a\nb" }, "", ""},
		{"another format", func(s *endpoint.Settings) { s.Format = "jws" }, "format", "standard, x-webhook"},
		{"a prefix with a space", func(s *endpoint.Settings) { s.Prefix = "A B" }, "prefix", "letters"},
		{"no prefix", func(s *endpoint.Settings) { s.Prefix = "" }, "prefix", "1 to 40"},
		{"a named schedule", func(s *endpoint.Settings) { s.RetryPolicy = "quick" }, "", ""},
		{"an unknown schedule", func(s *endpoint.Settings) { s.RetryPolicy = "never" }, "retry_policy.name", "standard"},
		{"a named schedule with delays", func(s *endpoint.Settings) { s.RetryDelays = []int{5} }, "retry_policy.delays", "custom"},
		{"20 delays", func(s *endpoint.Settings) { custom(s, slices.Repeat([]int{86400}, 20)...) }, "", ""},
		{"21 delays", func(s *endpoint.Settings) { custom(s, slices.Repeat([]int{1}, 21)...) }, "retry_policy.delays", "at most 20"},
		{"no delays: a single attempt", func(s *endpoint.Settings) { custom(s) }, "", ""},
		{"a jitter of 1", func(s *endpoint.Settings) { custom(s, 5); s.RetryJitter = fraction(1) }, "", ""},
		{"a jitter over 1", func(s *endpoint.Settings) { custom(s, 5); s.RetryJitter = fraction(1.01) }, "retry_policy.jitter", "from 0 to 1"},
		{"a named schedule with a jitter", func(s *endpoint.Settings) { s.RetryJitter = fraction(0.1) }, "retry_policy.jitter", "custom"},
		{"a type field", func(s *endpoint.Settings) { s.Format, s.TypeField = "x-webhook", "both" }, "", ""},
		{"a type field of another format", func(s *endpoint.Settings) { s.TypeField = "event" }, "type_field", "the format x-webhook"},
		{"an unknown type field", func(s *endpoint.Settings) { s.Format, s.TypeField = "x-webhook", "kind" }, "type_field", "type, event or both"},
		{"one signature", func(s *endpoint.Settings) { s.Rotation = "one" }, "", ""},
		{"several signatures", func(s *endpoint.Settings) { s.Format, s.Rotation = "x-webhook", "all" }, "", ""},
		{"several signatures without room", func(s *endpoint.Settings) { s.Format, s.Rotation = "raw", "all" }, "rotation_signatures", "one signature"},
		{"an unknown rotation", func(s *endpoint.Settings) { s.Rotation = "newest" }, "rotation_signatures", "one or all"},
		{"a public-key signature", func(s *endpoint.Settings) { s.Public = endpoint.BothPublic }, "", ""},
		{"an unknown public-key signature", func(s *endpoint.Settings) { s.Public = "jws" }, "public_signature", "none, rfc9421, v1a or both"},
		{"a public-key signature of a feed", func(s *endpoint.Settings) { s.Kind, s.URL, s.Public = endpoint.Feed, "", endpoint.V1a }, "", ""},
		{"a signed request of a feed", func(s *endpoint.Settings) { s.Kind, s.URL, s.Public = endpoint.Feed, "", endpoint.BothPublic }, "public_signature", "v1a"},
		{"v1a of a feed in another format", func(s *endpoint.Settings) {
			s.Kind, s.URL, s.Format, s.Public = endpoint.Feed, "", "raw", endpoint.V1a
		}, "public_signature", "standard"},
		{"v1a in another format", func(s *endpoint.Settings) { s.Format, s.Public = "raw", endpoint.V1a }, "public_signature", "rfc9421"},
		{"rfc9421 in another format", func(s *endpoint.Settings) { s.Format, s.Public = "raw", endpoint.RFC9421 }, "", ""},
		{"a header that rfc9421 needs", func(s *endpoint.Settings) {
			s.Public, s.Shape = endpoint.RFC9421, &signature.Shape{HeaderNames: map[string]string{"signature": "Signature"}}
		}, "public_signature", "the header Signature"},
		{"a delay of 0", func(s *endpoint.Settings) { custom(s, 0) }, "retry_policy.delays", "1 second to 24 hours"},
		{"a delay of a day and a second", func(s *endpoint.Settings) { custom(s, 86401) }, "retry_policy.delays", "1 second to 24 hours"},
		{"a delay that overflows", func(s *endpoint.Settings) { custom(s, 1<<62) }, "retry_policy.delays", "1 second to 24 hours"},
		{"another ordering", func(s *endpoint.Settings) { s.Ordering = "lifo" }, "ordering", "none, key or strict"},
		{"another verification", func(s *endpoint.Settings) { s.Verification = "trust" }, "verification", "options or simple"},
		{"a version", func(s *endpoint.Settings) { s.PayloadVersion = "2026-01-31" }, "", ""},
		{"a version with a space", func(s *endpoint.Settings) { s.PayloadVersion = "1 2" }, "payload_version", "1 to 64"},
		{"a version of 65", func(s *endpoint.Settings) { s.PayloadVersion = long(65) }, "payload_version", "1 to 64"},
		{"50 entries", func(s *endpoint.Settings) { s.Metadata = entries(50) }, "", ""},
		{"51 entries", func(s *endpoint.Settings) { s.Metadata = entries(51) }, "metadata", "at most 50"},
		{"a long entry", func(s *endpoint.Settings) { s.Metadata = map[string]string{"a": long(501)} }, "metadata.a", "500 characters"},
		{"a long key", func(s *endpoint.Settings) { s.Metadata = map[string]string{long(65): "a"} }, "metadata", "1 to 64"},
		{"an entry with a NUL", func(s *endpoint.Settings) { s.Metadata = map[string]string{"a": "\x00"} }, "metadata.a", "control character"},
		{"a private address", func(s *endpoint.Settings) { s.URL = "https://10.0.0.1/" }, "url", "public"},
		{"plain http", func(s *endpoint.Settings) { s.URL = "http://example.com/" }, "url", "https"},
		{"no URL", func(s *endpoint.Settings) { s.URL = "" }, "url", "missing"},
		{"a header", func(s *endpoint.Settings) { header(s, "X-Team", "blue") }, "", ""},
		{"a line break in a header", func(s *endpoint.Settings) { header(s, "X-Team", "a\r\nHost: b") }, "custom_headers.X-Team", "line break"},
		{"Host", func(s *endpoint.Settings) { header(s, "Host", "b") }, "custom_headers.Host", "Choose another"},
		{"a header of the format", func(s *endpoint.Settings) { header(s, "Webhook-Id", "b") }, "custom_headers.Webhook-Id", "Choose another"},
		{"a header of another format", func(s *endpoint.Settings) { header(s, "Acme-Event-Id", "b") }, "custom_headers.Acme-Event-Id", "wire format"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := good()
			tt.change(&s)
			_, err := s.Check(egress.Policy{})
			if tt.field == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			f := fault.As(err)
			if f == nil || len(f.Fields) != 1 || f.Fields[0].Name != tt.field || !strings.Contains(f.Fields[0].Detail, tt.says) {
				t.Fatalf("want a refusal of %s that says %q, got %+v", tt.field, tt.says, err)
			}
		})
	}
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("n%d", i)
	}
	return out
}

func entries(n int) map[string]string {
	out := map[string]string{}
	for _, name := range numbered(n) {
		out[name] = "x"
	}
	return out
}

func fraction(f float64) *float64 { return &f }

func custom(s *endpoint.Settings, delays ...int) {
	s.RetryPolicy, s.RetryDelays = endpoint.Custom, delays
}

func header(s *endpoint.Settings, name, value string) {
	s.Headers = endpoint.Headers{name: {Value: value}}
}

func TestEveryWrongFieldIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	s := good()
	s.URL, s.TimeoutSeconds, s.Ordering = "ftp://x", 99, "random"
	_, err := s.Check(egress.Policy{})
	var names []string
	for _, f := range fault.As(err).Fields {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"url", "timeout_seconds", "ordering"}) {
		t.Errorf("got %v", names)
	}
}

func TestSettingsAreKeptInTheirNormalForm(t *testing.T) {
	t.Parallel()
	s := good()
	s.URL = "HTTPS://Hooks.Example.com/in"
	s.EventTypes = []string{"b", "a", "b"}
	s.Channels = []string{"x", "x"}
	s.Filter = `{ "order.status" : "paid" }`
	got, err := s.Check(egress.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if got.URL != "https://hooks.example.com/in" || !slices.Equal(got.EventTypes, []string{"b", "a"}) ||
		!slices.Equal(got.Channels, []string{"x"}) || got.Filter != `{"order.status":"paid"}` {
		t.Errorf("got %+v", got)
	}
	for _, none := range []string{"", "null", `""`, "{}"} {
		s.Filter = none
		if got, err := s.Check(egress.Policy{}); err != nil || got.Filter != "" {
			t.Errorf("filter %q became %q, %v", none, got.Filter, err)
		}
	}
}

func TestDefaultsAreThoseOfTheDesignUnlessSettingsSayOtherwise(t *testing.T) {
	t.Parallel()
	d := endpoint.ReadDefaults(50, []byte(`{}`), nil)
	s := d.Settings
	if d.MaxEndpoints != 50 || *s.RateLimit != 50 || s.Burst != nil || s.EffectiveBurst() != 100 ||
		s.MaxInFlight != 5 ||
		s.TimeoutSeconds != 15 || s.RetryPolicy != "standard" || s.Format != "standard" || s.Ordering != "none" || s.Verification != "challenge" {
		t.Errorf("got %+v, %+v", d, s)
	}
	d = endpoint.ReadDefaults(
		50,
		[]byte(`{"endpoints":{"max":7,"rate_limit":9,"timeout_seconds":3}}`),
		[]byte(`{"endpoints":{"max":8,"rate_limit":null,"retry_policy":"quick","format":"t-v1","prefix":"Acme"}}`),
	)
	s = d.Settings
	if d.MaxEndpoints != 8 || s.RateLimit != nil || s.TimeoutSeconds != 3 || s.RetryPolicy != "quick" || s.Format != "t-v1" ||
		s.Prefix != "Acme" {
		t.Errorf("got %+v, %+v", d, s)
	}
	if d := endpoint.ReadDefaults(50, []byte(`nonsense`), []byte(`{"endpoints":3}`)); d.MaxEndpoints != 50 {
		t.Errorf("settings that can't be read changed something: %+v", d)
	}
}

func TestBurstIsTwiceTheRateWithinItsRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rate, burst *int
		want        int
	}{{number(50), nil, 100}, {number(100_000), nil, 100_000}, {number(50), number(3), 3}, {nil, number(3), 0}} {
		s := good()
		s.RateLimit, s.Burst = tt.rate, tt.burst
		if got := s.EffectiveBurst(); got != tt.want {
			t.Errorf("got %d, want %d", got, tt.want)
		}
	}
}

func TestStatesChangeAsTheDesignSays(t *testing.T) {
	t.Parallel()
	type outcome struct {
		to     endpoint.Status
		verify bool
		code   string
	}
	want := map[string]map[endpoint.Status]outcome{
		"pause": {
			endpoint.Unverified: {code: "endpoint_unverified"},
			endpoint.Active:     {to: endpoint.Paused},
			endpoint.Paused:     {to: endpoint.Paused},
			endpoint.Disabled:   {code: "endpoint_disabled"},
		},
		"resume": {
			endpoint.Unverified: {code: "endpoint_unverified"},
			endpoint.Active:     {to: endpoint.Active},
			endpoint.Paused:     {to: endpoint.Active},
			endpoint.Disabled:   {to: endpoint.Disabled, verify: true},
		},
		"test": {
			endpoint.Unverified: {code: "endpoint_not_active"},
			endpoint.Active:     {},
			endpoint.Paused:     {code: "endpoint_not_active"},
			endpoint.Disabled:   {code: "endpoint_not_active"},
		},
	}
	do := map[string]func(endpoint.Status) (endpoint.Change, error){
		"pause":  endpoint.Pause,
		"resume": endpoint.Resume,
		"test":   func(s endpoint.Status) (endpoint.Change, error) { return endpoint.Change{}, endpoint.Test(s) },
	}
	for action, states := range want {
		for _, from := range endpoint.Statuses() {
			w := states[from]
			got, err := do[action](from)
			switch {
			case w.code == "" && (err != nil || got != endpoint.Change{To: w.to, Verify: w.verify}):
				t.Errorf("%s while %s: got %+v, %v", action, from, got, err)
			case w.code != "" && (!fault.Is(err, w.code) || fault.As(err).Kind != fault.Conflict ||
				fault.As(err).Fields[0].Code != string(from)):
				t.Errorf("%s while %s: want %s with the state, got %v", action, from, w.code, err)
			}
		}
	}
}

func TestHiddenHeadersAreKeptByMarkerAndNeverUnhidden(t *testing.T) {
	t.Parallel()
	stored := endpoint.Headers{"X-Team": {Value: "blue"}, "Authorization": {Value: "Bearer s3cret"}, "X-Odd": {Value: "hush", Sensitive: true}}
	text := func(s string) *string { return &s }
	tests := []struct {
		name      string
		given     map[string]*string
		sensitive []string
		want      endpoint.Headers // nil: refused
	}{
		{
			"markers keep",
			map[string]*string{"X-Team": text("red"), "Authorization": text("***"), "X-Odd": nil},
			nil,
			endpoint.Headers{"X-Team": {Value: "red"}, "Authorization": {Value: "Bearer s3cret"}, "X-Odd": {Value: "hush", Sensitive: true}},
		},
		{"what is left out goes", map[string]*string{"X-Team": text("red")}, nil, endpoint.Headers{"X-Team": {Value: "red"}}},
		{
			"a kept value can't be shown by unmarking it",
			map[string]*string{"X-Odd": nil},
			[]string{},
			endpoint.Headers{"X-Odd": {Value: "hush", Sensitive: true}},
		},
		{"a new value may be shown", map[string]*string{"X-Odd": text("loud")}, []string{}, endpoint.Headers{"X-Odd": {Value: "loud"}}},
		{"a new value stays marked", map[string]*string{"X-Odd": text("psst")}, nil, endpoint.Headers{"X-Odd": {Value: "psst", Sensitive: true}}},
		{"marking", map[string]*string{"X-Team": nil}, []string{"X-Team"}, endpoint.Headers{"X-Team": {Value: "blue", Sensitive: true}}},
		{"nothing to keep", map[string]*string{"X-New": nil}, nil, nil},
		{"marking what is not there", map[string]*string{"X-Team": nil}, []string{"X-New"}, nil},
		{"none", map[string]*string{}, nil, endpoint.Headers{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := stored.Replace(tt.given, tt.sensitive)
			if tt.want == nil {
				if !fault.Is(err, "custom_header_unknown") {
					t.Errorf("want a refusal, got %v, %v", got, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
	for name, hidden := range map[string]bool{"X-Team": false, "Authorization": true, "X-Odd": true} {
		if stored.Hidden(name) != hidden {
			t.Errorf("%s hidden: %t", name, !hidden)
		}
	}
	back, err := endpoint.DecodeHeaders(stored.Encode(), stored.Marked())
	if err != nil || !reflect.DeepEqual(back, stored) {
		t.Errorf("stored and read back: %+v, %v", back, err)
	}
}

func TestSecretsFitTheirFormatAndNeverPrint(t *testing.T) {
	t.Parallel()
	for _, f := range signature.Formats() {
		s, err := endpoint.NewSecret(f, endpoint.HMAC, [32]byte{1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := signature.ParseKey(f, s.Text); err != nil || s.Public != "" || len(s.Hint) != 4 ||
			!strings.Contains(s.Text, s.Hint) {
			t.Errorf("%s: %v, hint %q", f, err, s.Hint)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if printed := fmt.Sprintf(verb, s); printed != "redacted" {
				t.Errorf("printed as %s", printed)
			}
		}
		pair, err := endpoint.NewSecret(f, endpoint.Ed25519, [32]byte{1})
		if f == signature.Standard && (err != nil || !strings.HasPrefix(pair.Public, "whpk_")) {
			t.Errorf("no key pair: %v", err)
		}
		if f != signature.Standard && !fault.Is(err, "secret_type_refused") {
			t.Errorf("%s took a key pair: %v", f, err)
		}
	}
	short, err := endpoint.ImportSecret(signature.Wire{Format: signature.Raw}, "hunter2")
	if err != nil || short.Hint != "" {
		t.Errorf("a short secret: hint %q, %v", short.Hint, err)
	}
	if _, err := endpoint.ImportSecret(signature.Wire{Format: signature.Standard}, "hunter2"); !fault.Is(err, "secret_refused") ||
		strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestAFormatIsTakenOnlyWithSecretsThatCanSignInIt(t *testing.T) {
	t.Parallel()
	hmac, _ := endpoint.NewSecret(signature.Standard, endpoint.HMAC, [32]byte{1})
	pair, _ := endpoint.NewSecret(signature.Standard, endpoint.Ed25519, [32]byte{1})
	own, _ := endpoint.ImportSecret(signature.Wire{Format: signature.Raw}, "hunter2")
	for _, f := range signature.Formats() {
		if err := endpoint.CheckFormat(signature.Wire{Format: f}, hmac); err != nil {
			t.Errorf("%s with whsec_: %v", f, err)
		}
		if err := endpoint.CheckFormat(signature.Wire{Format: f}, pair); (err == nil) != (f == signature.Standard) {
			t.Errorf("%s with a key pair: %v", f, err)
		}
		if err := endpoint.CheckFormat(signature.Wire{Format: f}, own); (err == nil) != (f != signature.Standard) {
			t.Errorf("%s with an imported text: %v", f, err)
		}
	}
}

func TestOverlapAndNumberOfSecretsAreBounded(t *testing.T) {
	t.Parallel()
	for seconds, ok := range map[int]bool{0: true, 86400: true, 604800: true, -1: false, 604801: false} {
		err := endpoint.CheckOverlap(seconds)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "604,800 (7 days)") {
			t.Errorf("%d: %v", seconds, err)
		}
	}
	if endpoint.CheckLive(9) != nil || !fault.Is(endpoint.CheckLive(10), "secrets_limit") {
		t.Error("ten live secrets are the most")
	}
}

func TestTheSlotStaysWithItsSecretWhileItLives(t *testing.T) {
	t.Parallel()
	live := []id.UUID{{3}, {2}, {1}}
	gone := id.UUID{9}
	if endpoint.Slot(live, &live[2]) != 2 || endpoint.Slot(live, &gone) != 0 || endpoint.Slot(live, nil) != 0 {
		t.Error("the chosen secret signs while it is live, else the newest")
	}
}

// place is a connection that leads somewhere.
type place string

func (p place) Place() string              { return string(p) }
func (p place) Clone() endpoint.Connection { return p }

func TestTheURLOfAnInboxStaysAndNothingBecomesOne(t *testing.T) {
	t.Parallel()
	box := good()
	box.Kind, box.URL = endpoint.Inbox, "http://127.0.0.1:8080/inbox/token"
	if _, err := box.Check(egress.Policy{}); err != nil {
		t.Errorf("its own URL: %v", err)
	}
	elsewhere, plain := box.Clone(), good()
	elsewhere.URL = plain.URL
	same := box.Clone()
	same.Description = "mine"
	for _, c := range []struct {
		before, after endpoint.Settings
		ok            bool
	}{{box, same, true}, {box, elsewhere, false}, {box, plain, false}, {plain, box, false}, {plain, good(), true}} {
		if err := endpoint.CheckURLStays(c.before, c.after); (err == nil) != c.ok {
			t.Errorf("%s to %s: %v", c.before.URL, c.after.URL, err)
		}
	}
	plain.URL = box.URL
	if _, err := plain.Check(egress.Policy{}); err == nil {
		t.Error("an ordinary endpoint has the URL of an inbox on loopback")
	}
}

func TestDiffNamesEveryFieldThatChanges(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*endpoint.Settings){
		"url":                   func(s *endpoint.Settings) { s.URL += "x" },
		"description":           func(s *endpoint.Settings) { s.Description = "x" },
		"external_id":           func(s *endpoint.Settings) { s.ExternalID = "x" },
		"event_types":           func(s *endpoint.Settings) { s.EventTypes = []string{"a"} },
		"filter":                func(s *endpoint.Settings) { s.Filter = `"true"` },
		"channels":              func(s *endpoint.Settings) { s.Channels = []string{"a"} },
		"format":                func(s *endpoint.Settings) { s.Format = "raw" },
		"prefix":                func(s *endpoint.Settings) { s.Prefix = "A" },
		"type_field":            func(s *endpoint.Settings) { s.TypeField = "both" },
		"rotation_signatures":   func(s *endpoint.Settings) { s.Rotation = "one" },
		"public_signature":      func(s *endpoint.Settings) { s.Public = endpoint.RFC9421 },
		"wire":                  func(s *endpoint.Settings) { s.Shape = &signature.Shape{Body: "payload"} },
		"retry_policy":          func(s *endpoint.Settings) { custom(s, 5) },
		"retry_client_errors":   func(s *endpoint.Settings) { s.RetryClientErrors = true },
		"expires_after_seconds": func(s *endpoint.Settings) { s.ExpiresAfter = new(600) },
		"batch_max_events":      func(s *endpoint.Settings) { s.BatchEvents = new(100) },
		"batch_max_wait_ms":     func(s *endpoint.Settings) { s.BatchWait = new(250) },
		"batch_max_bytes":       func(s *endpoint.Settings) { s.BatchBytes = new(65536) },
		"timeout_seconds":       func(s *endpoint.Settings) { s.TimeoutSeconds = 3 },
		"max_in_flight":         func(s *endpoint.Settings) { s.MaxInFlight = 3 },
		"rate_limit":            func(s *endpoint.Settings) { s.RateLimit = nil },
		"burst":                 func(s *endpoint.Settings) { s.Burst = number(3) },
		"ordering":              func(s *endpoint.Settings) { s.Ordering = "key" },
		"payload_version":       func(s *endpoint.Settings) { s.PayloadVersion = "1" },
		"accept_conflict":       func(s *endpoint.Settings) { s.AcceptConflict = true },
		"verification":          func(s *endpoint.Settings) { s.Verification = "simple" },
		"circuit_breaker":       func(s *endpoint.Settings) { s.CircuitBreaker = !s.CircuitBreaker },
		"send_traceparent":      func(s *endpoint.Settings) { s.SendTraceparent = !s.SendTraceparent },
		"when_held":             func(s *endpoint.Settings) { s.WhenHeld = endpoint.Drop },
		"large_payloads":        func(s *endpoint.Settings) { s.LargePayloads = endpoint.LinkLarge },
		"kind":                  func(s *endpoint.Settings) { s.Kind = "pigeon" },
		"kafka":                 func(s *endpoint.Settings) { s.Connection = place("x") },
		"rabbitmq":              func(s *endpoint.Settings) { s.Connection = place("x") },
		"auth":                  func(s *endpoint.Settings) { s.Auth = &endpoint.Auth{Type: endpoint.Bearer, Secret: "x"} },
		"tls":                   func(s *endpoint.Settings) { s.TLS = &endpoint.ClientTLS{CA: "x"} },
		"sqs":                   func(s *endpoint.Settings) { s.Connection = place("x") },
		"s3":                    func(s *endpoint.Settings) { s.Connection = place("x") },
		"transformation": func(s *endpoint.Settings) {
			s.Transformation = &transform.Transformation{Kind: transform.CEL, Expression: "data"}
		},
		"custom_headers": func(s *endpoint.Settings) { header(s, "A", "b") },
		"metadata":       func(s *endpoint.Settings) { s.Metadata = entries(1) },
	}
	// Four fields make one name: a policy, its delays, their jitter and its spread. Two are wire: the shape and its
	// secret. One field is the connection of each kind of broker.
	if fields := reflect.TypeFor[endpoint.Settings]().NumField(); fields != len(changes)+1 {
		t.Errorf("%d fields, %d cases: a field is not tried", fields, len(changes))
	}
	for name, change := range changes {
		before := good()
		before.Kind = cmp.Or(map[string]endpoint.Kind{"kafka": endpoint.Kafka, "rabbitmq": endpoint.RabbitMQ, "sqs": endpoint.SQS, "s3": endpoint.S3}[name], before.Kind)
		after := before.Clone()
		change(&after)
		if got := after.Diff(before); !slices.Equal(got, []string{name}) {
			t.Errorf("changing %s: got %v", name, got)
		}
		if was := good(); before.Kind == was.Kind && before.Diff(was) != nil {
			t.Errorf("changing %s reached the original", name)
		}
	}
}

func TestTheLimitOfEndpointsIsSaidInWordsThatCount(t *testing.T) {
	t.Parallel()
	if err := endpoint.CheckRoom(1, 1); err == nil || !strings.Contains(err.Error(), "can have 1 endpoint and has 1.") {
		t.Errorf("%v", err)
	}
	if endpoint.CheckRoom(0, 1) != nil {
		t.Error("the first one is refused")
	}
}

func TestOneRuleDecidesHeaderNamesWhereverATenantChoosesThem(t *testing.T) {
	t.Parallel()
	template := &signature.Template{Value: "{hex}", Content: "{body}"}
	custom := func(s *endpoint.Settings, name string) { header(s, name, "1") }
	named := func(role string) func(*endpoint.Settings, string) {
		return func(s *endpoint.Settings, name string) {
			s.Shape = &signature.Shape{HeaderNames: map[string]string{role: name}}
		}
	}
	also := func(s *endpoint.Settings, name string) {
		s.Shape = &signature.Shape{AlsoSign: &signature.AlsoSign{
			Format:      signature.Templated,
			Prefix:      "Acme",
			Signature:   template,
			HeaderNames: map[string]string{"event": name},
		}}
	}
	places := map[string]func(*endpoint.Settings, string){
		"id":        named("id"),
		"event":     named("event"),
		"timestamp": named("timestamp"),
		"signature": named("signature"),
		"also_sign": also,
	}
	refused := func(set func(*endpoint.Settings, string), name string) bool {
		s := good()
		set(&s, name)
		_, err := s.Check(egress.Policy{})
		return err != nil
	}
	for _, name := range []string{
		"Connection", "Transfer-Encoding", "Host", "Content-Type", "Set-Cookie", "Range", "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Client-Cert", "X-Real-IP",
		"True-Client-IP", "CF-Connecting-IP", "Metadata-Flavor", "X-aws-ec2-metadata-token-ttl-seconds", "X-Amz-Date", "X-Google-Metadata-Request", "X-Envoy-Original-Path",
		"X-Upstream-Https-Proxy", "X-Smokescreen-Role", "Posthorn-Passage", "posthorn-home",
	} {
		if !refused(custom, name) {
			t.Errorf("%s is a custom header", name)
		}
		for place, set := range places {
			if !refused(set, name) {
				t.Errorf("%s is the header of %s", name, place)
			}
		}
	}
	for _, name := range []string{"X-Acme-Mark", "Svix-Id", "X-Hub-Signature-256"} {
		for place, set := range places {
			if refused(set, name) {
				t.Errorf("%s is refused as the header of %s", name, place)
			}
		}
	}
	for _, name := range []string{"Webhook-Mark", "X-Delivery-Id", "Acme-Signature"} { // a format's own names
		if !refused(custom, name) || refused(named("id"), name) {
			t.Errorf("%s: a custom header, or not a name of a format", name)
		}
	}
	prefix := func(s *endpoint.Settings, p string) { s.Shape = &signature.Shape{HeaderPrefix: p} }
	alsoPrefix := func(s *endpoint.Settings, p string) {
		s.Shape = &signature.Shape{AlsoSign: &signature.AlsoSign{Format: signature.Standard, HeaderPrefix: p}}
	}
	plain := func(s *endpoint.Settings, p string) { s.Prefix = strings.TrimSuffix(p, "-") }
	for _, p := range []string{"X-Forwarded-", "X-aws-ec2-metadata-", "Metadata-", "posthorn-"} {
		for place, set := range map[string]func(*endpoint.Settings, string){"header_prefix": prefix, "also_sign.header_prefix": alsoPrefix, "prefix": plain} {
			if !refused(set, p) {
				t.Errorf("%s is a %s", p, place)
			}
		}
	}
	for _, set := range []func(*endpoint.Settings, string){prefix, alsoPrefix, plain} {
		if refused(set, "X-Acme-") {
			t.Error("an ordinary prefix is refused")
		}
	}
}
