package components

import "strings"

// jsonPart is a piece of a JSON text and its color class; empty for no color.
type jsonPart struct{ class, text string }

// colored is the maximum size of colored JSON, in bytes: each part of it is an element of the page.
const colored = 16 << 10

// jsonParts splits a JSON text into names, strings, numbers and words. It splits invalid JSON too, without losing a
// byte.
func jsonParts(text string) (parts []jsonPart) {
	if len(text) > colored {
		return []jsonPart{{"", text}}
	}
	plain := 0
	add := func(class string, from, to int) {
		if plain < from {
			parts = append(parts, jsonPart{"", text[plain:from]})
		}
		parts, plain = append(parts, jsonPart{class, text[from:to]}), to
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			end := stringEnd(text, i)
			class := "json-string"
			if strings.HasPrefix(strings.TrimLeft(text[end:], " \t\r\n"), ":") {
				class = "json-name"
			}
			add(class, i, end)
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(text) && strings.IndexByte("+-.eE0123456789", text[end]) >= 0 {
				end++
			}
			add("json-number", i, end)
			i = end
		case c >= 'a' && c <= 'z':
			end := i + 1
			for end < len(text) && text[end] >= 'a' && text[end] <= 'z' {
				end++
			}
			add("json-word", i, end)
			i = end
		default:
			i++
		}
	}
	if plain < len(text) {
		parts = append(parts, jsonPart{"", text[plain:]})
	}
	return parts
}

// stringEnd is the index after the closing quote of the string that starts at i.
func stringEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
