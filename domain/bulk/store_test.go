package bulk_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"posthorn/domain/bulk"
)

func TestAConditionIsStoredSoThatJSONBCanHoldIt(t *testing.T) {
	t.Parallel()
	for match, plain := range map[string]bool{
		`{"s":"a"}`:        true,
		`"data.s == 1"`:    true,
		`{"s":"a\u0000b"}`: false,
		`{"s":"\uD83D"}`:   false,
		`{"\u0000":1}`:     false,
		``:                 true,
		`{"s":"\u00e9"}`:   true,
	} {
		f := bulk.Filter{Type: "a.b", Match: json.RawMessage(match)}
		text, err := f.Store()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("match_text")) == plain {
			t.Errorf("%s is stored as %s", match, text)
		}
		if !plain && !bytes.Contains(text, []byte(`"match":"false"`)) {
			t.Errorf("%s: a process that knows no match_text would select other events: %s", match, text)
		}
		back, err := bulk.ReadFilter(text)
		if err != nil || back.Type != "a.b" || string(back.Match) != match {
			t.Errorf("%s comes back as %s, %v", match, back.Match, err)
		}
	}
}
