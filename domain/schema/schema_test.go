package schema

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"posthorn/domain/fault"
)

const order = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["id","total"],
	"properties":{"id":{"type":"string","pattern":"^ord_"},"total":{"type":"integer","minimum":0},"customer":{"$ref":"#/$defs/customer"},"$ref":{"type":"string"}},
	"$defs":{"customer":{"type":"object","properties":{"email":{"type":"string","minLength":3}},"additionalProperties":false}}}`

func compile(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Compile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t testing.TB, s *Schema, data string) []Mismatch {
	t.Helper()
	found, err := s.Check([]byte(data), nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestMismatchesNameTheFieldAndTheFault(t *testing.T) {
	t.Parallel()
	s := compile(t, order)
	for data, want := range map[string]string{
		`{"id":"ord_1","total":3,"customer":{"email":"a@b"},"$ref":"x"}`: "",
		`{"id":"ord_1"}`:                                   "data: missing property 'total'",
		`{"id":"x","total":3}`:                             "data.id: 'x' does not match pattern",
		`{"id":"ord_1","total":"3"}`:                       "data.total: got string, want integer",
		`{"id":"ord_1","total":12345678901234567890123}`:   "",
		`{"id":"ord_1","total":1,"customer":{"age":1}}`:    "data.customer: additional properties 'age' not allowed",
		`{"id":"ord_1","total":1,"customer":{"email":""}}`: "data.customer.email: minLength: got 0, want 3",
		`[]`:   "data: got array, want object",
		`{`:    "data: The data isn't JSON",
		`null`: "data: got null, want object",
	} {
		found := check(t, s, data)
		got := ""
		if len(found) > 0 {
			got = found[0].Field + ": " + strings.TrimPrefix(found[0].Detail, "The schema rejects it: ")
		}
		if !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
	if err := Fault(check(t, s, `{"id":"x","total":"y"}`)); !fault.Is(err, "schema_mismatch") || len(fault.As(err).Fields) != 2 {
		t.Errorf("%v", err)
	}
	if Fault(nil) != nil {
		t.Error("nothing wrong is a fault")
	}
}

func TestSchemasLoadNothingAndEnd(t *testing.T) {
	t.Parallel()
	doubling := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 40 {
		doubling += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling += `"d40":{}}}`
	for text, says := range map[string]string{
		`{`:                                     "isn't JSON",
		`{"type":"nothing"}`:                    "is invalid",
		`{"minimum":"1"}`:                       "is invalid",
		`{"pattern":"("}`:                       "is invalid",
		`{"$ref":"file:///etc/passwd"}`:         "doesn't resolve",
		`{"$ref":"https://example.com/a.json"}`: "doesn't resolve",
		`{"$ref":"other.json#/a"}`:              "doesn't resolve",
		`{"$ref":"#/$defs/none"}`:               "doesn't resolve",
		`{"$schema":"https://example.com/own"}`: "",
		`{"$schema":"file:///etc/passwd"}`:      "",
		`{"properties":{"a":{"$ref":"#"}}}`:     "is recursive",
		`{"$defs":{"n":{"properties":{"x":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`: "is recursive",
		`{"$dynamicRef":"#x"}`:                          "isn't supported",
		`{"properties":{"a":{"$id":"b.json"}}}`:         "isn't supported",
		doubling:                                        "more than 2000 subschemas",
		`{"a":"` + strings.Repeat("x", maxBytes) + `"}`: "the maximum is",
		`5`: "",
	} {
		_, err := Compile([]byte(text))
		if e := fault.As(err); e == nil || e.Code != "schema_invalid" || !strings.Contains(e.Detail, says) || strings.Contains(e.Detail, "root:") {
			t.Errorf("%.100s: %v", text, err)
		}
	}
	for _, good := range []string{`true`, `{}`, `{"$id":"https://example.com/order.json","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"const":{"$ref":"x"}}}}`} {
		compile(t, good)
	}
}

func list(value string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(value+",", n), ",") + "]"
}

// Each of these takes seconds to hours where a check is priced by the lengths of texts. The budget is counted in units,
// not in time, so what is rejected does not depend on the machine.
func TestACheckThatCostsTooMuchIsRefused(t *testing.T) {
	t.Parallel()
	numbers := strings.Trim(list("7", 20_000), "[]")
	named := make([]string, 400)
	for i := range named {
		named[i] = fmt.Sprintf(`"p%d":1`, i)
	}
	object := "{" + strings.Join(named, ",") + "}"
	long := `"` + strings.Repeat("a", 250_000) + `b"`
	for what, c := range map[string]struct{ schema, data string }{
		"a pattern":          {`{"items":{"pattern":"(a|aa|aaa|aaaa){1,180}$"}}`, "[" + long + "]"},
		"names":              {`{"propertyNames":{"pattern":"(a|aa|aaa|aaaa){1,180}$"}}`, "{" + long + ":1}"},
		"properties":         {`{"patternProperties":{"(a|aa|aaa|aaaa){1,180}$":{}}}`, "{" + long + ":1}"},
		"many patterns":      {`{"allOf":` + list(`{"pattern":"(a|b)*c"}`, 1000) + `}`, long},
		"many subschemas":    {`{"items":{"allOf":` + list(`{"not":{}}`, 900) + `}}`, list("1", 2000)},
		"behind not":         {`{"not":{"anyOf":` + list(`{"items":{"type":"string"}}`, 900) + `}}`, list("1", 20_000)},
		"branches":           {`{"items":{"oneOf":` + list(`{"required":["a"]}`, 900) + `}}`, list("{}", 2000)},
		"constants":          {`{"items":{"enum":[` + numbers + `]}}`, list("8", 1000)},
		"one constant":       {`{"items":{"const":[` + numbers + `]}}`, list("[]", 1000)},
		"members":            {`{"allOf":` + list(`{"additionalProperties":{"type":"string"}}`, 900) + `}`, object},
		"what is left over":  {`{"allOf":` + list(`{"unevaluatedProperties":{"type":"string"}}`, 900) + `}`, object},
		"unique items":       {`{"allOf":` + list(`{"uniqueItems":true}`, 900) + `}`, list("1e300", 5000)},
		"numbers":            {`{"items":{"allOf":` + list(`{"multipleOf":3e-300}`, 200) + `}}`, list("7e-300", 1000)},
		"regular expression": {`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"format":"regex"}}`, list(`"(a{1000}b)"`, 10_000)},
		"required":           {`{"items":{"required":[` + strings.Trim(list(`"aaa"`, 5), "[]") + `]}}`, ""},
	} {
		if c.data == "" {
			names := make([]string, 4000)
			for i := range names {
				names[i] = fmt.Sprintf(`"n%d"`, i)
			}
			c.schema, c.data = `{"items":{"required":[`+strings.Join(names, ",")+`]}}`, list("{}", 3000)
		}
		if found := check(t, compile(t, c.schema), c.data); len(found) != 1 || found[0].Detail != tooCostlyText {
			t.Errorf("%s: %.300v", what, found)
		}
	}
}

// What is usual passes, also in a large event.
func TestUsualPatternsAndLargeDataAreChecked(t *testing.T) {
	t.Parallel()
	patterns := map[string]string{
		`^[a-zA-Z0-9.!#$%&'*+/=?^_{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`: "someone@mail.example.com",
		`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-5][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$`:                                           "123e4567-e89b-12d3-a456-426614174000",
		`^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d+)?(Z|[+-]\\d{2}:\\d{2})$`:                    "2026-01-31T10:00:00.5+01:00",
		`^(https?://)(www\\.)?[-a-zA-Z0-9@:%._+~#=]{1,256}\\.[a-zA-Z0-9()]{1,6}\\b([-a-zA-Z0-9()@:%_+.~#?&/=]*)$`:                              "https://www.example.com/a?b=c",
		`^arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:[0-9]{12}:[^\\s]{1,512}$`:                                                                       "arn:aws:sns:eu-west-1:123456789012:topic",
		`^.{1,1000}$`: "a name",
		`^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(?:-((?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?$`: "1.20.3-rc.1",
	}
	properties, row := []string{`"country":{"enum":["` + strings.Join(strings.Split(strings.Repeat("AA,", 249)+"DE", ","), `","`) + `"]}`}, []string{`"country":"DE"`}
	for text, fits := range patterns {
		if found := check(t, compile(t, `{"pattern":"`+text+`"}`), `"`+fits+`"`); found != nil {
			t.Errorf("%s: %v", text, found)
		}
		if found := check(t, compile(t, `{"pattern":"`+text+`"}`), `"\n"`); len(found) != 1 || found[0].Detail == tooCostlyText {
			t.Errorf("%s: %v", text, found)
		}
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":"string","pattern":"%s"}`, len(row), text))
		row = append(row, fmt.Sprintf(`"p%d":"%s"`, len(row), fits))
	}
	s := compile(t, `{"items":{"type":"object","properties":{`+strings.Join(properties, ",")+`},"required":["p1","p2"],"additionalProperties":false}}`)
	data := list("{"+strings.Join(row, ",")+"}", 400)
	if len(data) < 90_000 {
		t.Fatalf("%d bytes are not large", len(data))
	}
	if found := check(t, s, data); found != nil {
		t.Errorf("%d bytes: %v", len(data), found)
	}
}

func TestPatternsAndNumbersThatNoCheckCouldAffordAreRefused(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf(`{"pattern":"^[a-z]{1,60}%d$"}`, i))
	}
	hostile := "(a|aa|aaa|aaaa){1,1000}$"
	for text, says := range map[string]string{
		`{"items":{"pattern":"` + hostile + `"}}`:                          "compiles to more than 2500 instructions",
		`{"patternProperties":{"` + hostile + `":{}}}`:                     "compiles to more than 2500 instructions",
		`{"propertyNames":{"pattern":"` + hostile + `"}}`:                  "compiles to more than 2500 instructions",
		`{"$defs":{"a":{"pattern":"((a{30}){30}b)*"}},"$ref":"#/$defs/a"}`: "",
		`{"pattern":"(((a|b)(c|d)){10}){100}"}`:                            "compiles to more than 2500 instructions",
		`{"allOf":[` + strings.Join(many, ",") + `]}`:                      "compile to more than 20000 instructions",
		`{"minimum":1e999999}`:                                             "a number with more than 400 digits",
		`{"enum":[` + strings.Repeat("7", 401) + `]}`:                      "a number with more than 400 digits",
	} {
		_, err := Compile([]byte(text))
		if e := fault.As(err); says == "" && err != nil || says != "" && (e == nil || !strings.Contains(e.Detail, says)) {
			t.Errorf("%.100s: %v", text, err)
		}
	}
	s := compile(t, `{"properties":{"a":{"items":{"type":"integer"}}}}`)
	for number, says := range map[string]string{
		"1e999999":                "can't be checked",
		"1E+401":                  "can't be checked",
		"-1e-0999":                "can't be checked",
		strings.Repeat("7", 401):  "can't be checked",
		"1e0400":                  "",
		"1e300":                   "",
		"12345678901234567890123": "",
	} {
		found := check(t, s, `{"a":[1,`+number+`]}`)
		told := ""
		for _, m := range found {
			told += m.Field + ": " + m.Detail
		}
		if (says == "") != (told == "") || says != "" && !strings.HasPrefix(told, "data.a: ") || !strings.Contains(told, says) {
			t.Errorf("%.20s: %v", number, found)
		}
	}
}

func TestACheckEndsWhenItsCallerNoLongerWaits(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"items":{"type":"integer","minimum":0}}`)
	asked := 0
	_, err := s.Check([]byte(list("1", 20_000)), func() bool { asked++; return asked == 3 })
	if !errors.Is(err, ErrStopped) || asked != 3 {
		t.Errorf("%v after %d questions", err, asked)
	}
	if found := check(t, s, list("1", 20_000)); found != nil {
		t.Errorf("after a check that was stopped: %v", found)
	}
}

func TestChecksOfOneSchemaDoNotPayForEachOther(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"items":{"pattern":"^a+$"}}`)
	cheap, costly := `["aaa"]`, list(`"`+strings.Repeat("a", 50_000)+`"`, 400)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 1 + (1-i%2)*20 {
				found, err := s.Check([]byte([]string{cheap, costly}[i%2]), nil)
				if err != nil || (i%2 == 0) != (found == nil) {
					t.Errorf("%d: %v %v", i%2, found, err)
				}
			}
		})
	}
	all.Wait()
}
