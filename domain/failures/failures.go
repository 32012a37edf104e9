// Package failures groups failed deliveries by the response to their last attempt, so that sixty failures read as two
// causes.
package failures

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"

	"posthorn/domain/delivery"
)

// Newest is how many of the newest failures of an endpoint are grouped.
const Newest = 100

// MaxBody is how many bytes of a response are read for its text.
const MaxBody = 2048

// maxText is in characters.
const maxText = 120

// variable is what differs between responses that say the same: ids, addresses, hex digits, and numbers.
var variable = regexp.MustCompile(`(?i)\S+@\S+|\b[a-z]{2,10}_[a-z0-9]{8,}\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[a-f0-9]*\d[a-f0-9]{7,}\b|\d+([.,:]\d+)*`)

// Gap stands for what differs in the text of a group.
const Gap = "…"

// Normal is a text with a gap in the place of each id and number.
func Normal(text string) string { return variable.ReplaceAllString(text, Gap) }

// Key names the group of a response: its result, and its text without ids and numbers.
func Key(r delivery.Result, text string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", r.Status, r.Failure, strings.ToLower(Normal(text))))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// Text is what the start of a response's body says in one line: the message of an error in JSON, the title of an HTML
// page, or else the first line.
func Text(body []byte) string {
	text := strings.ToValidUTF8(string(body), "")
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(trimmed, "{"), strings.HasPrefix(trimmed, "["), strings.HasPrefix(trimmed, `"`):
		var v any
		if json.Unmarshal([]byte(trimmed), &v) == nil {
			if said := message(v, 4); said != "" {
				return oneLine(said)
			}
		} else if m := inJSON.FindStringSubmatch(trimmed); m != nil { // the body is cut off
			return oneLine(m[1])
		}
	case strings.HasPrefix(trimmed, "<"):
		if m := title.FindStringSubmatch(trimmed); m != nil {
			return oneLine(html.UnescapeString(m[1]))
		}
		return oneLine(html.UnescapeString(tag.ReplaceAllString(trimmed, " ")))
	}
	first, _, _ := strings.Cut(trimmed, "\n")
	return oneLine(first)
}

var (
	title = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	tag   = regexp.MustCompile(`(?s)<(?:style|script)[^>]*>.*?</(?:style|script)>|<[^>]*>`)
	// inJSON is a message in JSON that is not complete.
	inJSON = regexp.MustCompile(`"(?:message|error|detail|title|reason|description)"\s*:\s*"((?:[^"\\]|\\.)*)"`)
)

// messages are the members of an object that say what went wrong, the most telling first.
var messages = []string{"message", "error_description", "detail", "error", "errors", "title", "reason", "description", "msg", "code"}

// message finds what JSON says, in members of members up to a depth.
func message(v any, depth int) string {
	if depth == 0 {
		return ""
	}
	switch v := v.(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 {
			return message(v[0], depth-1)
		}
	case map[string]any:
		for _, name := range messages {
			if said := message(v[name], depth-1); said != "" {
				return said
			}
		}
	}
	return ""
}

// oneLine is a text without line breaks and control characters, cut off after maxText.
func oneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	runes := []rune(strings.Join(strings.Fields(printable), " "))
	if len(runes) > maxText {
		return strings.TrimSpace(string(runes[:maxText])) + Gap
	}
	return string(runes)
}
