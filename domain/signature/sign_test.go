package signature_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/signature"
)

var (
	createdAt  = time.Date(2026, time.March, 5, 12, 0, 0, 123_999_999, time.UTC)
	occurredAt = time.Date(2026, time.March, 5, 11, 0, 0, 0, time.FixedZone("west", -5*60*60))
	sentAt     = time.Date(2026, time.March, 5, 12, 0, 1, 500_000_000, time.FixedZone("east", 3*60*60))
)

func message() signature.Message {
	return signature.Message{
		EventID:    "evt_01",
		DeliveryID: "dlv_02",
		EndpointID: "ep_03",
		Type:       "order.completed",
		CreatedAt:  createdAt,
		Data:       []byte(`{"a":1, "a":12345678901234567890,"html":"<&>"}`),
	}
}

func TestBodiesHaveTheShapeOfTheirFormat(t *testing.T) {
	t.Parallel()
	const data = `{"a":1, "a":12345678901234567890,"html":"<&>"}`
	plain, full := message(), message()
	full.OccurredAt, full.Version = occurredAt, "2026-01"
	tests := []struct {
		format      signature.Format
		plain, full string
	}{
		{
			signature.Standard,
			`{"id":"evt_01","type":"order.completed","timestamp":"2026-03-05T12:00:00.123Z","data":` + data + `}`,
			`{"id":"evt_01","type":"order.completed","timestamp":"2026-03-05T16:00:00.000Z","version":"2026-01","data":` + data + `}`,
		},
		{
			signature.XWebhook,
			`{"id":"evt_01","type":"order.completed","created_at":"2026-03-05T12:00:00.123Z","data":` + data + `}`,
			`{"id":"evt_01","type":"order.completed","created_at":"2026-03-05T12:00:00.123Z","version":"2026-01","data":` + data + `}`,
		},
		{
			signature.TV1,
			`{"id":"evt_01","type":"order.completed","timestamp":"2026-03-05T12:00:00.123Z","data":` + data + `}`,
			`{"id":"evt_01","type":"order.completed","timestamp":"2026-03-05T16:00:00.000Z","version":"2026-01","data":` + data + `}`,
		},
		{
			signature.BodyHex,
			`{"event":"order.completed","timestamp":"2026-03-05T12:00:00.123Z","data":` + data + `}`,
			`{"event":"order.completed","timestamp":"2026-03-05T16:00:00.000Z","version":"2026-01","data":` + data + `}`,
		},
		{signature.Raw, data, data},
	}
	if len(tests) != len(signature.Formats()) {
		t.Fatal("a format is missing here")
	}
	for _, tt := range tests {
		if got := string(signature.AppendBody(nil, tt.format, plain)); got != tt.plain {
			t.Errorf("%s:\n got %s\nwant %s", tt.format, got, tt.plain)
		}
		if got := string(signature.AppendBody([]byte("kept"), tt.format, full)); got != "kept"+tt.full {
			t.Errorf("%s:\n got %s\nwant %s", tt.format, got, "kept"+tt.full)
		}
	}
}

func TestAnEnvelopeIsValidJSONWhateverItsNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := message()
		m.Type, m.EventID, m.Version = rapid.String().Draw(t, "type"), rapid.String().Draw(t, "id"), rapid.String().Draw(t, "version")
		m.Data = []byte(rapid.SampledFrom([]string{"", "null", "{}", `"x"`, "1e400"}).Draw(t, "data"))
		for _, f := range signature.Formats()[:4] {
			var got struct{ ID, Type, Event, Version string }
			body := signature.AppendBody(nil, f, m)
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatalf("%s: %v in %s", f, err, body)
			}
			id := m.EventID
			if f == signature.BodyHex {
				id, got.Type = "", got.Event
			}
			if got.ID != id || got.Type != m.Type || got.Version != m.Version {
				t.Fatalf("%s: %+v from %s", f, got, body)
			}
		}
	})
	broken := message()
	broken.Type = "a\xffb"
	if body := signature.AppendBody(nil, signature.Standard, broken); !json.Valid(body) ||
		!bytes.Contains(body, []byte("a\ufffdb")) {
		t.Errorf("bytes that are no UTF-8 come out as %s", body)
	}
}

const (
	plainSecret = "an-imported-secret"
	oldSecret   = "the-one-before"
)

func TestEachFormatSetsItsHeadersInItsOwnSpelling(t *testing.T) {
	t.Parallel()
	const iso, unix = "2026-03-05T09:00:01.500Z", "1772701201"
	tests := []struct {
		format signature.Format
		prefix string
		want   []string // name and value; "*" is a signature
	}{
		{signature.Standard, "", []string{
			"webhook-id", "evt_01", "webhook-timestamp", unix, "webhook-signature", "*", "webhook-attempt", "2", "webhook-replayed", "true",
		}},
		{signature.Standard, "Acme", []string{
			"webhook-id", "evt_01", "webhook-timestamp", unix, "webhook-signature", "*", "webhook-attempt", "2", "webhook-replayed", "true",
		}},
		{signature.XWebhook, "", []string{
			"X-Webhook-Id", "evt_01", "X-Delivery-Id", "dlv_02", "X-Webhook-Timestamp", unix, "X-Webhook-Signature", "*",
			"X-Webhook-Attempt", "2", "X-Webhook-Replayed", "true",
		}},
		{signature.XWebhook, "Acme", []string{
			"X-Webhook-Id", "evt_01", "X-Delivery-Id", "dlv_02", "X-Webhook-Timestamp", unix, "X-Webhook-Signature", "*",
			"X-Acme-Attempt", "2", "X-Acme-Replayed", "true",
		}},
		{signature.TV1, "", []string{
			"Webhook-Event-Id", "evt_01", "Webhook-Event-Type", "order.completed", "Webhook-Webhook-Id", "ep_03",
			"Webhook-Signature", "*", "X-Webhook-Attempt", "2", "X-Webhook-Replayed", "true",
		}},
		{signature.TV1, "Acme", []string{
			"Acme-Event-Id", "evt_01", "Acme-Event-Type", "order.completed", "Acme-Webhook-Id", "ep_03",
			"Acme-Signature", "*", "X-Acme-Attempt", "2", "X-Acme-Replayed", "true",
		}},
		{signature.BodyHex, "", []string{
			"X-Webhook-Event-Id", "evt_01", "X-Webhook-Event", "order.completed", "X-Webhook-Timestamp", iso, "X-Webhook-Signature", "*",
			"X-Webhook-Retry-Attempt", "2", "X-Webhook-Attempt", "2", "X-Webhook-Retry", "true", "X-Webhook-Replayed", "true",
		}},
		{signature.BodyHex, "Acme", []string{
			"X-Acme-Event-Id", "evt_01", "X-Acme-Event", "order.completed", "X-Acme-Timestamp", iso, "X-Acme-Signature", "*",
			"X-Acme-Retry-Attempt", "2", "X-Acme-Attempt", "2", "X-Acme-Retry", "true", "X-Acme-Replayed", "true",
		}},
		{signature.Raw, "Acme", []string{
			"X-Acme-Event-Id", "evt_01", "X-Acme-Event", "order.completed", "X-Acme-Delivery", "dlv_02", "X-Acme-Timestamp", unix,
			"X-Acme-Signature", "*", "X-Acme-Attempt", "2", "X-Acme-Replayed", "true",
		}},
	}
	for _, tt := range tests {
		t.Run(string(tt.format)+tt.prefix, func(t *testing.T) {
			t.Parallel()
			secret := plainSecret
			if tt.format == signature.Standard {
				secret = signature.NewSecret([32]byte{1})
			}
			s := signature.Signing{Format: tt.format, Prefix: tt.prefix, Keys: keys(t, tt.format, secret)}
			body := signature.AppendBody(nil, tt.format, message())
			headers := s.Headers(
				[]signature.Header{{Name: "kept", Value: "1"}},
				message(),
				body,
				signature.Send{At: sentAt, Attempt: 2, Replayed: true},
			)
			got := []string{}
			for _, h := range headers[1:] {
				if strings.EqualFold(h.Name[max(0, len(h.Name)-9):], "signature") {
					h.Value = "*"
				}
				got = append(got, h.Name, h.Value)
			}
			if headers[0].Name != "kept" || !slices.Equal(got, tt.want) {
				t.Errorf("\n got %q\nwant %q", got, tt.want)
			}
			listed := signature.Wire{Format: tt.format, Prefix: tt.prefix}.HeaderNames()
			for _, h := range headers[1:] {
				if !slices.Contains(listed, h.Name) {
					t.Errorf("HeaderNames leaves out %s", h.Name)
				}
			}
			if len(listed) != len(headers)-1 {
				t.Errorf("HeaderNames lists %q", listed)
			}
			first := s.Headers(nil, message(), body, signature.Send{At: sentAt, Attempt: 1})
			for _, h := range first {
				if strings.HasSuffix(h.Name, "Retry-Attempt") || strings.HasSuffix(h.Name, "-Retry") ||
					strings.HasSuffix(strings.ToLower(h.Name), "replayed") {
					t.Errorf("a first, original attempt carries %s", h.Name)
				}
			}
		})
	}
}

func TestTheOfficialLibraryVerifiesTheStandardFormat(t *testing.T) {
	t.Parallel()
	newer, older := signature.NewSecret([32]byte{1, 2, 3}), signature.NewSecret([32]byte{4, 5, 6})
	pair, _ := signature.NewKeyPair([32]byte{7})
	s := signature.Signing{Format: signature.Standard, Keys: keys(t, signature.Standard, newer, older, pair)}
	now := time.Now() //nolint:forbidigo // the library compares with the clock
	for attempt := 1; attempt <= 3; attempt++ {
		body := signature.AppendBody(nil, signature.Standard, message())
		h := http.Header{}
		for _, header := range s.Headers(nil, message(), body, signature.Send{At: now, Attempt: attempt}) {
			h.Set(header.Name, header.Value)
		}
		for _, secret := range []string{newer, older} {
			receiver, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := receiver.Verify(body, h); err != nil {
				t.Errorf("attempt %d: %v", attempt, err)
			}
			body[0] ^= 1
			if receiver.Verify(body, h) == nil {
				t.Error("the library accepts a changed body")
			}
			body[0] ^= 1
		}
	}
}

func TestOneSlotFormatsSignWithTheSlotsKeyUntilItIsSwitched(t *testing.T) {
	t.Parallel()
	for _, f := range signature.Formats() {
		if f == signature.Standard {
			continue
		}
		s := signature.Signing{Format: f, Keys: keys(t, f, plainSecret, oldSecret), Slot: 1}
		body := signature.AppendBody(nil, f, message())
		accepts := func(secret string) bool {
			headers := s.Headers(nil, message(), body, signature.Send{At: sentAt, Attempt: 1})
			find := func(name string) string { return get(headers, name) }
			return signature.Wire{Format: f}.Verify(find, body, []string{secret}, sentAt, 0) == nil
		}
		if f.Rotation("") == signature.SignOne {
			if accepts(plainSecret) || !accepts(oldSecret) {
				t.Errorf("%s does not keep to the old secret", f)
			}
			s.Slot = 0
			if !accepts(plainSecret) || accepts(oldSecret) {
				t.Errorf("%s does not switch", f)
			}
			for slot, secret := range map[int]string{5: oldSecret, -1: plainSecret} {
				if s.Slot = slot; !accepts(secret) {
					t.Errorf("%s signs with a wrong key at slot %d", f, slot)
				}
			}
		} else if !accepts(plainSecret) || !accepts(oldSecret) {
			t.Errorf("%s does not sign with both live secrets", f)
		}
	}
}

func TestAnEndpointChoosesHowManySignaturesARotationSends(t *testing.T) {
	t.Parallel()
	for _, f := range signature.Formats() {
		secrets := []string{plainSecret, oldSecret}
		if f == signature.Standard {
			secrets = []string{signature.NewSecret([32]byte{1}), signature.NewSecret([32]byte{2})}
		}
		body := signature.AppendBody(nil, f, message())
		for _, rotation := range signature.Rotations() {
			s := signature.Signing{Format: f, Keys: keys(t, f, secrets...), Slot: 1, Rotation: rotation}
			headers := s.Headers(nil, message(), body, signature.Send{At: sentAt, Attempt: 1})
			find := func(name string) string { return get(headers, name) }
			for i, secret := range secrets {
				good := signature.Wire{Format: f}.Verify(find, body, []string{secret}, sentAt, 0) == nil
				if want := i == 1 || rotation == signature.SignAll && !f.OneSlot(); good != want {
					t.Errorf("%s, %s: secret %d verifies: %v", f, rotation, i, good)
				}
			}
		}
	}
}

// A body of x-webhook names the event's type as its receivers read it; the other formats' bodies stay as they are.
func TestTheTypeFieldConcernsXWebhookAlone(t *testing.T) {
	t.Parallel()
	m := message()
	for field, want := range map[signature.TypeField]string{
		"":                    `{"id":"evt_01","type":"order.completed","created_at":`,
		signature.TypeAsType:  `{"id":"evt_01","type":"order.completed","created_at":`,
		signature.TypeAsEvent: `{"id":"evt_01","event":"order.completed","created_at":`,
		signature.TypeAsBoth:  `{"id":"evt_01","type":"order.completed","event":"order.completed","created_at":`,
	} {
		m.TypeField = field
		for _, f := range signature.Formats() {
			got := string(signature.AppendBody(nil, f, m))
			if f == signature.XWebhook && !strings.HasPrefix(got, want) || f != signature.XWebhook &&
				got != string(signature.AppendBody(nil, f, message())) {
				t.Errorf("%s with %q: %s", f, field, got)
			}
		}
	}
}

// Whatever a format calls it, the header to deduplicate by is the same on a delivery and on its replays.
func TestAReplayKeepsTheIdToDeduplicateBy(t *testing.T) {
	t.Parallel()
	for _, f := range signature.Formats() {
		secret := plainSecret
		if f == signature.Standard {
			secret = signature.NewSecret([32]byte{1})
		}
		s := signature.Signing{Format: f, Prefix: "Acme", Keys: keys(t, f, secret)}
		first, again := message(), message()
		again.DeliveryID, again.FirstID = "dlv_99", first.DeliveryID
		name := signature.Wire{Format: f, Prefix: "Acme"}.DedupeHeader()
		was := get(s.Headers(nil, first, nil, signature.Send{At: sentAt, Attempt: 1}), name)
		is := get(s.Headers(nil, again, nil, signature.Send{At: sentAt, Attempt: 1, Replayed: true}), name)
		if was == "" || was != is {
			t.Errorf("%s: %s was %q, is %q", f, name, was, is)
		}
		var event bool
		for _, h := range s.Headers(nil, again, nil, signature.Send{At: sentAt, Attempt: 1}) {
			event = event || h.Value == "evt_01"
		}
		if !event {
			t.Errorf("%s carries no event id", f)
		}
	}
}

func TestSigningThatCannotSignIsRefused(t *testing.T) {
	t.Parallel()
	pair, _ := signature.NewKeyPair([32]byte{1})
	ed := keys(t, signature.Standard, pair)
	plain := keys(t, signature.Raw, plainSecret)
	tests := map[string]struct {
		s  signature.Signing
		ok bool
	}{
		"good":                 {signature.Signing{Format: signature.Raw, Keys: plain, Prefix: "Acme"}, true},
		"ed25519":              {signature.Signing{Format: signature.Standard, Keys: ed}, true},
		"no format":            {signature.Signing{Keys: plain}, false},
		"unknown format":       {signature.Signing{Format: "stripe", Keys: plain}, false},
		"no key":               {signature.Signing{Format: signature.Raw}, false},
		"zero key":             {signature.Signing{Format: signature.Raw, Keys: make([]signature.Key, 1)}, false},
		"ed25519 out of place": {signature.Signing{Format: signature.Raw, Keys: ed}, false},
		"bad prefix":           {signature.Signing{Format: signature.Raw, Keys: plain, Prefix: "A\r\nB"}, false},
	}
	for name, tt := range tests {
		err := tt.s.Validate()
		if (err == nil) != tt.ok || (err != nil && fault.As(err) == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if tt.ok {
			continue
		}
		for _, h := range tt.s.Headers(nil, message(), []byte("{}"), signature.Send{At: sentAt, Attempt: 1}) {
			if strings.HasSuffix(strings.ToLower(h.Name), "signature") && h.Value == "" {
				t.Errorf("%s: an empty signature header", name)
			}
		}
	}
}

func TestSigningIsTheSameFromManyGoroutines(t *testing.T) {
	t.Parallel()
	s := signature.Signing{Format: signature.TV1, Keys: keys(t, signature.TV1, plainSecret, oldSecret)}
	body := bytes.Repeat([]byte("x"), 5000)
	want := s.Headers(nil, message(), body, signature.Send{At: sentAt, Attempt: 1})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if got := s.Headers(nil, message(), body, signature.Send{At: sentAt, Attempt: 1}); !slices.Equal(got, want) {
					t.Errorf("got %v", got)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestSecretsAreStrictAboutTheirText(t *testing.T) {
	t.Parallel()
	good := signature.NewSecret([32]byte{})
	goodPair, public := signature.NewKeyPair([32]byte{9})
	otherPair, _ := signature.NewKeyPair([32]byte{8})
	tests := []struct {
		format signature.Format
		secret string
		ok     bool
	}{
		{signature.Standard, good, true},
		{signature.Standard, goodPair, true},
		{signature.Standard, public, false},
		{signature.Standard, good + "\n", false},
		{signature.Standard, good[:20] + "\n" + good[20:], false},
		{signature.Standard, " " + good, false},
		{signature.Standard, strings.TrimRight(good, "="), false},
		{signature.Standard, good[:len(good)-2] + "B=", false}, // stray bits: the same key in another spelling
		{signature.Standard, "whsec_" + strings.Repeat("A", 88), false},
		{signature.Standard, "whsec_" + strings.Repeat("AAAA", 21) + "AA==", true}, // 64 bytes
		{signature.Standard, "whsec_" + strings.Repeat("AAAA", 21) + "AAA=", false},
		{signature.Standard, goodPair[:60] + otherPair[60:], false},
		{signature.Standard, strings.TrimPrefix(good, "whsec_"), false},
		{signature.Raw, good, true},
		{signature.BodyHex, "x", true},
		{signature.TV1, "s3cr3t-üñí-鍵", true},
		{signature.TV1, "It's a Secret to Everybody", true},
		{signature.XWebhook, strings.Repeat("x", 256), true},
		{signature.XWebhook, strings.Repeat("x", 257), false},
		{signature.XWebhook, "", false},
		{signature.Raw, "secret\n", false},
		{signature.Raw, "secret\x00", false},
		{signature.Raw, "secret\xff", false},
		{"stripe", good, false},
	}
	for _, tt := range tests {
		k, err := signature.ParseKey(tt.format, tt.secret)
		if (err == nil) != tt.ok || k.IsZero() == tt.ok {
			t.Errorf("%s %q: %v", tt.format, tt.secret, err)
		}
		if !tt.ok && fault.As(err) == nil {
			t.Errorf("%s %q: no fault but %v", tt.format, tt.secret, err)
		}
	}
	if k := keys(t, signature.Standard, goodPair)[0]; !k.Asymmetric() || k.Public() != public {
		t.Errorf("public key %s, want %s", k.Public(), public)
	}
	if k := keys(t, signature.Standard, good)[0]; k.Asymmetric() || k.Public() != "" {
		t.Error("an HMAC key has a public half")
	}
}

func TestKeysNeverPrint(t *testing.T) {
	t.Parallel()
	pair, _ := signature.NewKeyPair([32]byte{0x41, 0x42})
	for _, k := range []signature.Key{
		keys(t, signature.Raw, "canary-secret")[0], keys(t, signature.Standard, pair)[0],
	} {
		s := signature.Signing{Format: signature.Raw, Keys: []signature.Key{k}}
		var logged bytes.Buffer
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "key", k, "signing", s)
		slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "key", k, "signing", s)
		all := logged.String() + fmt.Sprintf("%v %+v %#v %s %q %x %d %v %+v %#v %x", k, k, k, k, k, k, k, s, s, s, any(s))
		if regexp.MustCompile(`(?i)canary|63616e617279|99 97 110|65 66|4142|0x41`).MatchString(all) {
			t.Errorf("a key shows: %s", all)
		}
	}
}

func TestPrefixesAreHeaderSafe(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"Webhook", "A", "X-Acme", "acme2", strings.Repeat("a", 40)} {
		if err := signature.ValidPrefix(p); err != nil {
			t.Errorf("%q is refused: %v", p, err)
		}
	}
	for _, p := range []string{"", "-A", "A-", "A B", "A:", "A\r\nX", "Ä", "A_B", "A.B", "A\x00", strings.Repeat("a", 41)} {
		f := fault.As(signature.ValidPrefix(p))
		if f == nil || f.Fields[0].Name != "prefix" {
			t.Errorf("%q: %v", p, f)
		}
	}
}

func TestEveryHeaderOfEveryFormatAndPrefixIsReserved(t *testing.T) {
	t.Parallel()
	for _, f := range signature.Formats() {
		for _, prefix := range []string{"", "Webhook", "Acme", "X-Acme", "x", "A-B-C"} {
			for _, name := range (signature.Wire{Format: f, Prefix: prefix}).HeaderNames() {
				for _, spelling := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
					if !egress.FormatHeader(spelling) {
						t.Errorf("%s %q: %s is free", f, prefix, spelling)
					}
				}
			}
		}
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Tenant", "X-Event-Source", "X-Event", "X-Signature-Version", "Accept", "Event", "Timestamp", ""} {
		if egress.FormatHeader(name) {
			t.Errorf("%q is reserved for nothing", name)
		}
	}
}
