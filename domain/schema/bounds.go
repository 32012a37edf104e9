package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// size is how large a part of a schema is.
type size struct {
	nodes int // objects of the schema, those behind $ref too
	done  bool
}

// walker sums up a schema before the library sees it. A schema that refers back to an enclosing part could be unfolded
// without end, and one whose parts refer to each other in pairs doubles with each step. The sum finds both.
type walker struct {
	root     any
	known    map[string]*size // by pointer
	patterns patterns
}

// notSchemas are keywords whose values are data.
var notSchemas = map[string]bool{"enum": true, "const": true, "default": true, "examples": true, "example": true}

// refer sums up what a pointer leads to.
func (w *walker) refer(pointer string) error {
	s := w.known[pointer]
	if s != nil {
		if !s.done {
			return invalid(fmt.Sprintf("The schema is recursive at %.100q, which isn't supported. Write the levels out, or leave the deeper levels open.", pointer))
		}
		return nil
	}
	target, ok := w.find(pointer)
	if !ok {
		return invalid(fmt.Sprintf("The schema's $ref %.100q doesn't resolve. A $ref must point into the same schema, such as #/$defs/address.", pointer))
	}
	s = &size{}
	w.known[pointer] = s
	if err := w.walk(target, s, pointer == "#"); err != nil {
		return err
	}
	s.done = true
	return nil
}

func (w *walker) walk(v any, into *size, top bool) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := w.walk(item, into, false); err != nil {
				return err
			}
		}
	case map[string]any:
		into.nodes++
		for keyword, value := range v {
			if err := w.keyword(keyword, value, into, top); err != nil {
				return err
			}
		}
	}
	if into.nodes > maxNodes {
		return invalid(fmt.Sprintf("The schema has more than %d subschemas, counting each $ref target every time. Simplify it.", maxNodes))
	}
	return nil
}

func (w *walker) keyword(keyword string, value any, into *size, top bool) error {
	text, isText := value.(string)
	switch {
	case notSchemas[keyword]:
		return nil
	case isText && keyword == "$ref":
		if err := w.refer(text); err != nil {
			return err
		}
		into.nodes += w.known[text].nodes
	case isText && (keyword == "$dynamicRef" || keyword == "$recursiveRef" || keyword == "$anchor" || keyword == "$dynamicAnchor" || keyword == "$id" && !top):
		return invalid(fmt.Sprintf("The schema uses %s, which isn't supported. Use $ref to a place such as #/$defs/address.", keyword))
	case isText && keyword == "pattern":
		return w.pattern(text)
	case keyword == "patternProperties":
		named, _ := value.(map[string]any)
		for text := range named {
			if err := w.pattern(text); err != nil {
				return err
			}
		}
	}
	return w.walk(value, into, false)
}

// pattern compiles a pattern. What is no regular expression is the library's to say: it knows the place.
func (w *walker) pattern(text string) error {
	_, err := w.patterns.add(text)
	if errors.Is(err, errPattern) || errors.Is(err, errPatterns) {
		return invalid(fmt.Sprintf("The schema's pattern %.100q can't be used: %v.", text, err))
	}
	return nil
}

// find follows a JSON pointer (RFC 6901) that is written as a fragment.
func (w *walker) find(pointer string) (any, bool) {
	at := w.root
	if pointer == "#" {
		return at, true
	}
	rest, ok := strings.CutPrefix(pointer, "#/")
	if !ok || strings.Contains(rest, "%") {
		return nil, false
	}
	for part := range strings.SplitSeq(rest, "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch v := at.(type) {
		case map[string]any:
			if at, ok = v[part]; !ok {
				return nil, false
			}
		case []any:
			n, err := strconv.Atoi(part)
			if err != nil || n < 0 || n >= len(v) {
				return nil, false
			}
			at = v[n]
		default:
			return nil, false
		}
	}
	return at, true
}
