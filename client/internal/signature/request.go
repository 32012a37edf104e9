// Code generated from domain/signature/request.go. DO NOT EDIT.

package signature

import "strings"

// What every request carries whatever its format.
const (
	UserAgent      = "Posthorn-Webhooks/1.0"
	ContentType    = "application/json"
	AcceptEncoding = "identity" // a receiver that compresses anyway is read as it responds
)

// FixedHeaders are the headers that every request carries, beside its format's.
func FixedHeaders(contentType string) []Header {
	return []Header{{"Content-Type", contentType}, {"User-Agent", UserAgent}, {"Accept-Encoding", AcceptEncoding}}
}

// Of finds the signature among the headers of a request, to be kept with the attempt.
func Of(headers []Header) string {
	for _, h := range headers {
		if len(h.Name) >= 9 && strings.EqualFold(h.Name[len(h.Name)-9:], "signature") {
			return h.Value
		}
	}
	return ""
}

// Curl writes a request as a command for a POSIX shell; the body's bytes arrive as they are, whatever they hold.
func Curl(method, url string, headers []Header, body []byte) string {
	var b strings.Builder
	b.WriteString("curl -sS -X " + method + " ")
	b.WriteString(quote(url))
	for _, h := range headers {
		b.WriteString(" \\\n  -H ")
		b.WriteString(quote(h.Name + ": " + h.Value))
	}
	b.WriteString(" \\\n  --data-raw ")
	b.WriteString(quote(string(body)))
	return b.String()
}

// quote makes a text one word of a POSIX shell, in which nothing is expanded.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
