// Package expression compiles and runs expressions that tenants write in the Common Expression Language (CEL). They run
// on the path of every event, so whatever one is, compiling it and running it are bounded.
package expression

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// The bounds on an expression. A unit of cost is about 50 to 100 ns here, so that one run of a hostile expression ends
// within a millisecond or two: see bounds.go for what each operation costs.
const (
	maxNesting   = 64   // brackets in brackets, and operators in a row
	maxNodes     = 2000 // of the syntax tree, macros expanded
	assumedSize  = 100
	maxPattern   = 500     // instructions of a compiled regular expression
	maxSteps     = 1 << 18 // of a regular expression in one match: instructions times bytes
	maxText      = 64 << 10
	maxComparing = 2000 // elements of two lists or objects that are compared whole
)

// Language is CEL's standard library over some variables, and what an expression in it can cost.
type Language struct {
	MaxSource   int    // characters of an expression
	MaxEstimate uint64 // units, for an event whose lists and texts have 100 elements and characters
	MaxCost     uint64 // units in one run
	Options     []cel.EnvOption

	once sync.Once // an environment takes milliseconds to build
	env  *cel.Env
	err  error
}

func (l *Language) environment() (*cel.Env, error) {
	l.once.Do(func() {
		l.env, l.err = cel.NewEnv(append([]cel.EnvOption{
			cel.CustomTypeAdapter(adapter{}),
			cel.ParserExpressionSizeLimit(l.MaxSource),
			cel.ParserRecursionLimit(maxNesting),
			cel.ParserErrorRecoveryLimit(4),
			cel.ExpressionNodeLimit(maxNodes),
			cel.ASTValidators(cel.ValidateTimestampLiterals(), cel.ValidateDurationLiterals()),
		}, l.Options...)...)
	})
	return l.env, l.err
}

// Problem is what is wrong with an expression, in words for people, and where. Line and column count from 1; 0: nowhere
// in particular.
type Problem struct {
	Line, Column int
	Text         string
}

// Error is the text with the place before it.
func (p *Problem) Error() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Text)
}

// ErrExpensive is an expression that would cost too much for large events.
var ErrExpensive = errors.New("the expression is too expensive for large events")

// Program is a compiled expression. It is read-only and safe for concurrent use.
type Program struct {
	program cel.Program
	tree    *cel.Ast
	reads   map[string]bool
}

// Reads reports whether the expression uses a variable at all.
func (p *Program) Reads(variable string) bool { return p.reads[variable] }

// Type is the type of the expression's value, as far as it is known.
func (p *Program) Type() *cel.Type { return p.tree.OutputType() }

// Compile prepares an expression. The error is a *Problem of the expression, ErrExpensive, or the library's own.
func (l *Language) Compile(source string) (*Program, error) {
	env, err := l.environment()
	if err != nil {
		return nil, err
	}
	compiling.Lock()
	tree, issues := env.Compile(source)
	compiling.Unlock()
	if issues.Err() != nil {
		return nil, problem(issues)
	}
	p := &Program{tree: tree, reads: map[string]bool{}}
	if err := p.inspect(); err != nil {
		return nil, err
	}
	estimate, err := env.EstimateCost(tree, estimator{})
	if err != nil || estimate.Max > l.MaxEstimate {
		return nil, ErrExpensive
	}
	p.program, err = env.Program(tree,
		cel.EvalOptions(cel.OptOptimize),
		cel.CustomDecoratorV2(bound),
		cel.CostTracking(pricing{}),
		cel.CostLimit(l.MaxCost),
	)
	if err != nil {
		return nil, &Problem{Text: "the expression can't be prepared: " + plainText(err.Error())}
	}
	return p, nil
}

// Run evaluates the expression. The error is a *Problem.
func (p *Program) Run(vars cel.Activation) (ref.Val, error) {
	out, _, err := p.program.Eval(vars)
	if err != nil {
		return nil, p.evaluationError(err)
	}
	return out, nil
}

// evaluationError is an error of a run in a few words that hold none of CEL's inner names.
func (p *Program) evaluationError(err error) *Problem {
	var canceled interpreter.EvalCancelledError
	if errors.As(err, &canceled) {
		return &Problem{Text: "it is too expensive to evaluate"}
	}
	out := &Problem{Text: plainText(err.Error())}
	var at *types.Err
	if errors.As(err, &at) && at.NodeID() != 0 {
		where := p.tree.NativeRep().SourceInfo().GetStartLocation(at.NodeID())
		if where.Line() > 0 {
			out.Line, out.Column = where.Line(), where.Column()+1
		}
	}
	return out
}

// problem is the first thing that CEL has against an expression.
func problem(issues *cel.Issues) *Problem {
	first := issues.Errors()[0]
	p := &Problem{Text: plainText(readable(first.Message))}
	if first.Location != nil && first.Location.Line() > 0 {
		p.Line, p.Column = first.Location.Line(), first.Location.Column()+1
	}
	return p
}

// inspect walks a checked expression once: it refuses patterns of matches() that are not literals, since their cost is
// not known before they run, and notes which variables are read at all.
func (p *Program) inspect() (err error) {
	native := p.tree.NativeRep()
	ast.PreOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			p.reads[e.AsIdent()] = true
		case ast.CallKind:
			call := e.AsCall()
			if call.FunctionName() != overloads.Matches {
				return
			}
			if why := patternFault(call.Args()); why != nil && err == nil {
				at := native.SourceInfo().GetStartLocation(e.ID())
				err = &Problem{Line: at.Line(), Column: at.Column() + 1, Text: plainText(why.Error())}
			}
		}
	}))
	return err
}

// patternFault says what is wrong with the pattern of a call of matches(), its last argument.
func patternFault(args []ast.Expr) error {
	if len(args) == 0 || args[len(args)-1].Kind() != ast.LiteralKind {
		return errNotLiteral
	}
	text, ok := args[len(args)-1].AsLiteral().(types.String)
	if !ok {
		return errNotLiteral
	}
	_, err := newMatcher(string(text))
	return err
}

// estimator supplies the sizes that CEL can't know when it estimates an expression.
type estimator struct{}

// EstimateSize implements cost.Estimator.
func (estimator) EstimateSize(cost.AstNode) *cost.SizeEstimate {
	return &cost.SizeEstimate{Min: 0, Max: assumedSize}
}

// EstimateCallCost implements cost.Estimator.
func (estimator) EstimateCallCost(function, _ string, _ *cost.AstNode, _ []cost.AstNode) *cost.CallEstimate {
	return nil
}

// plainText shortens one of CEL's messages, which can quote what an event or an expression held, and puts the frequent
// ones into words.
func plainText(message string) string {
	if message == "no such overload" {
		message = "an operation doesn't support the types of its values"
	}
	if name, missing := strings.CutPrefix(message, "no such key: "); missing {
		message = "the field " + name + " is missing (use has() to test for a field)"
	}
	if at, outside := strings.CutPrefix(message, "index out of bounds: "); outside {
		message = "the list has no element " + at
	}
	message = strings.Join(strings.Fields(message), " ")
	if runes := []rune(message); len(runes) > 160 {
		message = string(runes[:160]) + "..."
	}
	return strings.TrimSuffix(message, ".")
}

// compiling lets one expression be compiled at a time: the parser's generated code shares tables that it fills as it
// goes.
var compiling sync.Mutex
