package event_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"posthorn/domain/event"
)

func TestTheHashOfABodyIsTheSameWhereverTheIdempotencyKeyIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ with, without string }{
		{`{"type":"a.b","data":{"n":1},"idempotency_key":"k"}`, `{"type":"a.b","data":{"n":1}}`},
		{`{"idempotency_key":"k","type":"a.b","data":1}`, `{"type":"a.b","data":1}`},
		{`{"idempotency_key" : "k" , "type":"a.b","data":1}`, `{"type":"a.b","data":1}`},
		{`{"type":"a.b","idempotency_key":"k","data":{"idempotency_key":"k"}}`, `{"type":"a.b","data":{"idempotency_key":"k"}}`},
		{"{\n  \"type\": \"a.b\",\n  \"data\": 1,\n  \"idempotency_key\": \"k\"\n}", "{\n  \"type\": \"a.b\",\n  \"data\": 1\n}"},
		{`{"type":"a.b","idempotency_key":null,"data":1}`, `{"type":"a.b","idempotency_key":null,"data":1}`},
		{`{"type":"a.b","data":1}`, `{"type":"a.b","data":1}`},
	} {
		e, err := event.Parse([]byte(tt.with), event.Limits{}, time.Unix(1_700_000_000, 0))
		if err != nil {
			t.Fatalf("%s: %v", tt.with, err)
		}
		if e.BodyHash([]byte(tt.with)) != sha256.Sum256([]byte(tt.without)) {
			t.Errorf("%s does not hash as %s", tt.with, tt.without)
		}
	}
}
