package docs_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// TestTheExamplesOfTheBatchesPageAreWhatIsReadAndSent: its settings can be saved, its body is what two events make, and
// its results are read.
func TestTheExamplesOfTheBatchesPageAreWhatIsReadAndSent(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("batches.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Fatalf("the page has %d examples", len(blocks))
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(blocks[0][1], &given); err != nil {
		t.Fatal(err)
	}
	s := endpoint.ReadDefaults(50, nil, nil).Settings
	s.URL = "https://hooks.example.com/"
	if err := s.Patch(given); err != nil {
		t.Fatal(err)
	}
	if s, err = s.Check(egress.Policy{}); err != nil || s.Batch().Events != 100 {
		t.Errorf("the settings: %v", err)
	}
	var events []map[string]json.RawMessage
	if err := json.Unmarshal(blocks[1][1], &events); err != nil || len(events) != 2 {
		t.Fatal(err)
	}
	own := map[string]json.RawMessage{}
	if err := json.Unmarshal(signature.AppendBody(nil, signature.Standard, signature.Message{Data: []byte("{}")}), &own); err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if got, want := slices.Sorted(maps.Keys(e)), slices.Sorted(maps.Keys(own)); !slices.Equal(got, want) {
			t.Errorf("an event of the page has the fields %v, and one that is sent %v", got, want)
		}
	}
	if results, err := delivery.ReadResults(blocks[2][1]); err != nil || len(results) != 1 {
		t.Errorf("the results: %v", err)
	}
}
