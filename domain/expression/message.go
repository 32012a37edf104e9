package expression

import (
	"regexp"
	"strings"
)

// The messages of CEL's parser and checker that people meet, and what is said instead. Those of the parser list the
// grammar's own names, which help nobody.
var (
	unexpected = regexp.MustCompile(`^(?:mismatched|extraneous) input '(.*)' expecting (.*)$`)
	viable     = regexp.MustCompile(`^no viable alternative at input '(.*)'$`)
	missing    = regexp.MustCompile(`^missing '?(.*?)'? at '(.*)'$`)
	unreadable = regexp.MustCompile(`^token recognition error at: '(.*)'$`)
	undeclared = regexp.MustCompile(`^undeclared reference to '(.*?)'`)
	operator   = regexp.MustCompile(`^found no matching overload for '_?([^_A-Za-z]+)_?' applied to '\((.*)\)'`)
	function   = regexp.MustCompile(`^found no matching overload for '(\w+)' applied to '(.*)'`)
	onlyOne    = regexp.MustCompile(`^'[^']*'$`)
)

// readable puts a message of the compiler into words.
func readable(message string) string {
	message = strings.TrimPrefix(message, "Syntax error: ")
	find := func(r *regexp.Regexp) []string { return r.FindStringSubmatch(message) }
	if m := find(unexpected); m != nil {
		if m[1] == "<EOF>" && onlyOne.MatchString(m[2]) {
			return "the expression ends too early; " + m[2] + " is missing"
		}
		return notExpected(m[1])
	}
	if m := find(viable); m != nil {
		return notExpected(m[1])
	}
	if m := find(missing); m != nil {
		return "'" + m[1] + "' is missing"
	}
	if m := find(unreadable); m != nil {
		return unknownText(strings.TrimSpace(m[1]))
	}
	if m := find(undeclared); m != nil {
		return "'" + m[1] + "' is unknown"
	}
	if m := find(operator); m != nil {
		return "'" + m[1] + "' does not work on " + strings.ReplaceAll(m[2], ", ", " and ")
	}
	if m := find(function); m != nil {
		return m[1] + "() does not work on " + m[2]
	}
	if message == "invalid argument to has() macro" {
		return "has() needs a field, such as has(data.total)"
	}
	return message
}

func notExpected(input string) string {
	if input == "<EOF>" {
		return "the expression ends too early"
	}
	return "'" + input + "' is not expected here"
}

// unknownText describes a word that the language does not have.
func unknownText(text string) string {
	switch {
	case text == "=":
		return "'=' is not expected here; == compares"
	case strings.HasPrefix(text, "'"), strings.HasPrefix(text, `"`):
		return "a string starts here and isn't closed; add a quotation mark"
	}
	return "'" + text + "' can't be read"
}
