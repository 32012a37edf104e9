package event

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"

	"posthorn/domain/fault"
)

// scanner walks over JSON (RFC 8259) once, checking all of it and building nothing: values stay where they are in the
// body. It is stricter than the grammar in two points, each of which would break some receiver's parser although the
// sender's accepts it: strings are UTF-8, and a surrogate written as an escape has its other half.
type scanner struct {
	body []byte
	at   int
	most int // how deep arrays and objects can nest
	// halves lets halves of surrogate pairs pass, where a later look at the same bytes refuses them.
	halves bool
}

// CheckJSON says where a text stops being one JSON value, and why. Use it for what people read: encoding/json names
// other places in other words with each version of Go.
func CheckJSON(text []byte) error {
	s := scanner{body: text, most: batchDepth, halves: true}
	s.space()
	if err := s.value(0); err != nil {
		return err
	}
	s.space()
	if s.at < len(text) {
		return s.unexpected("the end")
	}
	return nil
}

func (s *scanner) fail(code, format string, args ...any) error {
	return fault.New(fault.Invalid, code, fmt.Sprintf(format, args...))
}

// unexpected is the error for a byte that the grammar does not allow here.
func (s *scanner) unexpected(wanted string) error {
	if s.at >= len(s.body) {
		return s.fail(CodeNotJSON, "Invalid JSON: the body ends after %d bytes, where %s is expected.", len(s.body), wanted)
	}
	r, n := utf8.DecodeRune(s.body[s.at:])
	if r == utf8.RuneError && n == 1 {
		return s.notUTF8()
	}
	return s.fail(CodeNotJSON, "Invalid JSON: found %[2]q at byte %[1]d%[4]s, where %[3]s is expected.", s.at+1, r, wanted, s.line())
}

// line names the line that the scanner is in, if the text has several.
func (s *scanner) line() string {
	if n := bytes.Count(s.body[:s.at], []byte{'\n'}); n > 0 {
		return fmt.Sprintf(" (line %d)", n+1)
	}
	return ""
}

func (s *scanner) notUTF8() error {
	return s.fail(CodeNotUTF8, "Byte %d of the body isn't UTF-8. Encode the request as UTF-8.", s.at+1)
}

func (s *scanner) space() {
	for s.at < len(s.body) {
		switch s.body[s.at] {
		case ' ', '\n', '\t', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek is the next byte; 0 at the end, which no JSON token begins with.
func (s *scanner) peek() byte {
	if s.at < len(s.body) {
		return s.body[s.at]
	}
	return 0
}

func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// value passes over one value whose first byte is at hand. depth is how many arrays and objects already surround it.
func (s *scanner) value(depth int) error {
	switch c := s.peek(); {
	case c == '"':
		_, err := s.text()
		return err
	case c == '{':
		return s.object(depth + 1)
	case c == '[':
		return s.array(depth + 1)
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.unexpected("a value")
}

func (s *scanner) object(depth int) error {
	if depth > s.most {
		return s.tooDeep()
	}
	s.at++
	s.space()
	if s.take('}') {
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.unexpected("a field name in quotes")
		}
		if _, err := s.text(); err != nil {
			return err
		}
		s.space()
		if !s.take(':') {
			return s.unexpected("a colon")
		}
		s.space()
		if err := s.value(depth); err != nil {
			return err
		}
		s.space()
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return s.unexpected("a comma or }")
		}
		s.space()
	}
}

func (s *scanner) array(depth int) error {
	if depth > s.most {
		return s.tooDeep()
	}
	s.at++
	s.space()
	if s.take(']') {
		return nil
	}
	for {
		if err := s.value(depth); err != nil {
			return err
		}
		s.space()
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.unexpected("a comma or ]")
		}
		s.space()
	}
}

func (s *scanner) tooDeep() error {
	return fault.InvalidField(
		"data",
		CodeTooDeep,
		fmt.Sprintf("The JSON is nested more than %d levels deep at byte %d. Flatten it.", s.most, s.at+1),
	)
}

func (s *scanner) literal(word string) error {
	for i := range len(word) {
		if s.peek() != word[i] {
			return s.unexpected(word)
		}
		s.at++
	}
	return nil
}

func (s *scanner) number() error {
	s.take('-')
	switch {
	case s.take('0'): // a further digit is caught by whatever must follow the value
	case isDigit(s.peek()):
		s.digits()
	default:
		return s.unexpected("a digit")
	}
	if s.take('.') && !s.digits() {
		return s.unexpected("a digit")
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return s.unexpected("a digit")
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.body) && isDigit(s.body[s.at]) {
		s.at++
	}
	return s.at > start
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// text passes over a string, its opening quote at hand, and returns what is between the quotes, escapes as written.
func (s *scanner) text() (inner []byte, err error) {
	s.at++
	start := s.at
	for {
		s.plain()
		if s.at >= len(s.body) {
			return nil, s.unexpected("the closing quote of a string")
		}
		switch c := s.body[s.at]; {
		case c == '"':
			s.at++
			return s.body[start : s.at-1], nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		case c < 0x20:
			return nil, s.fail(CodeNotJSON,
				"Invalid JSON: the string at byte %d contains the control character %#02x. Escape it.", s.at+1, c)
		case c < utf8.RuneSelf:
			s.at++
		default:
			r, n := utf8.DecodeRune(s.body[s.at:])
			if r == utf8.RuneError && n == 1 {
				return nil, s.notUTF8()
			}
			s.at += n
		}
	}
}

// plain passes over bytes that need no look of their own, eight at a time: it stops at the first quote, backslash,
// control character or byte of a longer UTF-8 sequence.
func (s *scanner) plain() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for len(s.body)-s.at >= 8 {
		w := binary.LittleEndian.Uint64(s.body[s.at:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// x-ones sets the top bit of the lowest byte that is 0; borrows can only mark bytes above a marked one, so the
		// lowest mark is always right. w-ones*0x20 does the same for bytes under 0x20.
		stop := ((quote - ones) | (slash - ones) | (w - ones*0x20) | w) & tops
		if stop != 0 {
			s.at += bits.TrailingZeros64(stop) / 8
			return
		}
		s.at += 8
	}
	for s.at < len(s.body) {
		if c := s.body[s.at]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return
		}
		s.at++
	}
}

// escape passes over one escape, or over the two that make a surrogate pair, its backslash at hand.
func (s *scanner) escape() error {
	start := s.at
	s.at++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at++
		return nil
	case 'u':
	default:
		return s.unexpected("an escape that JSON knows")
	}
	s.at++
	first, err := s.hex()
	if err != nil {
		return err
	}
	if first < 0xd800 || first > 0xdfff {
		return nil
	}
	next := s.at
	if first <= 0xdbff && s.take('\\') && s.take('u') {
		second, err := s.hex()
		if err != nil {
			return err
		}
		if second >= 0xdc00 && second <= 0xdfff {
			return nil
		}
	}
	s.at = next
	if s.halves {
		return nil
	}
	return s.fail(CodeUnpairedSurrogate,
		"The string at byte %d contains half of a surrogate pair (\\u%04x). Text was probably cut inside an emoji. Cut it between characters.",
		start+1, first)
}

func (s *scanner) hex() (rune, error) {
	var r rune
	for range 4 {
		c := s.peek()
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, s.unexpected("four hexadecimal digits")
		}
		s.at++
	}
	return r, nil
}
