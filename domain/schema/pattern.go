package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bounds of patterns, in instructions of the compiled programs: a counted repetition makes many of a short text.
// The usual pattern of an e-mail address has 259, one of a URL 548, and ^.{1,1000}$ has 2003.
const (
	maxPattern  = 2_500
	maxPatterns = 20_000 // of all patterns of a schema
)

// patterns are a schema's compiled patterns by their text. They are shared by all its copies.
type patterns struct {
	known map[string]*pattern
	total int
}

type pattern struct {
	*regexp.Regexp
	size int // instructions
}

// add compiles a pattern and checks the bounds.
func (ps *patterns) add(text string) (*pattern, error) {
	if p := ps.known[text]; p != nil {
		return p, nil
	}
	p, err := compilePattern(text)
	if err != nil {
		return nil, err
	}
	if ps.total += p.size; ps.total > maxPatterns {
		return nil, errPatterns
	}
	ps.known[text] = p
	return p, nil
}

var (
	errPattern  = fmt.Errorf("the pattern is too complex: it compiles to more than %d instructions. Use maxLength instead of a counted repetition", maxPattern)
	errPatterns = fmt.Errorf("the patterns of the schema are too complex: they compile to more than %d instructions", maxPatterns)
)

func compilePattern(text string) (*pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	// The parsed form is small however large the program is, so the program is not made if it would be far too large.
	if instructions(parsed) > 4*maxPattern {
		return nil, errPattern
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxPattern {
		return nil, errPattern
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{Regexp: compiled, size: len(program.Inst)}, nil
}

// instructions is about the size of the program of a parsed pattern. It stops counting far above the bound.
func instructions(re *syntax.Regexp) int {
	sum := 1
	for _, sub := range re.Sub {
		if sum += instructions(sub); sum > 1<<20 {
			return sum
		}
	}
	switch re.Op { //nolint:exhaustive // all others are an instruction and their parts
	case syntax.OpLiteral:
		sum += len(re.Rune)
	case syntax.OpRepeat:
		sum *= max(re.Min, re.Max, 1)
	}
	return sum
}

// metered is a pattern that pays for each match before it begins.
type metered struct {
	*pattern
	meter *meter
}

// MatchString pays by the worst case, in which every instruction looks at every byte.
func (p metered) MatchString(text string) bool {
	p.meter.pay(1 + p.size*len(text)/stepsPerUnit)
	return p.pattern.MatchString(text)
}

// engine compiles patterns for the library. A check compiles texts too, where the format is regex; these are not kept.
func (ps *patterns) engine(m *meter) jsonschema.RegexpEngine {
	return func(text string) (jsonschema.Regexp, error) {
		p := ps.known[text]
		if p == nil {
			var err error
			if p, err = compilePattern(text); err != nil {
				return nil, err
			}
		}
		return metered{p, m}, nil
	}
}
