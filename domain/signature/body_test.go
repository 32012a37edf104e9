package signature_test

import (
	"testing"
	"time"

	"posthorn/domain/signature"
)

// A payload that is no JSON is stored as a JSON string. A body that is the data alone is the text itself.
func TestTextIsTheWholeBodyUnderItsContentType(t *testing.T) {
	t.Parallel()
	m := signature.Message{EventID: "e", Type: "a", Data: []byte(`"a=1&b=\"é\""`), ContentType: "application/x-www-form-urlencoded"}
	for _, c := range []struct {
		format    signature.Format
		bare      bool
		body, typ string
	}{
		{signature.Raw, false, `a=1&b="é"`, m.ContentType},
		{signature.Standard, true, `a=1&b="é"`, m.ContentType},
		{signature.Standard, false, `{"id":"e","type":"a","timestamp":"0001-01-01T00:00:00.000Z","data":"a=1&b=\"é\""}`, signature.ContentType},
	} {
		m.Bare = c.bare
		if body := string(signature.AppendBody(nil, c.format, m)); body != c.body || m.BodyType(c.format) != c.typ {
			t.Errorf("%s: %s as %s", c.format, body, m.BodyType(c.format))
		}
	}
}

// TestABodyForMCPHasTheFieldsOfTheProtocol: the data is an object, whatever was emitted.
func TestABodyForMCPHasTheFieldsOfTheProtocol(t *testing.T) {
	t.Parallel()
	shape := &signature.Shape{Body: signature.BodyMCP}
	if err := shape.Check(signature.Standard, ""); err != nil {
		t.Error(err)
	}
	if err := shape.Check(signature.XWebhook, ""); err == nil {
		t.Error("another format has the body")
	}
	at := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	for data, want := range map[string]string{
		` {"a":1}`: ` {"a":1}`,
		`[1]`:      `{"value":[1]}`,
		`"{"`:      `{"value":"{"}`,
		``:         `{"value":null}`,
	} {
		m := signature.Message{EventID: "evt_1", Type: "a.b", CreatedAt: at, Data: []byte(data), TypeField: signature.Wire{Shape: shape}.Field()}
		got := string(signature.AppendBody(nil, signature.Standard, m))
		if got != `{"eventId":"evt_1","name":"a.b","timestamp":"2026-11-01T08:00:00.000Z","data":`+want+`}` {
			t.Errorf("%s: %s", data, got)
		}
	}
}
