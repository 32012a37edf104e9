package filter

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"posthorn/domain/fault"
)

// quote makes a filter of an expression, as it stands in a request.
func quote(t testing.TB, expression string) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(expression); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func mustCompile(t testing.TB, raw []byte) *Filter {
	t.Helper()
	f, err := Compile(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return f
}

const order = `{
	"id": 9007199254740993, "serial": 18446744073709551615, "huge": 1e400, "half": 0.5, "one": 1.0, "zero": -0,
	"status": "paid", "vip": true, "ref": null, "dup": 1, "dup": 2, "a.b": "dotted",
	"customer": {"country": "DE", "tags": ["vip", "eu"]},
	"items": [{"sku": "A-1", "qty": 2}, {"sku": "B-2", "qty": 10}], "empty": [], "note": "Ring *twice*"
}`

func orderInput() *Input {
	return NewInput("order.created", []byte(order), []string{"eu", "retail"})
}

func TestExpressionsOverTypeDataAndChannels(t *testing.T) {
	t.Parallel()
	in := orderInput() // one for all: filters share what is decoded
	for expression, want := range map[string]bool{
		`true`:                                                     true,
		`type == "order.created"`:                                  true,
		`type.startsWith("invoice.")`:                              false,
		`type in ["order.created", "x"]`:                           true,
		`"eu" in channels`:                                         true,
		`"us" in channels`:                                         false,
		`channels.exists(c, c == "eu")`:                            true,
		`size(channels) == 2`:                                      true,
		`data.status == "paid"`:                                    true,
		`data["status"] != "paid"`:                                 false,
		`data.customer.country == "DE"`:                            true,
		`data.vip`:                                                 true,
		`data.ref == null`:                                         true,
		`data.half < 1`:                                            true,
		`data.one == 1`:                                            true,
		`data.id == 9007199254740993`:                              true,
		`data.id == 9007199254740992`:                              false, // what a double would make of it
		`data.serial == 18446744073709551615u`:                     true,
		`data.huge > 1.7e308`:                                      true,
		`data.dup == 2`:                                            true,
		`data.items[1].qty == 10`:                                  true,
		`data.items.exists(i, i.sku == "B-2" && i.qty >= 5)`:       true,
		`data.items.all(i, i.qty > 2)`:                             false,
		`data.items.map(i, i.qty) == [2, 10]`:                      true,
		`data.items.filter(i, i.qty > 2).size() == 1`:              true,
		`data.customer.tags == ["vip", "eu"]`:                      true,
		`data.customer == {"country": "DE", "tags": ["vip","eu"]}`: true,
		`data.customer != data.items`:                              true,
		`"vip" in data.customer.tags`:                              true,
		`["vip"] in data.customer.tags`:                            false,
		`data.items[0] in data.items`:                              true,
		`"country" in data.customer`:                               true,
		`[1] + [2] == [1, 2]`:                                      true,
		`data.customer.tags + data.empty == ["vip", "eu"]`:         true,
		`data.status + "!" == "paid!"`:                             true,
		`data.items[0].qty + 1 == 3`:                               true,
		`has(data.status) && !has(data.nothing)`:                   true,
		`data.note.matches("^Ring [*]tw")`:                         true,
		`matches(data.note, "ring")`:                               false,
		`type(data.id) == int && type(data.note) == string`:        true,
		`data.nothing == 1 || data.vip`:                            true, // CEL: an error beside a true is a true
		`timestamp("2026-01-01T00:00:00Z") < timestamp("2026-01-02T00:00:00Z")`: true,
	} {
		f := mustCompile(t, quote(t, expression))
		if got, err := f.Match(in); err != nil || got != want {
			t.Errorf("%s: got %v, %v", expression, got, err)
		}
	}
}

func TestExpressionsThatFailOnAnEventTakeNothingAndSayWhy(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`data.nothing == 1`:             "the field nothing is missing",
		`data.customer.nothing.x == 1`:  "the field nothing is missing",
		`data.status > 5`:               "the types of its values",
		`data.id`:                       "doesn't return true or false",
		`data.items[7].qty == 1`:        "the list has no element 7",
		`1 / (size(channels) - 2) == 1`: "division by zero",
		`timestamp(data.status) > timestamp("2026-01-01T00:00:00Z")`: "",
	} {
		ok, err := mustCompile(t, quote(t, expression)).Match(orderInput())
		if ok || err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("%s: got %v, %v", expression, ok, err)
		}
	}
	for _, data := range []string{``, `{`, `{} {}`, "\xff"} {
		for _, f := range []string{`"data.x == 1"`, `{"x":1}`} {
			if ok, err := mustCompile(t, []byte(f)).Match(NewInput("a", []byte(data), nil)); ok || err == nil {
				t.Errorf("data %q, filter %s: got %v, %v", data, f, ok, err)
			}
		}
		if ok, err := mustCompile(t, []byte(`"type == 'a'"`)).Match(NewInput("a", []byte(data), nil)); !ok || err != nil {
			t.Errorf("data %q that the filter does not read: got %v, %v", data, ok, err)
		}
	}
}

func TestPlainFiltersAreEqualityOnAll(t *testing.T) {
	t.Parallel()
	in := orderInput()
	for filter, want := range map[string]bool{
		`{"status": "paid"}`:                                      true,
		`{"status": "paid", "customer.country": "DE"}`:            true,
		`{"status": "paid", "customer.country": "FR"}`:            false,
		`{"vip": true}`:                                           true,
		`{"vip": "true"}`:                                         false,
		`{"ref": null}`:                                           true,
		`{"nothing": null}`:                                       false,
		`{"id": 9007199254740993}`:                                true,
		`{"id": 9007199254740992}`:                                false,
		`{"serial": 18446744073709551615}`:                        true,
		`{"serial": 1.8446744073709552e19}`:                       false,
		`{"one": 1}`:                                              true,
		`{"one": 1e0, "half": 5e-1, "zero": 0.0, "huge": 10e399}`: true,
		`{"one": "1"}`:                                            false,
		`{"customer": "DE"}`:                                      false,
		`{"status.x": "paid"}`:                                    false,
		`{"items.0.qty": 2}`:                                      false, // a path leads through objects
		`{"a.b": "dotted"}`:                                       false,
	} {
		f := mustCompile(t, []byte(filter))
		if got, err := f.Match(in); err != nil || got != want {
			t.Errorf("%s: got %v, %v", filter, got, err)
		}
	}
}

func TestNoFilterTakesEverything(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", " ", "null", `""`, `"  "`, `{}`, ` { } `} {
		f, err := Compile([]byte(raw))
		if f != nil || err != nil {
			t.Errorf("%q: got %v, %v", raw, f, err)
		}
	}
	var none *Filter
	if ok, err := none.Match(NewInput("a", []byte("no JSON"), nil)); !ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
}

func TestWrongFiltersAreRefusedWithThePlace(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`5`:                                  "an object of paths and values",
		`true`:                               "an object of paths and values",
		`["a"]`:                              "an object of paths and values",
		`{"a": {"b": 1}}`:                    `"a" is an object or a list`,
		`{"a": [1, 2]}`:                      `"a" is an object or a list`,
		`{"a": 1, "a": 2}`:                   `"a" twice`,
		`{"a..b": 1}`:                        "empty segment",
		`{"": 1}`:                            "empty segment",
		`{"a": 1} x`:                         "isn't a JSON object",
		`{"a": 1`:                            "isn't a JSON object",
		`"a`:                                 "isn't a JSON string",
		`"foo == 1"`:                         "line 1, column 1: 'foo' is unknown",
		`"data.a ==\n  == 2"`:                "line 2, column 3",
		`"type == 1"`:                        "line 1, column 6",
		`"1 + 1"`:                            "type int",
		`"data.x + 'a'"`:                     "type string",
		`"channels"`:                         "type list(string)",
		`"data.x.matches(data.y)"`:           "line 1, column 15: the pattern of matches() must be a string literal",
		`"type == 'a' && type.matches('(')"`: "line 1, column 28: error parsing regexp",
		`"type.matches('(a{1,30}){1,30}')"`:  "too complex",
		`"data.a.all(x, data.a.all(y, data.a.all(z, true)))"`:                    "too expensive",
		`"` + strings.Repeat("(", 100) + `true` + strings.Repeat(")", 100) + `"`: "recursion",
		`"` + strings.Repeat("a", 4096) + `"`:                                    "4096",
		`"timestamp('x') == timestamp('y')"`:                                     "line 1",
	} {
		f, err := Compile([]byte(raw))
		refusal := fault.As(err)
		if refusal == nil || f != nil || refusal.Code != "filter_invalid" || refusal.Fields[0].Name != "filter" ||
			!strings.Contains(refusal.Detail, want) {
			t.Errorf("%.60s: got %v, want %q", raw, err, want)
		}
	}
}

func TestOneInputServesManyFiltersAtOnce(t *testing.T) {
	t.Parallel()
	in := orderInput()
	filters := []*Filter{mustCompile(t, quote(t, `data.items.exists(i, i.qty == 10)`)), mustCompile(t, []byte(`{"customer.country":"DE"}`))}
	var wg sync.WaitGroup
	for range 8 {
		for i, f := range filters {
			wg.Go(func() {
				if ok, err := f.Match(in); !ok || err != nil {
					t.Errorf("filter %d: got %v, %v", i, ok, err)
				}
			})
		}
	}
	wg.Wait()
}

// FuzzCompile holds that no filter panics, is refused without saying so, or survives when it is not sound.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{`"data.items.all(i, i.qty > 2) && type in channels"`, `{"a.b": 1}`, `null`, `"data.x.matches('a+') || [1] + data.y == {}"`, `"timestamp(data.status) != duration('1s')"`} {
		f.Add([]byte(seed))
	}
	in := orderInput()
	f.Fuzz(func(t *testing.T, raw []byte) {
		compiled, err := Compile(raw)
		if err != nil {
			if fault.Is(err, "filter_invalid") && compiled == nil {
				return
			}
			t.Fatalf("%q: %v", raw, err)
		}
		ok, err := compiled.Match(in)
		if err != nil && (ok || strings.Contains(err.Error(), "internal error")) {
			t.Fatalf("%q: %v, %v", raw, ok, err)
		}
	})
}
