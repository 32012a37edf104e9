package event_test

import (
	"bytes"
	"slices"
	"testing"

	"posthorn/domain/event"
)

func TestAQueryIsFoundInTheDataWhereItIs(t *testing.T) {
	t.Parallel()
	const data = `{"order_id":"ord_1","total":4200,"paid":true,"items":[{"sku":"a\/b"},{"sku":"c"}],"name":"M\u00fcller","ref":"x ord_1 y","link":"/?q=z9","city":"\u65E5\u672C\u8A9E","greeting":"\u043f\u0440\u0438\u0432\u0435\u0442","mood":"\ud83d\ude42"}`
	for _, c := range []struct {
		text, where string
		found       bool
	}{
		{"ord_1", "order_id", true},
		{" ord_1 ", "order_id", true},
		{"data.order_id:ord_1", "order_id", true},
		{`data.order_id:"ord_1"`, "order_id", true},
		{"data.ref:ord_1", "", false}, // a named field has the whole value
		{"data.order_id:ord", "", false},
		{"data.items.sku:c", "items.sku", true},
		{"items.sku=c", "items.sku", true},
		{"data.order_id = ord_1", "order_id", true},
		{"order_id=ord", "", false},
		{"total=4200", "total", true},
		{"q=z9", "link", true},     // a value that looks like a field
		{"a/b", "items.sku", true}, // whatever the producer's encoder escapes
		{"Müller", "name", true},
		{"data.total:4200", "total", true},
		{"data.paid:true", "paid", true},
		{"ord_2", "", false},
		{"order_id", "", false}, // names of fields are no values
		{"ORD_1", "order_id", true},
		{"data.order_id:ORD_1", "order_id", true},
		{"MÜLLER", "name", true},
		{"日本語", "city", true},
		{"data.city:日本語", "city", true},
		{"ПРИВЕТ", "greeting", true},
		{"🙂", "mood", true},
	} {
		q := event.ReadQuery(c.text)
		where, found := q.In([]byte(data))
		if where != c.where || found != c.found {
			t.Errorf("%s: found %v at %q, want %v at %q", c.text, found, where, c.found, c.where)
		}
		contained := slices.ContainsFunc(q.Needles(), func(needle []byte) bool { return bytes.Contains(bytes.ToLower([]byte(data)), bytes.ToLower(needle)) })
		if c.found && !bytes.Contains([]byte(data), q.Certain()) {
			t.Errorf("%s: %q is not certain", c.text, q.Certain())
		}
		if c.found && !contained {
			t.Errorf("%s: the database would look for %q, which the data does not contain", c.text, q.Needles())
		}
	}
}

func TestDataThatIsNoObjectIsSearchedToo(t *testing.T) {
	t.Parallel()
	if where, found := event.ReadQuery("ord_1").In([]byte(`"ord_1"`)); !found || where != "" {
		t.Errorf("a text: %v at %q", found, where)
	}
	if _, found := event.ReadQuery("ord_1").In([]byte(`{"a":`)); found {
		t.Error("broken JSON has a value")
	}
	deep := bytes.Repeat([]byte("["), 500)
	deep = append(append(deep, `"ord_1"`...), bytes.Repeat([]byte("]"), 500)...)
	if _, found := event.ReadQuery("ord_1").In(deep); found {
		t.Error("data is searched without a bound on its depth")
	}
}

func TestTextThatNamesNoFieldIsAValue(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"urn:isbn:1", "data.:x", "data.a:", "order:5", "data.a b:c"} {
		if q := event.ReadQuery(text); q.Path != nil || q.Value != text {
			t.Errorf("%s: %+v", text, q)
		}
	}
}
