package event_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/domain/event"
	"posthorn/domain/fault"
)

var now = time.Date(2026, time.March, 5, 12, 0, 0, 0, time.UTC)

func TestAWholeEmissionIsRead(t *testing.T) {
	t.Parallel()
	const data = `{ "b" : 1 , "b":12345678901234567890, "f":1.0e+2, "t":"\u00e9\/é\ud83d\ude80<&>" }`
	got, err := event.Parse([]byte(" \r\n\t{\"type\" : \"order.completed\",\"channels\":[ \"eu\" , \"acme:1\",\"eu\"],\"data\": "+data+"\n,"+
		`"key":"kunde \u00e9 7","occurred_at":"2026-03-05T12:59:59.5+02:00","deliver_at":"2026-03-06T12:00:00Z",`+
		`"version":"2026-01","idempotency_key":"a-b"} `+"\n"), event.Limits{}, now)
	if err != nil {
		t.Fatal(err)
	}
	if got.Type != "order.completed" || string(got.Data) != data || got.Key != "kunde é 7" || got.Version != "2026-01" ||
		got.IdempotencyKey != "a-b" || !slices.Equal(got.Channels, []string{"eu", "acme:1"}) {
		t.Errorf("got %+v\ndata %s", got, got.Data)
	}
	if want := time.Date(2026, time.March, 5, 10, 59, 59, 5e8, time.UTC); got.OccurredAt != want {
		t.Errorf("occurred at %s, want %s in UTC", got.OccurredAt, want)
	}
	if want := now.Add(24 * time.Hour); got.DeliverAt != want {
		t.Errorf("deliver at %s, want %s", got.DeliverAt, want)
	}
}

func TestOptionalFieldsMayBeLeftOutOrNull(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"type":"a","data":{}}`,
		`{"data":{},"type":"a"}`,
		`{"type":"a","data":{},"key":null,"channels":null,"occurred_at":null,"deliver_at":null,"version":null,"idempotency_key":null}`,
		`{"type":"a","data":{},"channels":[]}`,
		`{"\u0074ype":"\u0061","d\u0061ta":{}}`,
	} {
		got, err := event.Parse([]byte(body), event.Limits{}, now)
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got.Type != "a" || string(got.Data) != "{}" || got.Key+got.Version+got.IdempotencyKey != "" || got.Channels != nil ||
			!got.OccurredAt.IsZero() || !got.DeliverAt.IsZero() {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestAnyJSONValueIsDataByteForByte(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`null`, `true`, `false`, `0`, `-0`, `-0.0`, `1e400`, `1E-5`, `123456789012345678901234567890.10`, `""`, `"\u0000"`, `"\\\""`,
		`[]`, `[ ]`, `{}`, `{ }`, `[1,[2,{"a":[]}]]`, `{"a":1,"a":2,"":3}`, "\"\u2028\u007f\"", `"\ud83d\uDE80"`, "\"\U0010ffff\"",
		`"` + strings.Repeat("x", 15) + `\n` + strings.Repeat("é", 9) + `"`,
	} {
		for _, pad := range []string{"", " ", "\n\t \r"} {
			body := `{"type":"a","data":` + pad + data + pad + `}`
			got, err := event.Parse([]byte(body), event.Limits{}, now)
			if err != nil || string(got.Data) != data {
				t.Errorf("%s: %q, %v", body, got.Data, err)
			}
			if cap(got.Data) != len(got.Data) {
				t.Error("appending to the data would overwrite the body")
			}
		}
	}
}

func TestEachRefusalNamesItsFieldAndCode(t *testing.T) {
	t.Parallel()
	with := func(extra string) string { return `{"type":"a","data":{},` + extra + `}` }
	long := strings.Repeat("x", 129)
	tests := []struct{ body, code, field string }{
		{``, "not_json", ""},
		{`   `, "not_json", ""},
		{`{`, "not_json", ""},
		{`{"type"`, "not_json", ""},
		{`{"type":`, "not_json", ""},
		{`{"type":"a"`, "not_json", ""},
		{`{"type":"a","data":{}`, "not_json", ""},
		{`{"type":"a","data":{}}x`, "not_json", ""},
		{`{"type":"a","data":{}}{}`, "not_json", ""},
		{`{"type":"a","data":{},}`, "not_json", ""},
		{`{"type":"a" "data":{}}`, "not_json", ""},
		{`{type:"a","data":{}}`, "not_json", ""},
		{`{'type':'a'}`, "not_json", ""},
		{`{"type":a,"data":{}}`, "not_json", ""},
		{"\ufeff" + `{"type":"a","data":{}}`, "not_json", ""},
		{"\x00", "not_json", ""},
		{`<event/>`, "not_json", ""},
		{"{\"type\":\"a\",\"data\":\"\x01\"}", "not_json", ""},
		{"{\"type\":\"a\",\"data\":\"a\nb\"}", "not_json", ""},
		{`{"type":"a","data":"\x41"}`, "not_json", ""},
		{`{"type":"a","data":"\u12g4"}`, "not_json", ""},
		{`{"type":"a","data":"\u12`, "not_json", ""},
		{`{"type":"a","data":"\`, "not_json", ""},
		{`{"type":"a","data":01}`, "not_json", ""},
		{`{"type":"a","data":+1}`, "not_json", ""},
		{`{"type":"a","data":.5}`, "not_json", ""},
		{`{"type":"a","data":1.}`, "not_json", ""},
		{`{"type":"a","data":1e}`, "not_json", ""},
		{`{"type":"a","data":-}`, "not_json", ""},
		{`{"type":"a","data":NaN}`, "not_json", ""},
		{`{"type":"a","data":nul}`, "not_json", ""},
		{`{"type":"a","data":tRue}`, "not_json", ""},
		{`{"type":"a","data":[1,]}`, "not_json", ""},
		{`{"type":"a","data":[1 2]}`, "not_json", ""},
		{`{"type":"a","data":{"a"}}`, "not_json", ""},
		{`{"type":"a","data":{"a":}}`, "not_json", ""},
		{`{"type":"a","data":{"a":1,}}`, "not_json", ""},
		{`{"type":"a","data":{1:1}}`, "not_json", ""},
		{`{"type":"a","data":{} /* c */}`, "not_json", ""},
		{with(`"key":}`), "not_json", ""},
		{with(`"channels":[`), "not_json", ""},
		{with(`"channels":["a",]`), "not_json", ""},
		{with(`"channels":["a" "b"]`), "not_json", ""},

		{"{\"type\":\"a\",\"data\":\"\xff\"}", "not_utf8", ""},
		{"{\"type\":\"a\",\"data\":\"12345678\xc3\"}", "not_utf8", ""},
		{"{\"type\":\"a\",\"data\":\"\xc0\xaf\"}", "not_utf8", ""},
		{"{\"type\":\"a\",\"data\":\"\xed\xa0\x80\"}", "not_utf8", ""},
		{"{\"type\":\"a\",\"data\":{\"\xff\":1}}", "not_utf8", ""},
		{"{\"type\":\"a\",\"data\":\xff}", "not_utf8", ""},
		{"{\"type\":\"a\",\"data\":\"\xf4\x90\x80\x80\"}", "not_utf8", ""},

		{`{"type":"a","data":"\ud83d"}`, "unpaired_surrogate", ""},
		{`{"type":"a","data":"\ude80"}`, "unpaired_surrogate", ""},
		{`{"type":"a","data":"\ude80\ud83d"}`, "unpaired_surrogate", ""},
		{`{"type":"a","data":"\ud83d\ud83d"}`, "unpaired_surrogate", ""},
		{`{"type":"a","data":"\ude80\ude80"}`, "unpaired_surrogate", ""},
		{`{"type":"a","data":"\ud83d\n"}`, "unpaired_surrogate", ""},
		{`{"type":"a","data":"\ud83dx"}`, "unpaired_surrogate", ""},
		{`{"type":"a","data":{"\uDC00":1}}`, "unpaired_surrogate", ""},
		{with(`"key":"\ud83d"`), "unpaired_surrogate", ""},

		{`{"type":"a","data":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`, "too_deep", "data"},
		{`{"type":"a","data":` + strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65) + `}`, "too_deep", "data"},
		{`{"type":"a","data":` + strings.Repeat("[", 1_000_000), "too_deep", "data"},
		{strings.Repeat("[", 1_000_000), "too_deep", "data"},
		{with(`"key":` + strings.Repeat("[", 1_000_000)), "too_deep", "data"},

		{`[]`, "not_object", ""},
		{`null`, "not_object", ""},
		{`"text"`, "not_object", ""},

		{with(`"foo":1`), "unknown_field", "foo"},
		{with(`"Key":"a"`), "unknown_field", "Key"},
		{with(`"id":"evt_1"`), "unknown_field", "id"},
		{with(`"type":"b"`), "duplicate_field", "type"},
		{with(`"data":{}`), "duplicate_field", "data"},
		{with(`"d\u0061ta":{}`), "duplicate_field", "data"},
		{with(`"key":null,"key":"a"`), "duplicate_field", "key"},
		{with(`"channels":[],"channels":[]`), "duplicate_field", "channels"},

		{`{}`, "type_missing", "type"},
		{`{"data":{}}`, "type_missing", "type"},
		{`{"type":null,"data":{}}`, "type_missing", "type"},
		{`{"type":"a"}`, "data_missing", "data"},

		{`{"type":1,"data":{}}`, "field_type", "type"},
		{with(`"key":1`), "field_type", "key"},
		{with(`"key":["a"]`), "field_type", "key"},
		{with(`"channels":"eu"`), "field_type", "channels"},
		{with(`"channels":{}`), "field_type", "channels"},
		{with(`"channels":["a",1]`), "field_type", "channels"},
		{with(`"channels":[null]`), "field_type", "channels"},
		{with(`"deliver_at":1772701201`), "field_type", "deliver_at"},
		{with(`"occurred_at":false`), "field_type", "occurred_at"},
		{with(`"version":2`), "field_type", "version"},

		{`{"type":"","data":{}}`, "type_malformed", "type"},
		{`{"type":"a b","data":{}}`, "type_malformed", "type"},
		{`{"type":"order.*","data":{}}`, "type_malformed", "type"},
		{`{"type":"` + long + `","data":{}}`, "type_malformed", "type"},

		{with(`"key":""`), "key_malformed", "key"},
		{with(`"key":"` + long + `"`), "key_malformed", "key"},
		{with(`"key":"` + strings.Repeat("é", 65) + `"`), "key_malformed", "key"},
		{with(`"key":"a\u0000"`), "key_malformed", "key"},
		{with(`"key":"a\n"`), "key_malformed", "key"},

		{with(`"channels":["1","2","3","4","5","6","7","8","9","10","11"]`), "channels_count", "channels"},
		{with(`"channels":[""]`), "channel_malformed", "channels"},
		{with(`"channels":["a b"]`), "channel_malformed", "channels"},
		{with(`"channels":["é"]`), "channel_malformed", "channels"},
		{with(`"channels":["` + long + `"]`), "channel_malformed", "channels"},

		{with(`"occurred_at":""`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"yesterday"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"2026-03-05"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"2026-03-05T12:00:00"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"2026-03-05T1:00:00Z"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"2026-03-05T12:00:00,5Z"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"2026-03-05T12:00:00+24:00"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"2026-03-05T12:00:00+01:60"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"2026-03-05T12:00:00+0100"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"2026-03-05 12:00:00Z"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"2026-03-05T24:00:00Z"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"2026-02-30T12:00:00Z"`), "time_malformed", "occurred_at"},
		{with(`"occurred_at":"0001-01-01T00:00:00Z"`), "time_range", "occurred_at"},
		{with(`"occurred_at":"1969-12-31T23:59:59Z"`), "time_range", "occurred_at"},
		{with(`"occurred_at":"9999-12-31T23:59:59-01:00"`), "time_range", "occurred_at"},
		{with(`"deliver_at":"2026-04-04T12:00:01Z"`), "time_range", "deliver_at"},
		{with(`"deliver_at":"9999-12-31T23:59:59Z"`), "time_range", "deliver_at"},
		{with(`"deliver_at":"soon"`), "time_malformed", "deliver_at"},

		{with(`"version":""`), "version_malformed", "version"},
		{with(`"version":"v 1"`), "version_malformed", "version"},
		{with(`"version":"` + strings.Repeat("1", 65) + `"`), "version_malformed", "version"},
		{with(`"idempotency_key":""`), "idempotency_key_malformed", "idempotency_key"},
		{with(`"idempotency_key":"a b"`), "idempotency_key_malformed", "idempotency_key"},
		{with(`"idempotency_key":"` + strings.Repeat("1", 256) + `"`), "idempotency_key_malformed", "idempotency_key"},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprintf("%d/%s", i, tt.code), func(t *testing.T) {
			t.Parallel()
			shown := tt.body[:min(len(tt.body), 200)]
			got, err := event.Parse([]byte(tt.body), event.Limits{}, now)
			f := fault.As(err)
			if f == nil {
				t.Fatalf("%q is accepted: %+v, %v", shown, got, err)
			}
			field := ""
			if len(f.Fields) > 0 {
				field = f.Fields[0].Name
			}
			if f.Kind != fault.Invalid || f.Code != tt.code || field != tt.field || f.Detail == "" {
				t.Errorf("%q: %s of %q (%s), want %s of %q", shown, f.Code, field, f.Detail, tt.code, tt.field)
			}
			if got.Type != "" || got.Data != nil {
				t.Errorf("%q: a refused body gives %+v", shown, got)
			}
		})
	}
}

// The scanner looks at eight bytes of a string at once; what must not stand there is found at every place among them.
func TestABadByteIsFoundWhereverItStandsInAString(t *testing.T) {
	t.Parallel()
	for place := range 20 {
		for c := range 256 {
			text := []byte(strings.Repeat("x", 24))
			text[place] = byte(c)
			_, err := event.Parse([]byte(`{"type":"a","data":"`+string(text)+`"}`), event.Limits{}, now)
			want := ""
			switch {
			case c < 0x20 || c == '"' || c == '\\': // after a backslash x is no escape
				want = "not_json"
			case c >= 0x80:
				want = "not_utf8"
			}
			if (want == "" && err != nil) || (want != "" && !fault.Is(err, want)) {
				t.Errorf("byte %#02x at %d: %v, want %q", c, place, err, want)
			}
		}
	}
}

func TestEverythingMissingIsToldAtOnce(t *testing.T) {
	t.Parallel()
	_, err := event.Parse([]byte(`{"key":"a"}`), event.Limits{}, now)
	f := fault.As(err)
	if f == nil || len(f.Fields) != 2 || f.Fields[0].Name != "type" || f.Fields[1].Name != "data" {
		t.Errorf("got %+v", f)
	}
}

func TestALongUnknownFieldIsNotEchoedWhole(t *testing.T) {
	t.Parallel()
	_, err := event.Parse([]byte(`{"`+strings.Repeat("é", 100_000)+`":1}`), event.Limits{}, now)
	if f := fault.As(err); f == nil || f.Code != "unknown_field" || len(f.Detail) > 400 || strings.Contains(f.Detail, "\ufffd") {
		t.Errorf("got %.500v", err)
	}
}

func TestLimitsHoldAtTheirEdges(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	parse := func(data string, lim event.Limits) *fault.Error {
		_, err := event.Parse([]byte(`{"type":"a","data":`+data+`}`), lim, now)
		return fault.As(err)
	}
	if f := parse(nested(64), event.Limits{}); f != nil {
		t.Errorf("64 levels: %v", f)
	}
	if f := parse(nested(3), event.Limits{MaxDepth: 3}); f != nil {
		t.Errorf("3 levels of 3: %v", f)
	}
	if f := parse(nested(4), event.Limits{MaxDepth: 3}); f == nil || f.Code != "too_deep" {
		t.Errorf("4 levels of 3: %v", f)
	}
	if f := parse(nested(1001), event.Limits{MaxDepth: 1 << 30}); f == nil || f.Code != "too_deep" {
		t.Errorf("1001 levels of too many: %v", f)
	}
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	if f := parse(text(256<<10), event.Limits{}); f != nil {
		t.Errorf("256 KiB: %v", f)
	}
	for _, f := range []*fault.Error{
		parse(text(256<<10+1), event.Limits{}), parse(text(101), event.Limits{MaxPayload: 100}),
	} {
		if f == nil || f.Kind != fault.TooLarge || f.Code != "payload_too_large" || f.Fields[0].Name != "data" {
			t.Errorf("one byte too many: %v", f)
		}
	}
	if f := parse(text(100), event.Limits{MaxPayload: 100}); f != nil {
		t.Errorf("100 of 100 bytes: %v", f)
	}
}

func TestATimeToDeliverThatHasPassedMeansAtOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"2026-03-05T11:59:59Z":      {},
		"2026-03-05T12:00:00Z":      {},
		"2026-03-05T12:00:00+01:00": {},
		"2026-03-05T12:00:00.001Z":  now.Add(time.Millisecond),
		"2026-04-04T12:00:00Z":      now.Add(30 * 24 * time.Hour),
	} {
		got, err := event.Parse([]byte(`{"type":"a","data":{},"deliver_at":"`+text+`"}`), event.Limits{}, now)
		if err != nil || !got.DeliverAt.Equal(want) {
			t.Errorf("%s: %s, %v", text, got.DeliverAt, err)
		}
		if late := text == "2026-03-05T12:00:00+01:00"; got.Late != late {
			t.Errorf("%s: late %t", text, got.Late)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	check := func(kind string, valid func(string) bool, good, bad []string) {
		for _, name := range good {
			if !valid(name) {
				t.Errorf("%s %q is refused", kind, name)
			}
		}
		for _, name := range bad {
			if valid(name) {
				t.Errorf("%s %q is accepted", kind, name)
			}
		}
	}
	check("type", event.ValidType,
		[]string{"a", "order.completed", "Order_v2.line-item.1", strings.Repeat("x", 128)},
		[]string{"", ".", "a.", ".a", "a..b", "a b", "a/b", "é", "*", "a.*", "a\x00", strings.Repeat("x", 129)})
	check("channel", event.ValidChannel,
		[]string{"eu", "acme:project/7", "a@b.c", "-", strings.Repeat("x", 128)},
		[]string{"", " ", "a,b", `a"b`, "a\\b", "é", "a\n", strings.Repeat("x", 129)})
	check("idempotency key", event.ValidIdempotencyKey,
		[]string{"a", "8e03978e-40d5-43dd-bc93-6894a57f9324", `"quoted"`, strings.Repeat("~", 255)},
		[]string{"", " ", "a b", "é", "a\x7f", "a\r\n", strings.Repeat("x", 256)})
	if err := event.CheckIdempotencyKey("a b"); !fault.Is(err, "idempotency_key_malformed") {
		t.Errorf("got %v", err)
	}
	if err := event.CheckIdempotencyKey("ab"); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAnIDThatNobodySeesCanHaveFullStops(t *testing.T) {
	t.Parallel()
	for body, unsent := range map[string]bool{
		`{"type":"a","data":1,"event_id":"order-1"}`:                          false,
		`{"type":"a","data":1,"event_id":"order-1","send_event_id":true}`:     false,
		`{"type":"a","data":1,"event_id":"order-1","send_event_id":null}`:     false,
		`{"type":"a","data":1,"event_id":"order.1","send_event_id":false}`:    true,
		`{"send_event_id":false,"event_id":"order.1.2","type":"a","data":{}}`: true,
	} {
		if got, err := event.Parse([]byte(body), event.Limits{}, now); err != nil || got.EventIDUnsent != unsent {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
	for _, body := range []string{`{"type":"a","data":1,"event_id":"order.1"}`, `{"type":"a","data":1,"event_id":"a b","send_event_id":false}`} {
		if _, err := event.Parse([]byte(body), event.Limits{}, now); !fault.Is(err, "event_id_malformed") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestAContentTypeIsForText(t *testing.T) {
	t.Parallel()
	for _, given := range []string{"application/xml", "text/plain; charset=utf-8", "application/vnd.acme+json"} {
		body := fmt.Sprintf(`{"type":"a","content_type":%q,"data":"<a/>"}`, given)
		if got, err := event.Parse([]byte(body), event.Limits{}, now); err != nil || got.ContentType != given || string(got.Data) != `"<a/>"` {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
	for _, body := range []string{
		`{"type":"a","content_type":"text/plain","data":{}}`,
		`{"type":"a","content_type":"text","data":"x"}`,
		`{"type":"a","content_type":"text/plain\r\nx: y","data":"x"}`,
		`{"type":"a","content_type":"text/plän","data":"x"}`,
		`{"type":"a","content_type":"text/` + strings.Repeat("x", 255) + `","data":"x"}`,
	} {
		if _, err := event.Parse([]byte(body), event.Limits{}, now); !fault.Is(err, "content_type_malformed") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
