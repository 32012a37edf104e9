package signature_test

import (
	"testing"

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
