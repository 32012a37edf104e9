package event_test

import (
	"encoding/json"
	"testing"

	"posthorn/domain/event"
)

// body500 is what a shop would post: mixed values, some escapes, some text beyond ASCII; about 500 bytes.
var body500 = []byte(`{"type":"order.completed","key":"customer-8713","channels":["eu"],"occurred_at":"2026-03-05T11:59:58.123Z","data":{"id":"ord_0000018713","amount":12950,"currency":"EUR","paid":true,"note":"Bitte klingeln, \"Hinterhof\"","customer":{"id":"cus_44","name":"Zoë Müller","email":"zoe@example.com"},"lines":[{"sku":"A-100","quantity":2,"price":4950},{"sku":"B-7","quantity":1,"price":3050.5}],"address":{"street":"Lange Straße 17","city":"München","zip":"80331","country":"DE"},"created":"2026-03-05T11:59:58Z"}}`)

func BenchmarkParseOf500Bytes(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(body500)))
	for b.Loop() {
		if _, err := event.Parse(body500, event.Limits{}, now); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodingJSONOf500Bytes is the yardstick: what the standard library takes for the same fields.
func BenchmarkEncodingJSONOf500Bytes(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(body500)))
	for b.Loop() {
		var r reference
		if err := json.Unmarshal(body500, &r); err != nil {
			b.Fatal(err)
		}
	}
}
