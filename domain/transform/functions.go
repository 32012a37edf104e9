package transform

import (
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// maxString bounds what a function returns, as texts in expressions are bounded.
const maxString = 64 << 10

// functions are what expressions have beside CEL's standard library, under the names of CEL's own extension for
// strings (https://pkg.go.dev/github.com/google/cel-go/ext). That extension itself is not used: a replacement of a long
// text in a long text has no bound there.
var functions = []cel.EnvOption{
	cel.Function("json", cel.Overload("json_dyn", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(asJSON))),
	unary("lowerAscii", func(s string) string { return strings.Map(lower, s) }),
	unary("upperAscii", func(s string) string { return strings.Map(upper, s) }),
	unary("trim", strings.TrimSpace),
	cel.Function("percentEncode", cel.Overload("percent_encode_string", []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(percentEncode))),
	cel.Function("replace", cel.MemberOverload("string_replace", []*cel.Type{cel.StringType, cel.StringType, cel.StringType}, cel.StringType,
		cel.FunctionBinding(replace))),
	cel.Function("split", cel.MemberOverload("string_split", []*cel.Type{cel.StringType, cel.StringType}, cel.ListType(cel.StringType),
		cel.BinaryBinding(split))),
	cel.Function("join", cel.MemberOverload("list_join", []*cel.Type{cel.ListType(cel.StringType), cel.StringType}, cel.StringType,
		cel.BinaryBinding(join))),
	cel.Function("substring",
		cel.MemberOverload("string_substring", []*cel.Type{cel.StringType, cel.IntType}, cel.StringType, cel.BinaryBinding(func(s, from ref.Val) ref.Val {
			return substring(s, from, types.Int(maxString))
		})),
		cel.MemberOverload("string_substring_range", []*cel.Type{cel.StringType, cel.IntType, cel.IntType}, cel.StringType, cel.FunctionBinding(func(a ...ref.Val) ref.Val {
			return substring(a[0], a[1], a[2])
		})),
	),
}

// Functions are the functions of expressions, for other languages.
func Functions() []cel.EnvOption { return slices.Clone(functions) }

func unary(name string, do func(string) string) cel.EnvOption {
	return cel.Function(name, cel.MemberOverload("string_"+strings.ToLower(name), []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(func(v ref.Val) ref.Val {
		s, ok := v.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(v)
		}
		return types.String(do(string(s)))
	})))
}

func lower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

func upper(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r + 'A' - 'a'
	}
	return r
}

// asJSON is a value as the text of its JSON.
func asJSON(v ref.Val) ref.Val {
	text, err := appendValue(nil, v, 0)
	switch {
	case err != nil:
		return types.NewErr("%s", err.Error())
	case len(text) > maxString:
		return types.NewErr("the text would be longer than %d KiB", maxString>>10)
	}
	return types.String(text)
}

// percentEncode is a text as a header of CloudEvents has it (HTTP binding 1.0, section 3.1.3.2).
func percentEncode(v ref.Val) ref.Val {
	s, ok := v.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			out.WriteByte('%')
			out.WriteByte(hex[c>>4])
			out.WriteByte(hex[c&15])
		} else {
			out.WriteByte(c)
		}
	}
	return types.String(out.String())
}

// replace replaces every occurrence of a text in another, if the result is not too long.
func replace(a ...ref.Val) ref.Val {
	s, ok := a[0].(types.String)
	from, isFrom := a[1].(types.String)
	to, isTo := a[2].(types.String)
	if !ok || !isFrom || !isTo {
		return types.MaybeNoSuchOverloadErr(a[0])
	}
	if len(s)+strings.Count(string(s), string(from))*(len(to)-len(from)) > maxString {
		return types.NewErr("the text would be longer than %d KiB", maxString>>10)
	}
	return types.String(strings.ReplaceAll(string(s), string(from), string(to)))
}

// maxParts bounds the list that split makes.
const maxParts = 1000

func split(s, by ref.Val) ref.Val {
	text, ok := s.(types.String)
	sep, isText := by.(types.String)
	if !ok || !isText {
		return types.MaybeNoSuchOverloadErr(s)
	}
	parts := strings.SplitN(string(text), string(sep), maxParts+1)
	if len(parts) > maxParts {
		return types.NewErr("the text has more than %d parts", maxParts)
	}
	return types.NewStringList(types.DefaultTypeAdapter, parts)
}

func join(l, by ref.Val) ref.Val {
	list, ok := l.(traits.Lister)
	sep, isText := by.(types.String)
	if !ok || !isText {
		return types.MaybeNoSuchOverloadErr(l)
	}
	var out strings.Builder
	first := true
	for it := list.Iterator(); it.HasNext() == types.True; {
		item, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("join needs a list of strings")
		}
		if !first {
			out.WriteString(string(sep))
		}
		first = false
		out.WriteString(string(item))
		if out.Len() > maxString {
			return types.NewErr("the text would be longer than %d KiB", maxString>>10)
		}
	}
	return types.String(out.String())
}

// substring is the characters from one position up to another, or to the end of the text if that comes first.
func substring(s, from, to ref.Val) ref.Val {
	text, ok := s.(types.String)
	first, isFirst := from.(types.Int)
	last, isLast := to.(types.Int)
	if !ok || !isFirst || !isLast {
		return types.MaybeNoSuchOverloadErr(s)
	}
	if first < 0 || last < first {
		return types.NewErr("substring needs a start of 0 or more, and an end that is not before it")
	}
	start, end, n := len(text), len(text), types.Int(0)
	for at := 0; at < len(text); n++ {
		if n == first {
			start = at
		}
		if n == last {
			end = at
			break
		}
		_, size := utf8.DecodeRuneInString(string(text[at:]))
		at += size
	}
	return text[min(start, end):end]
}
