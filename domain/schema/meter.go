package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The price of a check. A unit is about the time that the library needs to apply one subschema to one value: 1 to 2 µs.
const (
	maxUnits      = 200_000 // of one check: about half a second of a slow core, and 100 MB of mismatches
	stepsPerUnit  = 200     // of a pattern: instructions times bytes
	lookAfter     = 2_000   // units between two looks at whether the caller still waits
	maxNumber     = 400     // digits and exponent of a number: the library computes exact fractions
	cheapValues   = 20      // so many values are compared, hashed or looked up in a unit
	numericUnits  = 4       // a comparison of numbers, or a remainder
	regexpFormat  = 500     // a text that has to be a regular expression is compiled
	tooCostlyText = "The data takes too long to check against its schema. Send less data, or simplify the schema."
)

// meter counts what one check costs. The library has no context: a check that costs too much, or whose caller is no
// longer waiting, ends by a panic that run recovers.
type meter struct {
	left    int
	look    int // at stop when left is below
	stop    func() bool
	running bool
}

type (
	tooCostly struct{}
	stopped   struct{}
)

// run calls f, which is metered. Where the meter ends it, the error is errTooCostly or ErrStopped.
func (m *meter) run(stop func() bool, f func() error) (err error) {
	m.left, m.look, m.stop, m.running = maxUnits, maxUnits-lookAfter, stop, true
	defer func() {
		m.running, m.stop = false, nil
		switch r := recover().(type) {
		case nil:
		case tooCostly:
			err = errTooCostly
		case stopped:
			err = ErrStopped
		default:
			panic(r)
		}
	}()
	return f()
}

// pay is called before the work that it is for.
func (m *meter) pay(units int) {
	if !m.running {
		return
	}
	if m.left -= units; m.left < 0 {
		panic(tooCostly{})
	}
	if m.left < m.look {
		m.look = m.left - lookAfter
		if m.stop != nil && m.stop() {
			panic(stopped{})
		}
	}
}

// price is what a compiled subschema costs.
type price struct {
	try       int            // before anything of it is metered: the comparison with its constants
	inPlace   int            // what applies to the same value
	perMember int            // of an object
	members   map[string]int // of an object that has a property of the name
	perItem   int            // of an array
	first     int            // the leading items of an array
	number    int
	text      int
	unique    bool
}

// attach makes the library call the meter before it applies any subschema below s. A format is the first thing that
// the library runs on a value whose type and constants fit.
func (m *meter) attach(s *jsonschema.Schema, known map[*jsonschema.Schema]*price) *price {
	if s == nil {
		return &price{}
	}
	if p := known[s]; p != nil {
		return p
	}
	p := &price{
		try:    1 + len(s.Required)/cheapValues,
		unique: s.UniqueItems,
		number: numericUnits * countNumeric(s),
	}
	known[s] = p
	if s.Enum != nil {
		p.try += comparing(s.Enum.Values)
	}
	if s.Const != nil {
		p.try += comparing(*s.Const)
	}
	try := func(list ...*jsonschema.Schema) (sum int) {
		for _, sub := range list {
			if sub != nil {
				sum += m.attach(sub, known).try
			}
		}
		return sum
	}
	p.inPlace = try(s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else) +
		try(s.AllOf...) + try(s.AnyOf...) + try(s.OneOf...)
	for _, sub := range s.DependentSchemas {
		p.inPlace += try(sub)
	}
	for _, sub := range s.Dependencies {
		p.inPlace += 1 + try(asSchema(sub))
	}
	for _, names := range s.DependentRequired {
		p.inPlace += 1 + len(names)/cheapValues
	}
	p.perMember = try(s.PropertyNames, s.UnevaluatedProperties, asSchema(s.AdditionalProperties))
	for _, sub := range s.PatternProperties {
		p.perMember += try(sub)
	}
	p.members = make(map[string]int, len(s.Properties))
	for name, sub := range s.Properties {
		p.members[name] = try(sub)
	}
	p.perItem = try(s.Contains, s.Items2020, s.UnevaluatedItems, asSchema(s.Items), asSchema(s.AdditionalItems))
	list, _ := s.Items.([]*jsonschema.Schema)
	p.first = try(s.PrefixItems...) + try(list...)
	own := s.Format
	if own != nil && own.Name == "regex" {
		p.text = regexpFormat
	}
	s.Format = &jsonschema.Format{
		Name: "",
		Validate: func(v any) error {
			m.pay(p.of(v))
			if own == nil {
				return nil
			}
			return own.Validate(v)
		},
	}
	if own != nil {
		s.Format.Name = own.Name
	}
	return p
}

// asSchema is the schema in a field that can hold another thing.
func asSchema(v any) *jsonschema.Schema {
	s, _ := v.(*jsonschema.Schema)
	return s
}

func countNumeric(s *jsonschema.Schema) (n int) {
	for _, bound := range []bool{
		s.Minimum != nil, s.Maximum != nil, s.ExclusiveMinimum != nil, s.ExclusiveMaximum != nil, s.MultipleOf != nil,
	} {
		if bound {
			n++
		}
	}
	return n
}

// of is what follows for a value.
func (p *price) of(v any) int {
	units := p.inPlace
	switch v := v.(type) {
	case map[string]any:
		units += len(v)/cheapValues + len(v)*p.perMember
		if len(p.members) < len(v) {
			for name, n := range p.members {
				if _, has := v[name]; has {
					units += n
				}
			}
			break
		}
		for name := range v {
			units += p.members[name]
		}
	case []any:
		units += len(v)/cheapValues + len(v)*p.perItem + p.first
		if p.unique {
			units += comparing(v)
		}
	case string:
		units += p.text + len(v)/(cheapValues*stepsPerUnit)
	case json.Number:
		units += p.number
	}
	return units
}

// comparing is what it costs to compare a value with another, or to hash it.
func comparing(v any) int {
	values, numbers := count(v)
	return values/cheapValues + numbers
}

func count(v any) (values, numbers int) {
	add := func(v any) {
		a, b := count(v)
		values, numbers = values+a, numbers+b
	}
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			add(member)
		}
	case []any:
		for _, item := range v {
			add(item)
		}
	case json.Number:
		numbers++
	}
	return values + 1, numbers
}

// longNumber finds a number that the library would compute with for long: 1e999999 has a million digits. path is where.
func longNumber(v any, path []string) (found []string, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if found, ok := longNumber(member, append(slices.Clip(path), name)); ok {
				return found, true
			}
		}
	case []any:
		for _, item := range v {
			if found, ok := longNumber(item, path); ok {
				return found, true
			}
		}
	case json.Number:
		digits, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		exponent = strings.TrimLeft(exponent, "+-0")
		// Any exponent of more than three digits is beyond the bound.
		return path, len(digits) > maxNumber || len(exponent) > 3 || len(exponent) == 3 && exponent > "400"
	}
	return nil, false
}
