package event_test

import (
	"strings"
	"testing"

	"posthorn/domain/event"
)

func TestTheFirstShortTextOfDataTellsEventsApart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		data string
		want event.Value
	}{
		{`{"order_id": "ord_10242", "customer": "cus_1"}`, event.Value{Path: "order_id", Text: "ord_10242"}},
		{`{"amount": 19.9, "paid": true, "note": null, "object": {"id": "in_7"}}`, event.Value{Path: "object.id", Text: "in_7"}},
		{`{"n": [1, 2, {"sku": "a-1"}]}`, event.Value{Path: "n.2.sku", Text: "a-1"}},
		{`{"text": "` + long + `", "empty": "", "lines": "a\nb", "id": "x"}`, event.Value{Path: "id", Text: "x"}},
		{`"hello"`, event.Value{Text: "hello"}},
		{`{"a": {"b": {}}, "c": []}`, event.Value{}},
		{`{"a": 1}`, event.Value{}},
		{`[[["deep"]]]`, event.Value{Path: "0.0.0", Text: "deep"}},
		{strings.Repeat("[", 3000), event.Value{}},
		{`{"a": "` + strings.Repeat("y", event.ValueIn), event.Value{}},
		{`not JSON`, event.Value{}},
		{``, event.Value{}},
	} {
		if got := event.FirstValue([]byte(c.data)); got != c.want {
			t.Errorf("%.40s: %+v, want %+v", c.data, got, c.want)
		}
	}
	cut := `{"id": "first", "rest": "` + strings.Repeat("z", 4*event.ValueIn) + `"}`
	if got := event.FirstValue([]byte(cut)); got.Text != "first" {
		t.Errorf("data that is longer than what is read: %+v", got)
	}
}
