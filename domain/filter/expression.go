package filter

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"posthorn/domain/fault"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
)

// The bounds on an expression. A unit of cost is about 50 to 100 ns here, so that one run of a hostile expression ends
// within a millisecond or two: see bounds.go for what each operation costs.
const (
	maxNesting   = 64      // brackets in brackets, and operators in a row
	maxNodes     = 2000    // of the syntax tree, macros expanded
	maxEstimate  = 500_000 // units, for an event whose lists and texts have assumedSize elements and characters
	assumedSize  = 100
	maxCost      = 15_000  // units in one run
	maxPattern   = 500     // instructions of a compiled regular expression
	maxSteps     = 1 << 18 // of a regular expression in one match: instructions times bytes
	maxText      = 64 << 10
	maxComparing = 2000 // elements of two lists or objects that are compared whole
)

// environment is what expressions can use: CEL's standard library over three variables. It takes milliseconds to build
// and is shared.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("type", cel.StringType),
		cel.Variable("data", cel.DynType),
		cel.Variable("channels", cel.ListType(cel.StringType)),
		cel.CustomTypeAdapter(adapter{}),
		cel.ParserExpressionSizeLimit(maxFilter),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserErrorRecoveryLimit(4),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ASTValidators(cel.ValidateTimestampLiterals(), cel.ValidateDurationLiterals()),
	)
})

func compileExpression(expression string) (*Filter, error) {
	if strings.TrimSpace(expression) == "" {
		return nil, nil
	}
	env, err := environment()
	if err != nil {
		return nil, &fault.Error{Kind: fault.Internal, Code: "internal", Detail: "Filters can't be compiled right now. Try again, and contact the operator if this persists.", Cause: err}
	}
	compiling.Lock()
	tree, issues := env.Compile(expression)
	compiling.Unlock()
	if issues.Err() != nil {
		return nil, issueFault(issues)
	}
	if out := tree.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, invalid(fmt.Sprintf("The filter's expression returns a value of type %s. It must return true or false, for example with a comparison.", out))
	}
	readsData, err := inspect(tree)
	if err != nil {
		return nil, err
	}
	estimate, err := env.EstimateCost(tree, estimator{})
	if err != nil || estimate.Max > maxEstimate {
		return nil, invalid("The filter's expression is too expensive for large events. Use fewer nested loops (all, exists, map, filter).")
	}
	program, err := env.Program(tree,
		cel.EvalOptions(cel.OptOptimize),
		cel.CustomDecoratorV2(bound),
		cel.CostTracking(pricing{}),
		cel.CostLimit(maxCost),
	)
	if err != nil {
		return nil, invalid("The filter's expression can't be prepared: " + plainText(err.Error()) + ".")
	}
	return &Filter{program: program, readsData: readsData}, nil
}

// issueFault tells the first thing that CEL has against an expression, and where.
func issueFault(issues *cel.Issues) error {
	first := issues.Errors()[0]
	where := ""
	if first.Location != nil && first.Location.Line() > 0 {
		where = fmt.Sprintf(" at line %d, column %d", first.Location.Line(), first.Location.Column()+1)
	}
	return invalid(fmt.Sprintf("Invalid filter expression%s: %s. It can use type, data, and channels.", where, plainText(readable(first.Message))))
}

// inspect walks a checked expression once: it refuses patterns of matches() that are not literals, since their cost is
// not known before they run, and reports whether the event's data is read at all.
func inspect(tree *cel.Ast) (readsData bool, err error) {
	native := tree.NativeRep()
	ast.PreOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			readsData = readsData || e.AsIdent() == "data"
		case ast.CallKind:
			call := e.AsCall()
			if call.FunctionName() != overloads.Matches {
				return
			}
			if why := patternFault(call.Args()); why != nil && err == nil {
				at := native.SourceInfo().GetStartLocation(e.ID())
				err = invalid(fmt.Sprintf("Invalid filter expression at line %d, column %d: %s.", at.Line(), at.Column()+1, plainText(why.Error())))
			}
		}
	}))
	return readsData, err
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

// evaluationError is an error of a run in a few words that hold none of CEL's inner names.
func evaluationError(err error) error {
	var canceled interpreter.EvalCancelledError
	if errors.As(err, &canceled) {
		return errors.New("it is too expensive to evaluate")
	}
	return errors.New(plainText(err.Error()))
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
