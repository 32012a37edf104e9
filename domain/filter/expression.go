package filter

import (
	"errors"
	"fmt"
	"strings"

	"posthorn/domain/expression"
	"posthorn/domain/fault"

	"cel.dev/cel-go/cel"
)

// language is what filters can use: CEL's standard library over three variables. A run of a hostile one ends within a
// millisecond or two.
var language = &expression.Language{
	MaxSource:   maxFilter,
	MaxEstimate: 500_000,
	MaxCost:     15_000,
	Options: []cel.EnvOption{
		cel.Variable("type", cel.StringType),
		cel.Variable("data", cel.DynType),
		cel.Variable("channels", cel.ListType(cel.StringType)),
	},
}

func compileExpression(source string) (*Filter, error) {
	if strings.TrimSpace(source) == "" {
		return nil, nil
	}
	program, err := language.Compile(source)
	var wrong *expression.Problem
	switch {
	case errors.As(err, &wrong):
		where := ""
		if wrong.Line > 0 {
			where = fmt.Sprintf(" at line %d, column %d", wrong.Line, wrong.Column)
		}
		return nil, invalid("Invalid filter expression" + where + ": " + wrong.Text + ". It can use type, data, and channels.")
	case errors.Is(err, expression.ErrExpensive):
		return nil, invalid("The filter's expression is too expensive for large events. Use fewer nested loops (all, exists, map, filter).")
	case err != nil:
		return nil, &fault.Error{Kind: fault.Internal, Code: "internal", Detail: "Filters can't be compiled right now. Try again, and contact the operator if this persists.", Cause: err}
	}
	if out := program.Type(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, invalid(fmt.Sprintf("The filter's expression returns a value of type %s. It must return true or false, for example with a comparison.", out))
	}
	return &Filter{program: program, readsData: program.Reads("data")}, nil
}
