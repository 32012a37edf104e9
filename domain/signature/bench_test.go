package signature_test

import (
	"bytes"
	"testing"

	"posthorn/domain/signature"
)

func BenchmarkBodyAndHeadersOf500Bytes(b *testing.B) {
	m := message()
	m.Data = append(append([]byte(`{"text":"`), bytes.Repeat([]byte("x"), 480)...), `"}`...)
	for _, prefix := range []string{"", "Acme"} {
		for _, f := range signature.Formats() {
			secret := plainSecret
			if f == signature.Standard {
				secret = signature.NewSecret([32]byte{1})
			}
			s := signature.Signing{Format: f, Prefix: prefix, Keys: keys(b, f, secret)}
			b.Run(string(f)+prefix, func(b *testing.B) {
				b.ReportAllocs()
				var body []byte
				var headers []signature.Header
				for b.Loop() {
					body = signature.AppendBody(body[:0], f, m)
					headers = s.Headers(headers[:0], m, body, signature.Send{At: sentAt, Attempt: 1})
				}
			})
		}
	}
}
