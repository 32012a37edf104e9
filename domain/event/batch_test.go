package event_test

import (
	"slices"
	"strings"
	"testing"

	"posthorn/domain/event"
	"posthorn/domain/fault"
)

func TestABatchIsCutIntoItsItemsByteForByte(t *testing.T) {
	t.Parallel()
	want := []string{`{"type":"a" , "data":{}}`, `"\ud83d\""`, `"\ud83d"`, `[ [ ] ]`}
	list := "[ " + strings.Join(want, " ,\n") + "\t]"
	for _, body := range []string{list, " " + list + " ", `{"events":` + list + `}`, "{ \"events\" :\n" + list + " } "} {
		items, err := event.SplitBatch([]byte(body), 4)
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		got := make([]string, len(items))
		for i, item := range items {
			got[i] = string(item)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", body, got)
		}
	}
}

func TestABadItemDoesNotSpoilItsBatch(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 500) + strings.Repeat("]", 500)
	body := `{"events":[{"type":"a","data":1},{"type":"a","data":` + deep + `},{"type":"a","data":"\ud83d\n"},{"typ":1},{"type":"b","data":2}]}`
	items, err := event.SplitBatch([]byte(body), 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range items {
		code := "ok"
		if _, err := event.Parse(item, event.Limits{}, now); err != nil {
			code = fault.As(err).Code
		}
		got = append(got, code)
	}
	if want := []string{"ok", "too_deep", "unpaired_surrogate", "unknown_field", "ok"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestABatchThatCannotBeCutIsRefusedWhole(t *testing.T) {
	t.Parallel()
	for body, code := range map[string]string{
		``:                                    "not_json",
		`[`:                                   "not_json",
		`[1,]`:                                "not_json",
		`[1`:                                  "not_json",
		`[1]x`:                                "not_json",
		`[1 2]`:                               "not_json",
		`{"events":[1]`:                       "not_json",
		`{"events":[1]]`:                      "not_json",
		`{"events"`:                           "not_json",
		`{events:[1]}`:                        "not_json",
		"[\"\xff\"]":                          "not_utf8",
		strings.Repeat("[", 1_000_000):        "too_deep",
		`[]`:                                  "batch_count",
		`{}`:                                  "batch_count",
		`{"events":[]}`:                       "batch_count",
		`[1,2,3,4,5]`:                         "batch_count",
		`[` + strings.Repeat("1,", 1_000_000): "batch_count",
		`{"events":1}`:                        "field_type",
		`null`:                                "field_type",
		`"x"`:                                 "field_type",
		`{"items":[1]}`:                       "unknown_field",
		`{"events":[1],"events":[1]}`:         "unknown_field",
		`{"events":[1],"x":1}`:                "unknown_field",
	} {
		items, err := event.SplitBatch([]byte(body), 4)
		if !fault.Is(err, code) || items != nil {
			t.Errorf("%.60q: %d items, %v, want %s", body, len(items), err, code)
		}
	}
}
