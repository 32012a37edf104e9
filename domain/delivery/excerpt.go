package delivery

import (
	"net/http"
	"strings"
	"unicode/utf8"
)

// What is kept of a response, in bytes.
const (
	MaxExcerpt    = 16 << 10
	MaxHeaderText = 4 << 10
	MaxError      = 300
)

// HeaderText is the response's header as it is stored: sorted lines, clipped, valid text.
func HeaderText(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b)
	return Clip(strings.TrimSuffix(strings.ReplaceAll(b.String(), "\r\n", "\n"), "\n"), MaxHeaderText)
}

// Clip cuts a text at a bound without breaking a character, and leaves nothing in it that PostgreSQL's text refuses.
func Clip(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
