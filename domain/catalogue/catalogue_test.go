package catalogue

import (
	"strings"
	"testing"

	"posthorn/domain/fault"
	"posthorn/domain/schema"
)

const document = `{"openapi":"3.1.0","info":{"title":"x","version":"1"},"webhooks":{
	"order.paid":{"post":{"summary":"Paid","tags":["Orders","x"],"requestBody":{"content":{"application/json":{
		"schema":{"$ref":"#/components/schemas/Order"},"examples":{"b":{"value":2},"a":{"value":{"id":"1","customer":{"email":"a@b"}}}}}}}}},
	"order.gone":{"post":{"description":"Gone","deprecated":true}}},
	"components":{"schemas":{"Order":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"total":{"maximum":12345678901234567890},
		"customer":{"$ref":"#/components/schemas/Customer"}}},"Customer":{"type":"object","properties":{"email":{"type":"string"}}},"Other":{"type":"null"}}}}`

func TestWebhooksOfAnOpenAPIDocumentBecomeEntries(t *testing.T) {
	t.Parallel()
	entries, err := FromOpenAPI([]byte(document))
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	gone, paid := entries[0], entries[1]
	if gone.Name != "order.gone" || !gone.Deprecated || gone.Description != "Gone" || gone.Schema != nil {
		t.Errorf("%+v", gone)
	}
	if paid.Description != "Paid" || paid.Group != "Orders" || paid.Check != Off || string(paid.Example) != `{"id":"1","customer":{"email":"a@b"}}` {
		t.Errorf("%+v", paid)
	}
	for _, want := range []string{`"$ref":"#/$defs/Order"`, `"$ref":"#/$defs/Customer"`, `12345678901234567890`} {
		if !strings.Contains(string(paid.Schema), want) {
			t.Errorf("%s lacks %s", paid.Schema, want)
		}
	}
	if strings.Contains(string(paid.Schema), "Other") || strings.Contains(string(paid.Schema), "components") {
		t.Errorf("%s", paid.Schema)
	}
	for _, e := range entries {
		if err := e.Validate(); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
	paid.Check = Enforce
	s, enforce := paid.Checks(nil, Compiled{}).Of("")
	wrong, _ := s.Check([]byte(`{"id":"1","customer":{"email":5}}`), nil)
	right, _ := s.Check([]byte(`{"id":"1"}`), nil)
	if !enforce || wrong == nil || right != nil {
		t.Error("what a reference leads to is not checked")
	}
}

func TestDocumentsThatSayNothingOfWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`{"openapi":"3.0.3","webhooks":{"a":{"post":{}}}}`: "3.1",
		`{"openapi":"3.1.0"}`:                              "no webhooks",
		`{"openapi":"3.1.0","webhooks":{"a":{"get":{}}}}`:  "no post",
		`{"openapi":"3.1.0","webhooks":5}`:                 "isn't valid OpenAPI",
		`[]`:                                               "isn't valid OpenAPI",
		`{"openapi":"3.1.0","webhooks":{"a":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/None"}}}}}}}}`: "isn't in its components",
	} {
		_, err := FromOpenAPI([]byte(text))
		if !fault.Is(err, "openapi_invalid") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSchemasThatStayAreNotCompiledAgain(t *testing.T) {
	t.Parallel()
	e := Entry{Name: "a", Check: Warn, Schema: []byte(`{"type":"object"}`), Versions: map[string]Version{"2": {Schema: []byte(`{"type":"array"}`)}, "3": {}}}
	first, second := Compiled{}, Compiled{}
	before, after := e.Checks(nil, first), e.Checks(first, second)
	for version, data := range map[string]string{"": "{}", "2": "[]", "3": "{}", "9": "{}"} {
		a, enforce := before.Of(version)
		b, _ := after.Of(version)
		var found []schema.Mismatch
		if a != nil {
			found, _ = a.Check([]byte(data), nil)
		}
		if a == nil || a != b || enforce || found != nil {
			t.Errorf("version %q: %p %p", version, a, b)
		}
	}
	e.Check = Off
	if s, _ := e.Checks(nil, Compiled{}).Of(""); s != nil {
		t.Error("what is off is checked")
	}
	var none *Checks
	if s, _ := none.Of(""); s != nil {
		t.Error("a type that nobody knows is checked")
	}
}
