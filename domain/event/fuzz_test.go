package event_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"posthorn/domain/event"
	"posthorn/domain/fault"
)

var seeds = []string{
	`{}`, `[1,2.5e-3,"a\u00e9\ud83d\ude80"]`, `{"a":{"b":[null,true,false]},"a":-0}`, `"\ud83d"`, `"\ud83d\u0041"`, "\"\xff\"", `01`, `1.`,
	`"` + strings.Repeat("x", 30) + `\"` + `"`, `[1,]`, "\"12345678\x1f\"", "\"1234567\xc3\xa9\"", `"\\ud83d"`, `nul`, `{"":""}`, "\x00",
}

// The kinds of escapes in valid JSON, each to be tried at a backslash.
var (
	otherEscape = regexp.MustCompile(`^(?:\\[^u]|\\u[0-9a-ce-fA-CE-F][0-9a-fA-F]{3}|\\u[dD][0-7][0-9a-fA-F]{2})`)
	wholePair   = regexp.MustCompile(`^\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
	halfPair    = regexp.MustCompile(`^\\u[dD][89a-fA-F]`)
)

// hasHalfPair walks over the escapes of valid JSON from left to right, so that an escaped backslash is not read as the
// start of another escape, and says whether half of a surrogate pair is among them.
func hasHalfPair(text []byte) bool {
	for len(text) > 0 {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return false
		}
		text = text[i:]
		switch {
		case wholePair.Match(text):
			text = text[12:]
		case halfPair.Match(text):
			return true
		default:
			text = text[len(otherEscape.Find(text)):]
		}
	}
	return false
}

// depth is how deep arrays and objects nest in valid JSON.
func depth(text []byte) int {
	most, now := 0, 0
	for i, quoted := 0, false; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '[' || c == '{'):
			now++
			most = max(most, now)
		case !quoted && (c == ']' || c == '}'):
			now--
		}
	}
	return most
}

func FuzzDataIsAcceptedIfAndOnlyIfItIsGoodJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		body := append(append([]byte(`{"type":"a","data":`), data...), `,"key":"k"}`...)
		got, err := event.Parse(body, event.Limits{MaxPayload: 1 << 30}, now)
		trimmed := bytes.Trim(data, " \t\r\n")
		good := json.Valid(data) && utf8.Valid(data) && !hasHalfPair(trimmed) && depth(trimmed) <= event.DefaultMaxDepth
		if good && (err != nil || !bytes.Equal(got.Data, trimmed) || got.Key != "k") {
			t.Fatalf("%q: %q, %v", data, got.Data, err)
		}
		// Data that is no value by itself can still end its field and begin others ("1,\"version\":\"2\"").
		if !good && err == nil && json.Valid(data) {
			t.Fatalf("%q is accepted", data)
		}
		if err != nil && fault.As(err) == nil {
			t.Fatalf("%q: an error without a code: %v", data, err)
		}
	})
}

// reference is what encoding/json makes of a body: another reader of the same contract.
type reference struct {
	Type           *string         `json:"type"`
	Data           json.RawMessage `json:"data"`
	Key            *string         `json:"key"`
	Channels       []string        `json:"channels"`
	OccurredAt     *time.Time      `json:"occurred_at"`
	DeliverAt      *time.Time      `json:"deliver_at"`
	Version        *string         `json:"version"`
	IdempotencyKey *string         `json:"idempotency_key"`
	EventID        *string         `json:"event_id"`
	CreateTenant   *bool           `json:"create_tenant"`
}

func FuzzAnAcceptedBodyReadsAsEncodingJSONReadsIt(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(`{"type":"a","data":` + s + `}`))
	}
	f.Add([]byte(`{"type":"order.completed","data":{"a":1},"key":"k\u0041","channels":["a","b","a"],"occurred_at":"2026-03-05T12:00:00.5+01:00",` +
		`"deliver_at":"2026-03-06T12:00:00Z","version":"1","idempotency_key":"x","event_id":"e","create_tenant":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		kept := bytes.Clone(body)
		got, err := event.Parse(body, event.Limits{}, now)
		if !bytes.Equal(kept, body) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			if fault.As(err) == nil || fault.As(err).Detail == "" {
				t.Fatalf("an error without a sentence: %v", err)
			}
			return
		}
		var want reference
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatalf("accepted %q, which encoding/json refuses: %v", body, err)
		}
		text := func(s *string) string {
			if s == nil {
				return ""
			}
			return *s
		}
		if got.Type != text(want.Type) || got.Key != text(want.Key) || got.Version != text(want.Version) ||
			got.IdempotencyKey != text(want.IdempotencyKey) || (want.Data != nil && !bytes.Equal(got.Data, want.Data)) {
			t.Fatalf("%q: got %+v", body, got)
		}
		if want.OccurredAt != nil && !got.OccurredAt.Equal(*want.OccurredAt) {
			t.Fatalf("%q: occurred at %s", body, got.OccurredAt)
		}
		if want.DeliverAt != nil && want.DeliverAt.After(now) && !got.DeliverAt.Equal(*want.DeliverAt) {
			t.Fatalf("%q: deliver at %s", body, got.DeliverAt)
		}
	})
}

func FuzzABatchIsCutAsEncodingJSONCutsIt(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(`[` + s + `]`))
		f.Add([]byte(`{"events":[1,` + s + `]}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := event.SplitBatch(body, 100)
		if err != nil {
			if fault.As(err) == nil {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		var want []json.RawMessage
		if err := json.Unmarshal(body, &want); err != nil {
			var wrapped struct{ Events []json.RawMessage }
			if err := json.Unmarshal(body, &wrapped); err != nil {
				t.Fatalf("cut %q, which encoding/json refuses: %v", body, err)
			}
			want = wrapped.Events
		}
		if len(items) != len(want) {
			t.Fatalf("%q: %d items, want %d", body, len(items), len(want))
		}
		for i := range items {
			if !bytes.Equal(items[i], want[i]) {
				t.Fatalf("%q: item %d is %q", body, i, items[i])
			}
		}
	})
}
