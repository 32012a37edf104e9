package expression

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// CEL counts the cost of a call after the call, and some calls can use up the whole time limit of a run, or a hundred
// times as much: comparing two deep structures, a regular expression over a megabyte. So three operations are replaced
// by ones that weigh their arguments and pay first, texts of more than 64 KiB are errors, and every other call pays by
// the length of the texts that it reads.

// adapter turns an event's values into CEL's. Every value that an expression uses passes through it; a value that is
// only stepped through on the way to a field does not.
type adapter struct{}

// largeObject is from where on an object is not indexed by CEL's own type, which copies all keys whenever a loop over
// it starts, a cost that nothing counts.
const largeObject = 32

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case string:
		if len(v) > maxText {
			return types.NewErr("strings of more than %d KiB can't be used in an expression", maxText>>10)
		}
		return types.String(v)
	case json.Number:
		return number(v)
	case map[string]any:
		if len(v) > largeObject {
			return types.NewDynamicMap(a, v)
		}
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

// number is a number of JSON: an integer where it is one of 64 bits, else the nearest double.
func number(n json.Number) ref.Val {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return types.Int(i)
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return types.Uint(u)
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return types.NewErr("the number is too large")
	}
	return types.Double(f)
}

// pricing is what calls cost in units. It replaces CEL's own figures for texts, which take a lookup for a traversal and
// a count of characters for nothing.
type pricing struct{}

// charge is the pretended call by which the replaced operations pay; its argument is the price.
type charge struct{}

const chargeID = "posthorn_charge"

func (charge) Function() string   { return chargeID }
func (charge) OverloadID() string { return chargeID }

// CallCost implements cost.ActualCostEstimator.
func (pricing) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	units := uint64(1)
	switch function {
	case chargeID:
		units = uint64(args[0].(types.Uint))
	case operators.LogicalAnd, operators.LogicalOr, operators.Conditional:
		return nil // CEL's own: nothing
	default:
		per := 64 // bytes that a unit pays for
		if overloads.IsTypeConversionFunction(function) {
			per = 4 // a text that is no number or time is quoted into the error
		}
		for _, arg := range args {
			units += uint64(length(arg) / per)
		}
	}
	return &units
}

// length is the number of bytes of a text, 0 of anything else.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

// pay charges units, and ends the run when that is more than it has left.
func pay(frame *interpreter.ExecutionFrame, id int64, units int) {
	if tracker := frame.CostTracker(); tracker != nil {
		tracker.EvalUnary(frame, id, charge{}, types.Uint(units), types.True)
	}
}

// bound replaces the operations that must pay first.
func bound(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return i, nil
	}
	o := operation{id: call.ID(), lhs: call.Args()[0], rhs: call.Args()[1]}
	switch call.Function() {
	case operators.Equals:
		o.do = equals
	case operators.NotEquals:
		o.do = func(frame *interpreter.ExecutionFrame, id int64, l, r ref.Val) ref.Val {
			res := equals(frame, id, l, r)
			if same, ok := res.(types.Bool); ok {
				return !same
			}
			return res
		}
	case operators.In:
		if _, literal := o.rhs.(interpreter.InterpretableConst); literal {
			return i, nil // bounded by the expression, and CEL makes a set of it
		}
		o.do = contains
	case operators.Add:
		o.do = add
	case overloads.Matches:
		literal, ok := o.rhs.(interpreter.InterpretableConst)
		if !ok {
			return nil, errNotLiteral
		}
		text, ok := literal.Value().(types.String)
		if !ok {
			return nil, errNotLiteral
		}
		m, err := newMatcher(string(text))
		if err != nil {
			return nil, err
		}
		o.do = m.match
	default:
		return i, nil
	}
	return &o, nil
}

// operation is a call of two arguments that is evaluated by a function of ours.
type operation struct {
	id       int64
	lhs, rhs interpreter.InterpretableV2
	do       func(frame *interpreter.ExecutionFrame, id int64, l, r ref.Val) ref.Val
}

// ID implements interpreter.Interpretable.
func (o *operation) ID() int64 { return o.id }

// Eval implements interpreter.Interpretable.
func (o *operation) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, o.Exec)
}

// Exec implements interpreter.InterpretableV2.
func (o *operation) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	l := o.lhs.Exec(frame)
	if types.IsUnknownOrError(l) {
		return l
	}
	r := o.rhs.Exec(frame)
	if types.IsUnknownOrError(r) {
		return r
	}
	return o.do(frame, o.id, l, r)
}

var errTooLarge = types.NewErr("lists or objects of more than %d elements can't be compared", maxComparing)

// equals is == on values of any type.
func equals(frame *interpreter.ExecutionFrame, id int64, l, r ref.Val) ref.Val {
	if container(l) && container(r) {
		units := weigh(l, maxComparing)
		units += weigh(r, maxComparing-units)
		// The weighing is paid even where nothing is compared, since || goes on after an error.
		pay(frame, id, 3*units)
		if units > maxComparing {
			return errTooLarge
		}
	}
	pay(frame, id, 1)
	return types.Equal(l, r)
}

// contains is in: an element of a list, or a key of an object.
func contains(frame *interpreter.ExecutionFrame, id int64, l, r ref.Val) ref.Val {
	within, ok := r.(traits.Container)
	if !ok {
		return types.MaybeNoSuchOverloadErr(r)
	}
	units := 1
	if list, ok := r.(traits.Lister); ok {
		size, ok := list.Size().(types.Int)
		if !ok {
			return types.MaybeNoSuchOverloadErr(list.Size())
		}
		units += int(size) / 4
		if container(l) {
			each := weigh(l, maxComparing)
			all := weigh(r, maxComparing)
			pay(frame, id, 2*(each+all))
			if each+all > maxComparing {
				return errTooLarge
			}
			units = min(all, each*int(size)) // no comparison goes deeper than either side
		}
	}
	pay(frame, id, units)
	return within.Contains(l)
}

// add is + on values of any type. CEL joins two lists by remembering both, so that a list of many joints takes many
// steps for every element that is read; ours are copied.
func add(frame *interpreter.ExecutionFrame, id int64, l, r ref.Val) ref.Val {
	first, ok := l.(traits.Adder)
	if !ok {
		return types.MaybeNoSuchOverloadErr(l)
	}
	left, ok := l.(traits.Lister)
	right, both := r.(traits.Lister)
	if _, accumulator := l.(traits.MutableLister); accumulator || !ok || !both {
		pay(frame, id, 1+(length(l)+length(r))/64)
		return first.Add(r)
	}
	n, okLeft := left.Size().(types.Int)
	m, okRight := right.Size().(types.Int)
	if !okLeft || !okRight {
		return types.MaybeNoSuchOverloadErr(r)
	}
	pay(frame, id, 1+int(n+m)) // before anything is copied
	items := make([]ref.Val, 0, n+m)
	for _, list := range []traits.Lister{left, right} {
		for it := list.Iterator(); it.HasNext() == types.True; {
			items = append(items, it.Next())
		}
	}
	return types.NewRefValList(adapter{}, items)
}

func container(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		return true
	}
	return false
}

// weigh counts the values that a value is made of, texts by length, up to something over a limit: at most that many
// steps.
func weigh(v ref.Val, limit int) int {
	n := 1
	switch v := v.(type) {
	case types.String:
		n += len(v) / 1024
	case traits.Lister:
		for it := v.Iterator(); n <= limit && it.HasNext() == types.True; {
			n += weigh(it.Next(), limit-n)
		}
	case traits.Mapper:
		for it := v.Iterator(); n <= limit && it.HasNext() == types.True; {
			key := it.Next()
			n += weigh(key, limit-n)
			if member, ok := v.Find(key); ok {
				n += weigh(member, limit-n)
			}
		}
	}
	return n
}

// matcher is matches() with its literal pattern compiled.
type matcher struct {
	pattern *regexp.Regexp
	size    int // instructions
}

var (
	errNotLiteral      = errors.New("the pattern of matches() must be a string literal")
	errPatternTooLarge = fmt.Errorf("the pattern of matches() is too complex: it compiles to more than %d instructions", maxPattern)
)

func newMatcher(text string) (*matcher, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxPattern {
		return nil, errPatternTooLarge
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &matcher{pattern: compiled, size: len(program.Inst)}, nil
}

// match pays by the worst case, in which every instruction looks at every byte.
func (m *matcher) match(frame *interpreter.ExecutionFrame, id int64, l, _ ref.Val) ref.Val {
	text, ok := l.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(l)
	}
	steps := m.size * (len(text) + 1)
	if steps > maxSteps {
		return types.NewErr("a string of %d bytes is too long for the pattern of matches()", len(text))
	}
	pay(frame, id, 1+steps/32)
	return types.Bool(m.pattern.MatchString(string(text)))
}
