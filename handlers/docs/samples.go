package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	views "posthorn/views/docs"
)

// request is an operation's example request: the one source of all its samples.
type request struct {
	method, url string
	body        any  // nil: none
	empty       bool // the response has no body
}

func (c contract) request(base string, o views.Operation, body, item, op *yaml.Node) request {
	path := o.Path
	values := c.pathValues(item, op)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		path = strings.ReplaceAll(path, "{"+name+"}", values[name])
	}
	r := request{method: o.Method, url: base + path, empty: len(o.Answers) == 1 && o.Answers[0].Status == "204"}
	if body != nil {
		r.body = c.example(body, "", "", false, 0)
	}
	return r
}

// samples are the request in each language. The SDK is shown in the language that has one.
func (c contract) samples(base string, o views.Operation, body, item, op *yaml.Node) []views.Sample {
	r := c.request(base, o, body, item, op)
	list := []views.Sample{{Label: "curl", Language: "sh", Text: r.curl()}}
	if text := c.goCode(o, body, item, op); text != "" {
		list = append(list, views.Sample{Label: "Go", Language: "go", Text: text})
	}
	list = append(list, views.Sample{Label: "TypeScript", Language: "ts", Text: r.typeScript()}, views.Sample{Label: "Python", Language: "python", Text: r.python()})
	for i := range list {
		list[i].Code = code(list[i].Language, list[i].Text)
	}
	return list
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

func (r request) typeScript() string {
	var b strings.Builder
	fmt.Fprintf(&b, "const response = await fetch(%q, {\n", r.url)
	if r.method != "GET" {
		fmt.Fprintf(&b, "  method: %q,\n", r.method)
	}
	b.WriteString("  headers: {\n    Authorization: `Bearer ${process.env.POSTHORN_API_KEY}`,\n")
	if r.body != nil {
		b.WriteString("    \"Content-Type\": \"application/json\",\n  },\n  body: JSON.stringify(" + strings.ReplaceAll(indented(r.body), "\n", "\n  ") + "),\n});\n")
	} else {
		b.WriteString("  },\n});\n")
	}
	if r.empty {
		b.WriteString("console.log(response.status);")
	} else {
		b.WriteString("console.log(response.status, await response.json());")
	}
	return b.String()
}

func (r request) python() string {
	var b strings.Builder
	b.WriteString("import json\nimport os\nimport urllib.request\n\nrequest = urllib.request.Request(\n")
	fmt.Fprintf(&b, "    %q,\n", r.url)
	if r.method != "GET" {
		fmt.Fprintf(&b, "    method=%q,\n", r.method)
	}
	b.WriteString("    headers={\n        \"Authorization\": f\"Bearer {os.environ['POSTHORN_API_KEY']}\",\n")
	if r.body != nil {
		b.WriteString("        \"Content-Type\": \"application/json\",\n")
	}
	b.WriteString("    },\n")
	if r.body != nil {
		b.WriteString("    data=json.dumps(" + pythonValue(r.body, "    ") + ").encode(),\n")
	}
	b.WriteString(")\nwith urllib.request.urlopen(request) as response:\n")
	if r.empty {
		b.WriteString("    print(response.status)")
	} else {
		b.WriteString("    print(response.status, json.load(response))")
	}
	return strings.ReplaceAll(b.String(), "import json\n", map[bool]string{true: "", false: "import json\n"}[r.empty && r.body == nil])
}

// pythonValue writes a value of the example as Python does.
func pythonValue(v any, indent string) string {
	inner := indent + "    "
	var parts []string
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case object:
		if len(v) == 0 {
			return "{}"
		}
		for _, p := range v {
			parts = append(parts, inner+quoteJSON(p.name)+": "+pythonValue(p.value, inner)+",\n")
		}
		return "{\n" + strings.Join(parts, "") + indent + "}"
	case []any:
		for _, one := range v {
			parts = append(parts, pythonValue(one, indent))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return compact(v)
}

func quoteJSON(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// pathValues are the example values of a path's parameters, in their order.
func (c contract) pathValues(item, op *yaml.Node) map[string]string {
	values := map[string]string{}
	for _, list := range []*yaml.Node{get(item, "parameters"), get(op, "parameters")} {
		if list == nil {
			continue
		}
		for _, p := range list.Content {
			p, _ = c.resolve(p)
			if name := value(p, "name"); value(p, "in") == "path" {
				if values[name] = value(p, "example"); values[name] == "" {
					values[name] = fmt.Sprint(exampleScalar("string", name, ""))
				}
			}
		}
	}
	return values
}

// goCode is the call of the SDK. Fields that take more than a literal stay out of it.
func (c contract) goCode(o views.Operation, body, item, op *yaml.Node) string {
	values := c.pathValues(item, op)
	args := []string{"ctx"}
	for part := range strings.SplitSeq(o.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			args = append(args, fmt.Sprintf("%q", values[strings.TrimSuffix(name, "}")]))
		}
	}
	method := strings.ToUpper(o.ID[:1]) + o.ID[1:]
	for _, p := range o.Parameters {
		if p.Where != "path" {
			args = append(args, "client."+method+"Params{}")
			break
		}
	}
	if body != nil {
		_, name := c.resolve(body)
		if name == "" {
			return ""
		}
		args = append(args, "client."+name+"{"+c.goFields(body)+"}")
	}
	result := "response, err := "
	for _, a := range o.Answers {
		if a.Status == "204" && len(o.Answers) == 1 {
			result = "err := "
		}
	}
	return result + "c." + method + "(" + strings.Join(args, ", ") + ")"
}

func (c contract) goFields(schema *yaml.Node) string {
	schema, _ = c.resolve(schema)
	var required []string
	if r := get(schema, "required"); r != nil {
		_ = r.Decode(&required)
	}
	var parts []string
	for _, name := range required {
		property := get(schema, "properties", name)
		resolved, ref := c.resolve(property)
		v := c.example(property, name, "", false, 1)
		switch v := v.(type) {
		case string:
			if ref != "" || get(resolved, "enum") != nil || strings.HasPrefix(c.kind(resolved), "time") {
				continue
			}
			parts = append(parts, goName(name)+": "+fmt.Sprintf("%q", v))
		case object:
			if name == "data" {
				parts = append(parts, goName(name)+": json.RawMessage(`"+compact(v)+"`)")
			}
		}
	}
	return strings.Join(parts, ", ")
}

var initialisms = map[string]string{"id": "ID", "url": "URL", "api": "API", "http": "HTTP", "json": "JSON", "tls": "TLS", "dns": "DNS"}

// goName is a field's name in the SDK.
func goName(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if upper, ok := initialisms[word]; ok {
			b.WriteString(upper)
		} else if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
