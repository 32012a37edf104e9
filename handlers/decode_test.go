package handlers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/domain/fault"
)

type inner struct {
	Name     string   `json:"name,omitempty"`
	Delays   *[]int   `json:"delays,omitempty"`
	Fraction *float64 `json:"share,omitempty"`
}

type document struct {
	URL     string                       `json:"url"`
	Number  *int                         `json:"number,omitempty"`
	Flag    *bool                        `json:"flag,omitempty"`
	List    *[]string                    `json:"list,omitempty"`
	Rate    nullable.Nullable[int]       `json:"rate,omitempty"`
	At      nullable.Nullable[time.Time] `json:"at,omitempty"`
	When    *time.Time                   `json:"when,omitempty"`
	Filter  nullable.Nullable[rawFilter] `json:"filter,omitempty"`
	Data    json.RawMessage              `json:"data,omitempty"`
	Inner   *inner                       `json:"inner,omitempty"`
	Headers *map[string]*string          `json:"headers,omitempty"`
	Labels  *map[string]string           `json:"labels,omitempty"`
}

type rawFilter = json.RawMessage

func TestBodiesAreReadStrictly(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                              "not_json",
		` `:                             "not_json",
		`{`:                             "not_json",
		`{"url":"a"`:                    "not_json",
		`{"url":"a"} {}`:                "not_json",
		`{"url":"a"} x`:                 "not_json",
		`{url:"a"}`:                     "not_json",
		`{"url":"a",}`:                  "not_json",
		`{"url":01}`:                    "not_json",
		"{\"url\":\"\xff\"}":            "not_utf8",
		`[]`:                            "not_object",
		`"a"`:                           "not_object",
		`7`:                             "not_object",
		`null`:                          "not_object",
		`{"url":7}`:                     "field_type url",
		`{"url":null}`:                  "field_type url",
		`{"url":["a"]}`:                 "field_type url",
		`{"url":{"a":1}}`:               "field_type url",
		`{"url":"a\u0000b"}`:            "field_type url",
		`{"URL":"a"}`:                   "unknown_field URL",
		`{"url":"a","url":"b"}`:         "duplicate_field url",
		`{"x":{"y":[1]},"z":1}`:         "unknown_field x z",
		`{"number":null}`:               "field_type number",
		`{"number":1.5}`:                "field_type number",
		`{"number":1e3}`:                "field_type number",
		`{"number":"1"}`:                "field_type number",
		`{"number":3000000000}`:         "field_type number",
		`{"flag":"true"}`:               "field_type flag",
		`{"list":"a"}`:                  "field_type list",
		`{"list":["a",1,null]}`:         "field_type list.1 list.2",
		`{"rate":"1"}`:                  "field_type rate",
		`{"at":"tomorrow"}`:             "time_malformed at",
		`{"at":"0000-01-01T00:00:00Z"}`: "time_malformed at",
		`{"when":null}`:                 "field_type when",
		`{"inner":[]}`:                  "field_type inner",
		`{"inner":{"nam":"a"}}`:         "unknown_field inner.nam",
		`{"inner":{"delays":[1,"2"]}}`:  "field_type inner.delays.1",
		`{"inner":{"share":"0.5"}}`:     "field_type inner.share",
		`{"inner":{"share":0.25}}`:      "",
		`{"inner":{"share":1}}`:         "",
		`{"headers":{"a":1}}`:           "field_type headers.a",
		`{"headers":{"a":"1","a":"2"}}`: "duplicate_field headers.a",
		`{"labels":{"a":null}}`:         "field_type labels.a",
		`{"data":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`: "too_deep",
		`{"` + strings.Repeat("x", 200) + `":1}`:                             "unknown_field " + strings.Repeat("x", 64) + "...",

		`{}`:            "",
		` {"url":"é"} `: "",
		`{"url":"a","number":-5,"flag":true,"list":[],"rate":null,"at":null,"filter":null,"data":null}`:                                   "",
		`{"filter":"data.x == 1","data":{"a":1,"a":2},"inner":{"name":"n","delays":[1]},"headers":{"A":null,"B":"b"},"labels":{"a":"b"}}`: "",
		`{"rate":5,"at":"2026-01-31T12:00:00.5+02:00","when":"2026-01-31T12:00:00Z"}`:                                                     "",
	} {
		var into document
		err := decode([]byte(body), &into)
		got := ""
		if e := fault.As(err); e != nil {
			got = e.Code
			for _, f := range e.Fields {
				got += " " + f.Name
			}
		} else if err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

func TestAbsentNullAndValueStayApart(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{`{}`: "absent", `{"rate":null}`: "null", `{"rate":7}`: "7"} {
		var into document
		if err := decode([]byte(body), &into); err != nil {
			t.Fatal(err)
		}
		got := "absent"
		if into.Rate.IsNull() {
			got = "null"
		} else if v, err := into.Rate.Get(); err == nil {
			got = fmt.Sprint(v)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

func TestAnswersListABoundedNumberOfWrongFields(t *testing.T) {
	t.Parallel()
	body := "{"
	for i := range 500 {
		body += fmt.Sprintf(`"f%d":1,`, i)
	}
	var into document
	e := fault.As(decode([]byte(strings.TrimSuffix(body, ",")+"}"), &into))
	if e == nil || len(e.Fields) != maxWrong {
		t.Errorf("%v", e)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"url":"a","inner":{"name":"x"},"headers":{"a":null},"data":[1,{"b":2}]}`))
	f.Add([]byte(`[{"rate":null}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var into document
		err := decode(body, &into)
		if err != nil && fault.As(err) == nil {
			t.Errorf("%q: %v", body, err)
		}
		if err == nil && !json.Valid(body) {
			t.Errorf("%q was read", body)
		}
	})
}

// The place is found by a walk of our own: that of encoding/json is another with each version of Go.
func TestWhereABodyStopsBeingJSONIsTheSameWithEveryGo(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"url":"a",}`:       `Invalid JSON: found '}' at byte 12, where a field name in quotes is expected.`,
		`{"url" 1}`:          `Invalid JSON: found '1' at byte 8, where a colon is expected.`,
		"{\n\"url\": tru}":   `Invalid JSON: found '}' at byte 13 (line 2), where true is expected.`,
		"{\"url\":\"a\tb\"}": `Invalid JSON: the string at byte 10 contains the control character 0x09. Escape it.`,
		`{"url":"\x"}`:       `Invalid JSON: found 'x' at byte 10, where an escape that JSON knows is expected.`,
		`{"url":01}`:         `Invalid JSON: found '1' at byte 9, where a comma or } is expected.`,
		`{"url":"a"} x`:      `Invalid JSON: found 'x' at byte 13, where the end is expected.`,
		`{"url":`:            `Invalid JSON: the body ends after 7 bytes, where a value is expected.`,
	} {
		if got := fault.As(DecodeObject([]byte(body), &document{})); got == nil || got.Detail != want {
			t.Errorf("%q: %v, want %s", body, got, want)
		}
	}
}
