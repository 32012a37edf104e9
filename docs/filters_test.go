package docs_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"posthorn/domain/filter"
)

// TestTheFiltersOfThePageCanBeUsed compiles each filter of docs/filters.md.
func TestTheFiltersOfThePageCanBeUsed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("filters.md")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, block := range regexp.MustCompile("(?s)\n```(json|cel)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[2]) {
			raw := []byte(line)
			if block[1] == "cel" {
				raw, _ = json.Marshal(strings.TrimSpace(line))
			}
			if _, err := filter.Compile(raw); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			tried++
		}
	}
	if tried < 7 {
		t.Errorf("%d filters were tried", tried)
	}
}
