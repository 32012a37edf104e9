package docs

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	views "posthorn/views/docs"
)

// request is an operation's example request: the source of all its samples.
type request struct {
	operation, method string
	server, url       string // of the server, and of the operation with the values of its path
	path              []argument
	body              any  // nil: none
	empty             bool // the response has no body
	stream            bool // the response is not JSON
	list              bool // the response is a page of a list
}

// argument is a parameter with its example.
type argument struct{ name, value string }

func (c contract) request(base string, o views.Operation, body, item, op *yaml.Node) request {
	r := request{operation: o.ID, method: o.Method, server: base, empty: len(o.Answers) == 1 && o.Answers[0].Status == "204"}
	path, values := o.Path, c.pathValues(item, op)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		path = strings.ReplaceAll(path, "{"+name+"}", values[name])
	}
	r.url = base + path
	for part := range strings.SplitSeq(o.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			r.path = append(r.path, argument{name, values[name]})
		}
	}
	if body != nil {
		r.body = c.bodyExample(body, o.BodyOptional)
	}
	for status, answer := range members(get(op, "responses")) {
		answer, _ = c.resolve(answer)
		content := get(answer, "content")
		if strings.HasPrefix(status, "2") && content != nil {
			page, _ := c.resolve(get(content, "application/json", "schema"))
			r.stream = get(content, "application/json") == nil
			r.list = get(page, "properties", "next_cursor") != nil && slices.ContainsFunc(o.Parameters,
				func(p views.Field) bool { return p.Name == "cursor" })
		}
	}
	return r
}

// bodyExample is an example of a body: the required fields and those with an example of their own, or else its first
// field. It is nil for an optional body without such fields.
func (c contract) bodyExample(body *yaml.Node, optional bool) any {
	v := c.example(body, "", "", false, 0)
	o, isObject := v.(object)
	switch {
	case !isObject || len(o) > 0:
		return v
	case optional:
		return nil
	}
	schema, _ := c.resolve(body)
	for name, property := range members(get(schema, "properties")) {
		return object{{name, c.example(property, name, "", false, 1)}}
	}
	return v
}

// samples are the request in each language: curl, and the calls of the SDKs.
func (c contract) samples(base string, o *views.Operation, body, item, op *yaml.Node) []views.Sample {
	r := c.request(base, *o, body, item, op)
	o.Try = try(r, *o)
	list := []views.Sample{
		{Label: "curl", Language: "sh", Text: r.curl()},
		{Label: "Go", Language: "go", Text: r.goCode()},
		{Label: "TypeScript", Language: "ts", Text: r.typeScript()},
		{Label: "Python", Language: "python", Text: r.python()},
	}
	for i := range list {
		list[i].Code = code(list[i].Language, list[i].Text)
	}
	return list
}

// try is the form that sends an operation's example request. A stream or a file has none.
func try(r request, o views.Operation) *views.Try {
	if r.stream {
		return nil
	}
	t := &views.Try{}
	for _, p := range o.Parameters {
		a := views.Argument{Name: p.Name, Where: p.Where, Required: p.Required}
		for _, one := range r.path {
			if one.name == p.Name {
				a.Example = one.value
			}
		}
		t.Arguments = append(t.Arguments, a)
	}
	if r.body != nil {
		t.Body = jsonText(r.body, "  ")
	} else if len(o.Body) > 0 {
		t.Body = "{}"
	}
	return t
}

// pathValues are the example values of a path's parameters.
func (c contract) pathValues(item, op *yaml.Node) map[string]string {
	values := map[string]string{}
	for _, p := range items(get(item, "parameters"), get(op, "parameters")) {
		p, _ = c.resolve(p)
		if name := value(p, "name"); value(p, "in") == "path" {
			values[name] = cmp.Or(value(p, "example"), fmt.Sprint(exampleScalar("string", name, "")))
		}
	}
	return values
}

func (r request) curl() string {
	var b strings.Builder
	b.WriteString("curl ")
	if r.method != "GET" && (r.method != "POST" || r.body == nil) {
		b.WriteString("-X " + r.method + " ")
	}
	b.WriteString(r.url + " \\\n  -H \"Authorization: Bearer $POSTHORN_API_KEY\"")
	if r.body != nil {
		text := strings.ReplaceAll(compact(r.body), "'", `'\''`)
		b.WriteString(" \\\n  -H 'Content-Type: application/json' \\\n  -d '" + text + "'")
	}
	return b.String()
}

// emitting is the operation for which each SDK has a separate method, which adds an idempotency key.
const emitting = "emitEvent"

// typeScript is the call of the SDK for TypeScript: one object with the path's parameters and the body.
func (r request) typeScript() string {
	input := object{}
	for _, a := range r.path {
		input = append(input, pair{a.name, a.value})
	}
	if r.body != nil {
		input = append(input, pair{"body", r.body})
	}
	arguments := ""
	switch {
	case r.operation == emitting:
		arguments = typeScriptStyle.write(r.body, "")
	case len(input) > 0:
		arguments = typeScriptStyle.write(input, "")
	}
	begin := "import { Posthorn } from \"posthorn\";\n\n" +
		fmt.Sprintf("const posthorn = new Posthorn({ url: %q, key: process.env.POSTHORN_API_KEY ?? \"\" });\n", r.server)
	switch {
	case r.operation == emitting:
		return begin + "const result = await posthorn.emit(" + arguments + ");\nconsole.log(result);"
	case r.list:
		if arguments != "" {
			arguments = ", " + arguments
		}
		return begin + fmt.Sprintf("for await (const item of posthorn.iterate(%q%s)) {\n  console.log(item);\n}", r.operation, arguments)
	case r.empty:
		return begin + "await posthorn." + r.operation + "(" + arguments + ");"
	case r.stream:
		return begin + "const response = await posthorn." + r.operation + "(" + arguments + ");\nconsole.log(response.status, response.body);"
	}
	return begin + "const result = await posthorn." + r.operation + "(" + arguments + ");\nconsole.log(result);"
}

// python is the call of the SDK for Python: the path's parameters, then the body.
func (r request) python() string {
	var arguments []string
	for _, a := range r.path {
		arguments = append(arguments, quoteJSON(a.value))
	}
	if r.body != nil {
		arguments = append(arguments, pythonStyle.write(r.body, ""))
	}
	begin := "import os\n\nfrom posthorn import Posthorn\n\n" + fmt.Sprintf("posthorn = Posthorn(%q, os.environ[\"POSTHORN_API_KEY\"])\n", r.server)
	name := pythonName(r.operation)
	if r.operation == emitting {
		name = "emit"
	}
	call := "posthorn." + name + "(" + strings.Join(arguments, ", ") + ")"
	switch {
	case r.list:
		return begin + "for item in posthorn.iterate(" + strings.Join(append([]string{"posthorn." + name}, arguments...), ", ") + "):\n    print(item)"
	case r.empty:
		return begin + call
	case r.stream:
		return begin + "response = " + call + "\nfor part in response.iter_bytes():\n    print(len(part))"
	}
	return begin + "result = " + call + "\nprint(result)"
}

var wordBegins = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// pythonName is the method of an operation in the SDK for Python (client/python/scripts/generate.py).
func pythonName(operation string) string {
	return strings.ToLower(wordBegins.ReplaceAllString(operation, "${1}_$2"))
}
