package transform

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/signature"
)

var at = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)

func inputOf(data string) Input {
	return Input{
		Message: signature.Message{
			EventID:    "evt_1",
			DeliveryID: "dlv_1",
			EndpointID: "ep_1",
			Type:       "order.paid",
			CreatedAt:  at,
			Data:       []byte(data),
		},
		Format:   signature.Standard,
		Key:      "customer 7",
		Channels: []string{"eu"},
	}
}

func render(t *testing.T, x Transformation, data string) (Output, error) {
	t.Helper()
	if err := x.Check(true); err != nil {
		t.Fatal(err)
	}
	return Try(&x, inputOf(data))
}

func TestWhatIsSentIsWhatTheTransformationSays(t *testing.T) {
	t.Parallel()
	order := `{"id":12345678901234567890,"total":1.50,"customer":{"email":"a@b.c","name":"Anna"},"items":[{"sku":"a","card":"1"},{"sku":"b","card":"2"}]}`
	for name, c := range map[string]struct {
		x           Transformation
		body        string
		contentType string
	}{
		"kept fields":        {Transformation{Kind: Fields, Keep: []string{"id", "items.*.sku"}}, `{"id":"evt_1","type":"order.paid","timestamp":"2026-11-24T10:00:00.000Z","data":{"id":12345678901234567890,"items":[{"sku":"a"},{"sku":"b"}]}}`, "application/json"},
		"dropped fields":     {Transformation{Kind: Fields, Drop: []string{"customer", "items"}}, `{"id":"evt_1","type":"order.paid","timestamp":"2026-11-24T10:00:00.000Z","data":{"id":12345678901234567890,"total":1.50}}`, "application/json"},
		"redacted fields":    {Transformation{Kind: Fields, Keep: []string{"customer"}, Redact: []string{"customer.email"}}, `{"id":"evt_1","type":"order.paid","timestamp":"2026-11-24T10:00:00.000Z","data":{"customer":{"email":"***","name":"Anna"}}}`, "application/json"},
		"an object":          {Transformation{Kind: CEL, Expression: `{"text": event.type + " " + data.customer.name, "n": data.items.size()}`}, `{"n":2,"text":"order.paid Anna"}`, "application/json"},
		"numbers as written": {Transformation{Kind: CEL, Expression: `{"all": data, "id": data.id}`}, `{"all":{"customer":{"email":"a@b.c","name":"Anna"},"id":12345678901234567890,"items":[{"card":"1","sku":"a"},{"card":"2","sku":"b"}],"total":1.50},"id":12345678901234567890}`, "application/json"},
		"a list":             {Transformation{Kind: CEL, Expression: `data.items.map(i, i.sku)`}, `["a","b"]`, "application/json"},
		"a text":             {Transformation{Kind: CEL, Expression: `"paid: " + string(data.total)`}, `paid: 1.5`, "text/plain; charset=utf-8"},
		"another type":       {Transformation{Kind: CEL, Expression: `"<a/>"`, ContentType: "application/xml"}, `<a/>`, "application/xml"},
		"an optional field":  {Transformation{Kind: CEL, Expression: `{?"a": data.?missing, "b": data.?customer.?name.orValue("x")}`}, `{"b":"Anna"}`, "application/json"},
		"functions":          {Transformation{Kind: CEL, Expression: `{"a": "a,b".split(",").join("-"), "b": "äbc".substring(1, 2), "c": json({"x": [1]}), "d": "Ab".upperAscii()}`}, `{"a":"a-b","b":"b","c":"{\"x\":[1]}","d":"AB"}`, "application/json"},
	} {
		out, err := render(t, c.x, order)
		if err != nil || string(out.Body) != c.body || out.ContentType != c.contentType {
			t.Errorf("%s: %s %s, %v\nwant %s %s", name, out.ContentType, out.Body, err, c.contentType, c.body)
		}
	}
	out, err := render(t, Transformation{Kind: Full, Method: "PUT", Headers: map[string]string{"X-Region": `event.channels[0]`, "X-None": `null`, "X-Items": `data.items.size()`}}, order)
	if err != nil || out.Method != "PUT" || fmt.Sprint(out.Headers) != "[{X-Items 2} {X-Region eu}]" || !strings.Contains(string(out.Body), `"total":1.50`) {
		t.Errorf("headers and method: %+v %s %v", out, out.Body, err)
	}
}

func TestAProblemNamesItsPlace(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"{\"a\": 1,\n \"b\": data.missing}": "the expression at line 2, column 11: the field missing is missing",
		`{"a": data.n / 0}`:                 "division by zero",
		`{1: "a"}`:                          "the keys of an object must be strings",
		`{"a": data.n + "x"}`:               "doesn't support the types",
	} {
		_, err := render(t, Transformation{Kind: CEL, Expression: expression}, `{"n":1}`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", expression, err, want)
		}
	}
	for name, x := range map[string]Transformation{
		"transformation.expression":   {Kind: CEL, Expression: `{"a": `},
		"transformation.headers.X-A":  {Kind: Full, Headers: map[string]string{"X-A": "data."}},
		"transformation.headers":      {Kind: Full, Headers: map[string]string{"Host": `"x"`}},
		"transformation.kind":         {Kind: "js"},
		"transformation.keep":         {Kind: Fields, Keep: []string{"a..b"}},
		"transformation.drop":         {Kind: Full, Drop: []string{"a"}},
		"transformation.method":       {Kind: Full, Method: "GET"},
		"transformation.content_type": {Kind: Full, ContentType: "a b"},
		"transformation.variables":    {Kind: Full, Variables: map[string]string{"A": "x"}},
		"transformation.variables.a":  {Kind: Full, Variables: map[string]string{"a": Marker}},
	} {
		var f *fault.Error
		if err := x.Check(true); !errors.As(err, &f) || len(f.Fields) != 1 || f.Fields[0].Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAHostileExpressionIsBounded: what is written to use up time or memory ends within milliseconds, at the save or at
// the run. The limit here is loose, for slow machines and the race detector.
func TestAHostileExpressionIsBounded(t *testing.T) {
	t.Parallel()
	var items strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&items, `%d,`, i)
	}
	data := `{"items":[` + strings.TrimSuffix(items.String(), ",") + `],"text":"` + strings.Repeat("a", 60_000) + `","deep":` + strings.Repeat(`[`, 500) + strings.Repeat(`]`, 500) + `}`
	for name, expression := range map[string]string{
		"loops in loops":     `data.items.map(a, data.items.map(b, a + b))`,
		"a large output":     `[` + strings.TrimSuffix(strings.Repeat(`data.text,`, 100), ",") + `]`,
		"a long replacement": `data.text.replace("a", data.text)`,
		"a long join":        `data.items.map(i, data.text).join(",")`,
		"texts that grow":    `"` + strings.Repeat("a", 1000) + `"` + strings.Repeat(` + data.text`, 500),
		"deep data":          `{"deep": data.deep}`,
		"JSON of JSON":       `json(json(json(json(json(json(data.text.split(""))))))) `,
		"deep brackets":      strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"many JSON texts":    `data.items.map(i, json(data.text))`,
	} {
		x := Transformation{Kind: CEL, Expression: expression}
		started := time.Now()
		err := x.Check(true)
		if err == nil {
			_, err = Try(&x, inputOf(data))
		}
		if took := time.Since(started); err == nil || took > 5*time.Second {
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
}

// TestOnceSentAVersionStays: a delivery is rendered by the first version from its own on that works for its event,
// whatever is edited later.
func TestOnceSentAVersionStays(t *testing.T) {
	t.Parallel()
	cel := func(e string) *Transformation { return &Transformation{Kind: CEL, Expression: e} }
	all := Versions{{From: 5, T: cel(`{"v": data.a}`)}, {From: 9, T: cel(`{"v": data.b}`)}, {From: 12, T: nil}, {From: 20, T: cel(`{"v": 4}`)}}
	for _, c := range []struct {
		own  int64
		data string
		n    int // versions that there are
		body string
		from int64
		held bool
	}{
		{own: 4, data: `{"a":1}`, n: 4},
		{own: 5, data: `{"a":1}`, n: 1, body: `{"v":1}`, from: 5},
		{own: 8, data: `{"a":1,"b":2}`, n: 4, body: `{"v":1}`, from: 5},
		{own: 5, data: `{"b":2}`, n: 1, held: true},
		{own: 5, data: `{"b":2}`, n: 2, body: `{"v":2}`, from: 9},
		{own: 5, data: `{"b":2}`, n: 4, body: `{"v":2}`, from: 9},
		{own: 9, data: `{}`, n: 2, held: true},
		{own: 9, data: `{}`, n: 4},
		{own: 25, data: `{}`, n: 4, body: `{"v":4}`, from: 20},
	} {
		out, from, err := all[:c.n].Render(c.own, inputOf(c.data))
		if string(out.Body) != c.body || from != c.from || (err != nil) != c.held {
			t.Errorf("%+v: %s by %d, %v", c, out.Body, from, err)
		}
		if from != 0 {
			if again, ok := all.RenderAt(from, inputOf(c.data)); !ok || string(again.Body) != c.body {
				t.Errorf("%+v: rebuilt as %s", c, again.Body)
			}
		}
	}
}

func TestVariablesAreKeptAndNotShown(t *testing.T) {
	t.Parallel()
	before := &Transformation{Kind: Full, Variables: map[string]string{"key": "secret"}}
	shown := before.Shown()
	text, err := json.Marshal(shown)
	if err != nil || strings.Contains(string(text), "secret") || before.Variables["key"] != "secret" {
		t.Errorf("%s %v", text, err)
	}
	after, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if after.KeepVariables(before); after.Variables["key"] != "secret" {
		t.Errorf("%+v", after)
	}
	if _, err := Parse([]byte(`{"kind":"full","expresion":"x"}`)); err == nil {
		t.Error("an unknown field was accepted")
	}
}
