package docs

import (
	"encoding/json"
	"fmt"
	"go/format"
	"reflect"
	"slices"
	"strings"
	"time"

	"posthorn/client"
)

// goCode is the call of the SDK for Go, with its error handled as in a function that returns one. The SDK's own types
// determine how each value is written.
func (r request) goCode() string {
	name := strings.ToUpper(r.operation[:1]) + r.operation[1:]
	if r.operation == emitting {
		name = "Emit"
	}
	method, ok := goMethods[strings.ToLower(name)]
	if !ok {
		return ""
	}
	arguments, path := []string{"ctx"}, r.path
	for i := 2; i < method.Type.NumIn(); i++ { // the first two are the receiver and the context
		in := method.Type.In(i)
		switch {
		case len(path) > 0:
			arguments = append(arguments, quoteJSON(path[0].value))
			path = path[1:]
		case strings.HasSuffix(in.Name(), "Params"):
			arguments = append(arguments, "client."+in.Name()+"{}")
		default:
			text, _ := goValue(in, r.body)
			arguments = append(arguments, text)
		}
	}
	call := "c." + method.Name + "(" + strings.Join(arguments, ", ") + ")"
	text := fmt.Sprintf("c, err := client.New(%q, os.Getenv(\"POSTHORN_API_KEY\"))\nif err != nil {\nreturn err\n}\n", r.server)
	switch {
	case r.empty:
		text += "if err := " + call + "; err != nil {\nreturn err\n}"
	case r.stream:
		text += "response, err := " + call + "\nif err != nil {\nreturn err\n}\ndefer response.Body.Close()\n_, err = io.Copy(os.Stdout, response.Body)"
	case r.list:
		text += "page, err := " + call + "\nif err != nil {\nreturn err\n}\nfmt.Println(len(page.Data))"
	default:
		text += "result, err := " + call + "\nif err != nil {\nreturn err\n}\nfmt.Printf(\"%+v\\n\", result)"
	}
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return text
	}
	return string(formatted)
}

// goMethods are the methods of the SDK, by their names in lower case: the generator writes some words in capitals.
var goMethods = func() map[string]reflect.Method {
	of := reflect.TypeFor[*client.Client]()
	methods := make(map[string]reflect.Method, of.NumMethod())
	for i := range of.NumMethod() {
		methods[strings.ToLower(of.Method(i).Name)] = of.Method(i)
	}
	return methods
}()

const nullablePackage = "github.com/oapi-codegen/nullable"

// goValue writes an example's value as a value of a type of the SDK; false: the type can't be written as a literal.
func goValue(t reflect.Type, v any) (text string, ok bool) {
	switch {
	case t.PkgPath() == nullablePackage:
		if v == nil {
			return "client.Null[" + goType(t.Elem()) + "]()", true
		}
		text, ok = goTyped(t.Elem(), v)
		return "client.Value(" + text + ")", ok
	case t == reflect.TypeFor[time.Time]():
		given, _ := v.(string)
		at, err := time.Parse(time.RFC3339, given)
		return fmt.Sprintf("time.Date(%d, %d, %d, %d, %d, %d, 0, time.UTC)", at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second()), err == nil
	case t == reflect.TypeFor[json.RawMessage]():
		return "json.RawMessage(`" + compact(v) + "`)", !strings.Contains(compact(v), "`")
	}
	switch t.Kind() {
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Struct && t.Elem() != reflect.TypeFor[time.Time]() {
			text, ok = goValue(t.Elem(), v)
			return "&" + text, ok
		}
		text, ok = goTyped(t.Elem(), v)
		return "new(" + text + ")", ok
	case reflect.Struct:
		return goStruct(t, v)
	case reflect.Slice, reflect.Map:
		return goList(t, v)
	case reflect.Interface:
		return goAny(v), true
	case reflect.String:
		given, isText := v.(string)
		return quoteJSON(given), isText
	}
	return compact(v), true
}

// goTyped writes a value with its type, if the context does not determine the type.
func goTyped(t reflect.Type, v any) (string, bool) {
	text, ok := goValue(t, v)
	switch name := goType(t); {
	case t.Kind() > reflect.Complex128 && t.Kind() != reflect.String, name == "string", name == "int", name == "bool":
		return text, ok
	}
	return goType(t) + "(" + text + ")", ok
}

// goType is the name of a type in a program that uses the SDK. json.RawMessage is an alias in newer versions of Go, and
// reflection tells the name of the type behind it.
func goType(t reflect.Type) string {
	return strings.ReplaceAll(t.String(), reflect.TypeFor[json.RawMessage]().String(), "json.RawMessage")
}

func goStruct(t reflect.Type, v any) (string, bool) {
	given, isObject := v.(object)
	if t.Name() == "" || !isObject && v != nil {
		return "", false
	}
	var b strings.Builder
	b.WriteString(goType(t) + "{")
	whole := true
	for _, p := range given {
		at := slices.IndexFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return name == p.name
		})
		if at < 0 {
			whole = false
			continue
		}
		field := reflect.VisibleFields(t)[at]
		text, ok := goValue(field.Type, p.value)
		if whole = whole && ok; ok {
			b.WriteString("\n" + field.Name + ": " + text + ",")
		}
	}
	if len(given) > 0 {
		b.WriteString("\n")
	}
	return b.String() + "}", whole
}

func goList(t reflect.Type, v any) (string, bool) {
	var parts []string
	whole := true
	add := func(name string, v any) {
		text, ok := goValue(t.Elem(), v)
		whole = whole && ok
		if t.Elem().Kind() == reflect.Struct {
			text = strings.TrimPrefix(text, goType(t.Elem())) // the type of the list determines it
		}
		parts = append(parts, name+text)
	}
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			add("", one)
		}
	case object:
		for _, p := range v {
			add(quoteJSON(p.name)+": ", p.value)
		}
	default:
		return "", false
	}
	return goType(t) + "{" + strings.Join(parts, ", ") + "}", whole
}

// goAny writes a value for a parameter of any JSON.
func goAny(v any) string {
	var parts []string
	switch v := v.(type) {
	case nil:
		return "nil"
	case object:
		for _, p := range v {
			parts = append(parts, quoteJSON(p.name)+": "+goAny(p.value))
		}
		return "map[string]any{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, one := range v {
			parts = append(parts, goAny(one))
		}
		return "[]any{" + strings.Join(parts, ", ") + "}"
	}
	return compact(v)
}
